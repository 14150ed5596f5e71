/* train_pointwise.c - norms, rotations, gates and the loss: everything that is not a product. */
#include "base/threads.h"
#include "train/ops.h"

enum { ROWS = 64, COLUMNS = 16, ELEMENTS = 1 << 14, LANES = 16 };

typedef struct work {
    size_t rows, width, heads;
    const muc_scalar *x, *gain, *bias, *dy;
    muc_scalar *factors, *y, *up, *dgain, *dbias;
    const uint32_t *positions;
    const float *cosines, *sines;
    const int32_t *targets;
    double *losses;
    double weight;
    muc_scalar epsilon;
    bool add, back;
} work;

static size_t pieces_of(size_t count, size_t piece)
{
    return (count + piece - 1) / piece;
}

static size_t end_of(size_t count, size_t piece, size_t i)
{
    return (i + 1) * piece < count ? (i + 1) * piece : count;
}

/* A sum over elements `at`, in LANES sums so that it can be vector code. */
#define LANE_SUM(name, parameters, term) \
    static inline muc_scalar name parameters \
    { \
        muc_scalar lanes[LANES] = { 0 }, sum = 0; \
        size_t i = 0; \
\
        for (; i + LANES <= count; i += LANES) \
            for (size_t j = 0, at = i; j < LANES; j++, at++) \
                lanes[j] += term; \
        for (size_t at = i; at < count; at++) \
            lanes[0] += term; \
        for (size_t j = 0; j < LANES; j++) \
            sum += lanes[j]; \
        return sum; \
    }

LANE_SUM(total, (const muc_scalar *x, size_t count), x[at])
LANE_SUM(squares, (const muc_scalar *x, size_t count), x[at] * x[at])
LANE_SUM(squares_around, (muc_scalar mean, const muc_scalar *x, size_t count),
         (x[at] - mean) * (x[at] - mean))
LANE_SUM(dot, (const muc_scalar *a, const muc_scalar *b, size_t count), a[at] * b[at])
LANE_SUM(dot3, (const muc_scalar *a, const muc_scalar *b, const muc_scalar *c, size_t count),
         a[at] * b[at] * c[at])
/* dot3 with c - mean */
LANE_SUM(dot3_around,
         (const muc_scalar *a, const muc_scalar *b, const muc_scalar *c, muc_scalar mean,
          size_t count),
         a[at] * b[at] * (c[at] - mean))

MUC_VECTOR_LOOP static muc_status norm_rows(void *arg, size_t piece)
{
    const work *w = arg;

    for (size_t r = piece * ROWS; r < end_of(w->rows, ROWS, piece); r++) {
        const muc_scalar *x = w->x + r * w->width;
        muc_scalar factor =
            1 / muc_train_sqrt(squares(x, w->width) / (muc_scalar)w->width + w->epsilon);

        w->factors[r] = factor;
        for (size_t i = 0; i < w->width; i++)
            w->y[r * w->width + i] = x[i] * factor * w->gain[i];
    }
    return MUC_OK;
}

MUC_VECTOR_LOOP static muc_status layer_rows(void *arg, size_t piece)
{
    const work *w = arg;
    muc_scalar n = (muc_scalar)w->width;

    for (size_t r = piece * ROWS; r < end_of(w->rows, ROWS, piece); r++) {
        const muc_scalar *x = w->x + r * w->width;
        muc_scalar mean = total(x, w->width) / n;
        muc_scalar factor = 1 / muc_train_sqrt(squares_around(mean, x, w->width) / n + w->epsilon);

        w->factors[r] = factor;
        w->factors[w->rows + r] = mean;
        for (size_t i = 0; i < w->width; i++)
            w->y[r * w->width + i] = (x[i] - mean) * factor * w->gain[i] + w->bias[i];
    }
    return MUC_OK;
}

muc_status muc_train_norm(muc_context *ctx, size_t rows, size_t width, double epsilon,
                          const muc_scalar *x, const muc_scalar *gain, const muc_scalar *bias,
                          muc_scalar *factors, muc_scalar *y)
{
    work w = { .rows = rows,
               .width = width,
               .epsilon = (muc_scalar)epsilon,
               .x = x,
               .gain = gain,
               .bias = bias,
               .factors = factors,
               .y = y };

    return muc_parallel_for(ctx, pieces_of(rows, ROWS), bias ? layer_rows : norm_rows, &w);
}

MUC_VECTOR_LOOP static muc_status gain_columns(void *arg, size_t piece)
{
    const work *w = arg;
    size_t first = piece * COLUMNS, end = end_of(w->width, COLUMNS, piece);

    for (size_t r = 0; r < w->rows; r++)
        for (size_t i = first; i < end; i++)
            w->dgain[i] += w->dy[r * w->width + i] * w->x[r * w->width + i] * w->factors[r];
    return MUC_OK;
}

MUC_VECTOR_LOOP static muc_status norm_rows_back(void *arg, size_t piece)
{
    const work *w = arg;

    for (size_t r = piece * ROWS; r < end_of(w->rows, ROWS, piece); r++) {
        const muc_scalar *x = w->x + r * w->width, *dy = w->dy + r * w->width;
        muc_scalar *dx = w->y + r * w->width, f = w->factors[r];
        muc_scalar mean = dot3(dy, w->gain, x, w->width) * f * f * f / (muc_scalar)w->width;

        for (size_t i = 0; i < w->width; i++) {
            muc_scalar slope = dy[i] * w->gain[i] * f - x[i] * mean;

            dx[i] = w->add ? dx[i] + slope : slope;
        }
    }
    return MUC_OK;
}

MUC_VECTOR_LOOP static muc_status layer_columns(void *arg, size_t piece)
{
    const work *w = arg;
    size_t first = piece * COLUMNS, end = end_of(w->width, COLUMNS, piece);

    for (size_t r = 0; r < w->rows; r++) {
        muc_scalar factor = w->factors[r], mean = w->factors[w->rows + r];

        for (size_t i = first; i < end; i++) {
            muc_scalar slope = w->dy[r * w->width + i];

            w->dgain[i] += slope * (w->x[r * w->width + i] - mean) * factor;
            w->dbias[i] += slope;
        }
    }
    return MUC_OK;
}

/* dx = f (g - mean of g - (x - mean) f^2 mean of g (x - mean)), g = dy gain */
MUC_VECTOR_LOOP static muc_status layer_rows_back(void *arg, size_t piece)
{
    const work *w = arg;
    muc_scalar n = (muc_scalar)w->width;

    for (size_t r = piece * ROWS; r < end_of(w->rows, ROWS, piece); r++) {
        const muc_scalar *x = w->x + r * w->width, *dy = w->dy + r * w->width;
        muc_scalar *dx = w->y + r * w->width, f = w->factors[r], mean = w->factors[w->rows + r];
        muc_scalar level = dot(dy, w->gain, w->width) / n;
        muc_scalar tilt = dot3_around(dy, w->gain, x, mean, w->width) * f * f / n;

        for (size_t i = 0; i < w->width; i++) {
            muc_scalar slope = f * (dy[i] * w->gain[i] - level - (x[i] - mean) * tilt);

            dx[i] = w->add ? dx[i] + slope : slope;
        }
    }
    return MUC_OK;
}

muc_status muc_train_norm_back(muc_context *ctx, size_t rows, size_t width, const muc_scalar *x,
                               const muc_scalar *gain, const muc_scalar *factors,
                               const muc_scalar *dy, bool add, muc_scalar *dx, muc_scalar *dgain,
                               muc_scalar *dbias)
{
    work w = { .rows = rows,
               .width = width,
               .x = x,
               .gain = gain,
               .dy = dy,
               .add = add,
               .factors = (muc_scalar *)(uintptr_t)factors,
               .y = dx,
               .dgain = dgain,
               .dbias = dbias };

    /* first, for dx may be dy */
    MUC_TRY(
        muc_parallel_for(ctx, pieces_of(width, COLUMNS), dbias ? layer_columns : gain_columns, &w));
    return muc_parallel_for(ctx, pieces_of(rows, ROWS), dbias ? layer_rows_back : norm_rows_back,
                            &w);
}

MUC_VECTOR_LOOP static muc_status rope_rows(void *arg, size_t piece)
{
    const work *w = arg;
    size_t half = w->width;

    for (size_t r = piece * ROWS; r < end_of(w->rows, ROWS, piece); r++) {
        const float *cosines = w->cosines + w->positions[r] * half;
        const float *sines = w->sines + w->positions[r] * half;

        for (size_t head = 0; head < w->heads; head++) {
            muc_scalar *a = w->y + (r * w->heads + head) * 2 * half, *b = a + half;

            for (size_t i = 0; i < half; i++) {
                muc_scalar s = w->back ? -sines[i] : sines[i], x = a[i], y = b[i];

                a[i] = x * cosines[i] - y * s;
                b[i] = y * cosines[i] + x * s;
            }
        }
    }
    return MUC_OK;
}

muc_status muc_train_rope(muc_context *ctx, size_t rows, size_t heads, size_t half,
                          const uint32_t *positions, const float *cosines, const float *sines,
                          bool back, muc_scalar *x)
{
    work w = { .rows = rows,
               .heads = heads,
               .width = half,
               .positions = positions,
               .cosines = cosines,
               .sines = sines,
               .back = back,
               .y = x };

    return muc_parallel_for(ctx, pieces_of(rows, ROWS), rope_rows, &w);
}

static inline muc_scalar sigmoid(muc_scalar x)
{
    muc_scalar least = -80;

    return 1 / (1 + muc_train_exp(x < least ? -least : -x));
}

MUC_VECTOR_LOOP static muc_status gate_elements(void *arg, size_t piece)
{
    const work *w = arg;

    for (size_t i = piece * ELEMENTS; i < end_of(w->rows, ELEMENTS, piece); i++)
        w->y[i] = w->x[i] * sigmoid(w->x[i]) * w->gain[i];
    return MUC_OK;
}

muc_status muc_train_gate(muc_context *ctx, size_t elements, const muc_scalar *gate,
                          const muc_scalar *up, muc_scalar *gated)
{
    work w = { .rows = elements, .x = gate, .gain = up, .y = gated };

    return muc_parallel_for(ctx, pieces_of(elements, ELEMENTS), gate_elements, &w);
}

MUC_VECTOR_LOOP static muc_status gate_elements_back(void *arg, size_t piece)
{
    const work *w = arg;

    for (size_t i = piece * ELEMENTS; i < end_of(w->rows, ELEMENTS, piece); i++) {
        muc_scalar x = w->y[i], s = sigmoid(x);

        w->y[i] = w->dy[i] * w->up[i] * s * (1 + x * (1 - s));
        w->up[i] = w->dy[i] * x * s;
    }
    return MUC_OK;
}

muc_status muc_train_gate_back(muc_context *ctx, size_t elements, const muc_scalar *dgated,
                               muc_scalar *gate, muc_scalar *up)
{
    work w = { .rows = elements, .dy = dgated, .y = gate, .up = up };

    return muc_parallel_for(ctx, pieces_of(elements, ELEMENTS), gate_elements_back, &w);
}

/* ---- GELU: x times a share, the normal distribution or near it ---- */

static const muc_scalar TANH_SCALE = (muc_scalar)1.59576912160573071176; /* sqrt(8 / pi) */
static const muc_scalar TANH_CUBE = (muc_scalar)0.044715;

/* (1 + tanh(u)) / 2 is the logistic function of 2u */
static inline muc_scalar tanh_share(muc_scalar x)
{
    return sigmoid(TANH_SCALE * (x + TANH_CUBE * x * x * x));
}

static inline muc_scalar normal_share(muc_scalar x)
{
    return (muc_scalar)(0.5 + 0.5 * muc_erf((double)x * 0.70710678118654752440));
}

MUC_VECTOR_LOOP static muc_status gelu_by_tanh(void *arg, size_t piece)
{
    const work *w = arg;

    for (size_t i = piece * ELEMENTS; i < end_of(w->rows, ELEMENTS, piece); i++)
        w->y[i] = w->x[i] * tanh_share(w->x[i]);
    return MUC_OK;
}

static muc_status gelu_by_erf(void *arg, size_t piece)
{
    const work *w = arg;

    for (size_t i = piece * ELEMENTS; i < end_of(w->rows, ELEMENTS, piece); i++)
        w->y[i] = w->x[i] * normal_share(w->x[i]);
    return MUC_OK;
}

muc_status muc_train_gelu(muc_context *ctx, size_t elements, bool by_tanh, const muc_scalar *x,
                          muc_scalar *y)
{
    work w = { .rows = elements, .x = x, .y = y };

    return muc_parallel_for(ctx, pieces_of(elements, ELEMENTS),
                            by_tanh ? gelu_by_tanh : gelu_by_erf, &w);
}

MUC_VECTOR_LOOP static muc_status gelu_by_tanh_back(void *arg, size_t piece)
{
    const work *w = arg;

    for (size_t i = piece * ELEMENTS; i < end_of(w->rows, ELEMENTS, piece); i++) {
        muc_scalar x = w->y[i], s = tanh_share(x);
        muc_scalar slope = TANH_SCALE * (1 + 3 * TANH_CUBE * x * x);

        w->y[i] = w->dy[i] * (s + x * s * (1 - s) * slope);
    }
    return MUC_OK;
}

static muc_status gelu_by_erf_back(void *arg, size_t piece)
{
    const work *w = arg;

    for (size_t i = piece * ELEMENTS; i < end_of(w->rows, ELEMENTS, piece); i++) {
        muc_scalar x = w->y[i];
        double density = 0.39894228040143267794 * muc_exp(-0.5 * (double)x * (double)x);

        w->y[i] = w->dy[i] * (normal_share(x) + x * (muc_scalar)density);
    }
    return MUC_OK;
}

muc_status muc_train_gelu_back(muc_context *ctx, size_t elements, bool by_tanh,
                               const muc_scalar *dy, muc_scalar *x)
{
    work w = { .rows = elements, .dy = dy, .y = x };

    return muc_parallel_for(ctx, pieces_of(elements, ELEMENTS),
                            by_tanh ? gelu_by_tanh_back : gelu_by_erf_back, &w);
}

static inline double entropy_row(muc_scalar *row, size_t columns, size_t target, double weight)
{
    muc_scalar most = row[0], at_target = row[target];
    double sum = 0;

    for (size_t i = 1; i < columns; i++)
        most = row[i] > most ? row[i] : most;
    for (size_t i = 0; i < columns; i++)
        row[i] = muc_train_exp(row[i] - most);
    for (size_t i = 0; i < columns; i++)
        sum += row[i];
    for (size_t i = 0; i < columns; i++)
        row[i] = (muc_scalar)(row[i] * (weight / sum));
    row[target] -= (muc_scalar)weight;
    return muc_log(sum) - (double)(at_target - most);
}

MUC_VECTOR_LOOP static muc_status entropy_rows(void *arg, size_t piece)
{
    const work *w = arg;

    for (size_t r = piece * ROWS; r < end_of(w->rows, ROWS, piece); r++) {
        muc_scalar *row = w->y + r * w->width;

        w->losses[r] = 0;
        if (w->targets[r] >= 0)
            w->losses[r] = entropy_row(row, w->width, (size_t)w->targets[r], w->weight);
        else
            memset(row, 0, w->width * sizeof(*row));
    }
    return MUC_OK;
}

muc_status muc_train_entropy(muc_context *ctx, size_t rows, size_t columns, const int32_t *targets,
                             double weight, muc_scalar *logits, double *losses)
{
    work w = { .rows = rows,
               .width = columns,
               .targets = targets,
               .weight = weight,
               .y = logits,
               .losses = losses };

    return muc_parallel_for(ctx, pieces_of(rows, ROWS), entropy_rows, &w);
}
