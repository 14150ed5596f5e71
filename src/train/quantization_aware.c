/* quantization_aware.c - fake quantization on the way forward, straight through on the way back. */
#include "train/quantization_aware.h"

#include <stdlib.h>

#include "base/half.h"
#include "base/threads.h"

enum { LLOYD_EVERY = 10 };
static const double keep_mean = 0.9, keep_square = 0.99, least_square = 1e-24;

/* ---- one row ---- */

typedef struct row {
    muc_lowbit format;
    size_t k;
    const float *w;
    float *numbers;  /* of the row */
    double *moments; /* beside them */
} row;

static row row_of(const muc_train_lowbit *q, size_t tensor, size_t r, const muc_scalar *weights)
{
    const muc_train_tensor *t = &q->shape->tensors[tensor];
    muc_lowbit format = q->formats[tensor];
    size_t at = q->first[tensor] + r * muc_lowbit_numbers(format, t->columns);

    return (row){ format, t->columns, weights + t->first + r * t->columns, q->numbers + at,
                  q->moments + 2 * at };
}

/* the numbers as they would be stored */
static float stored(const row *r, float number)
{
    return muc_lowbit_get(r->format)->group ? muc_f32_of_f16(muc_f16_of_f32(number))
                                            : muc_lowbit_round_scale((double)number);
}

static unsigned nearest_entry(const float *book, float w)
{
    unsigned best = 0;

    for (unsigned c = 1; c < MUC_LOWBIT_ENTRIES; c++)
        if (fabsf(w - book[c]) < fabsf(w - book[best]))
            best = c;
    return best;
}

static void stored_book(const row *r, size_t i, float *book)
{
    const float *numbers = r->numbers + i / muc_lowbit_get(r->format)->group * MUC_LOWBIT_ENTRIES;

    for (unsigned c = 0; c < MUC_LOWBIT_ENTRIES; c++)
        book[c] = stored(r, numbers[c]);
}

static void round_row(const row *r, float *out)
{
    if (!muc_lowbit_get(r->format)->group) {
        float scale = stored(r, r->numbers[0]);

        for (size_t i = 0; i < r->k; i++)
            out[i] = scale * (float)muc_lowbit_nearest(r->format, (double)r->w[i] / (double)scale);
        return;
    }
    for (size_t i = 0; i < r->k; i++) {
        float book[MUC_LOWBIT_ENTRIES];

        stored_book(r, i, book);
        out[i] = book[nearest_entry(book, r->w[i])];
    }
}

/* int8's scale has no other choice than the largest element */
static void start_row(const row *r)
{
    size_t group = muc_lowbit_get(r->format)->group, count = muc_lowbit_numbers(r->format, r->k);
    uint16_t numbers[MUC_LOWBIT_ENTRIES];
    uint8_t codes[32];

    if (!group)
        r->numbers[0] = muc_lowbit_scale(r->format, r->k, r->w);
    for (size_t i = 0; group && i < count; i += MUC_LOWBIT_ENTRIES) {
        size_t first = i / MUC_LOWBIT_ENTRIES * group;

        muc_lowbit_encode(r->format, r->k - first < group ? r->k - first : group, r->w + first,
                          codes, numbers);
        for (unsigned c = 0; c < MUC_LOWBIT_ENTRIES; c++)
            r->numbers[i + c] = muc_f32_of_f16(numbers[c]);
    }
}

/* each number becomes what fits the weights that are nearest to its values */
static void follow_row(const row *r)
{
    size_t group = muc_lowbit_get(r->format)->group;
    double along = 0, square = 0;

    for (size_t first = 0; group && first < r->k; first += group) {
        double sums[MUC_LOWBIT_ENTRIES] = { 0 }, members[MUC_LOWBIT_ENTRIES] = { 0 };
        float book[MUC_LOWBIT_ENTRIES];

        stored_book(r, first, book);
        for (size_t i = first; i < first + group && i < r->k; i++) {
            unsigned c = nearest_entry(book, r->w[i]);

            sums[c] += (double)r->w[i];
            members[c]++;
        }
        for (unsigned c = 0; c < MUC_LOWBIT_ENTRIES; c++)
            if (members[c] > 0)
                r->numbers[first / group * MUC_LOWBIT_ENTRIES + c] = (float)(sums[c] / members[c]);
    }
    for (size_t i = 0; !group && i < r->k; i++) {
        double level =
            muc_lowbit_nearest(r->format, (double)r->w[i] / (double)stored(r, r->numbers[0]));

        along += (double)r->w[i] * level;
        square += level * level;
    }
    if (along > 0)
        r->numbers[0] = (float)(along / square);
}

/* One step of Adam; size: what changes are relative to. */
static void learn(float *number, double *moments, double gradient, double size, double rate)
{
    moments[0] = keep_mean * moments[0] + (1 - keep_mean) * gradient;
    moments[1] = keep_square * moments[1] + (1 - keep_square) * gradient * gradient;
    if (moments[1] > least_square)
        *number -= (float)(rate * size * moments[0] / sqrt(moments[1]));
}

/* a scale's gradient sees that levels change with it, where they are not at their ends */
static void learn_row(const row *r, const muc_scalar *g, double rate)
{
    size_t group = muc_lowbit_get(r->format)->group;
    double gradient = 0, scale = (double)stored(r, r->numbers[0]);
    int most = muc_lowbit_most(r->format);

    for (size_t first = 0; group && first < r->k; first += group) {
        double sums[MUC_LOWBIT_ENTRIES] = { 0 }, size;
        float book[MUC_LOWBIT_ENTRIES];
        size_t at = first / group * MUC_LOWBIT_ENTRIES;

        stored_book(r, first, book);
        size = ((double)book[3] - (double)book[0]) / 4;
        for (size_t i = first; i < first + group && i < r->k; i++)
            sums[nearest_entry(book, r->w[i])] += (double)g[i];
        for (unsigned c = 0; c < MUC_LOWBIT_ENTRIES; c++)
            learn(&r->numbers[at + c], r->moments + 2 * (at + c), sums[c], size, rate);
    }
    if (group)
        return;
    for (size_t i = 0; i < r->k; i++) {
        double x = (double)r->w[i] / scale, level = muc_lowbit_nearest(r->format, x);

        gradient += (double)g[i] * (fabs(x) < most ? level - x : level);
    }
    learn(r->numbers, r->moments, gradient, scale, rate);
    r->numbers[0] = r->numbers[0] > 1e-7f ? r->numbers[0] : 1e-7f;
}

/* ---- all rows ---- */

typedef enum action { START, FOLLOW, LEARN, ROUND } action;

typedef struct work {
    muc_train_lowbit *q;
    const muc_scalar *weights, *gradients;
    action action;
    double rate;
} work;

static muc_status work_on_tensor(void *arg, size_t tensor)
{
    const work *w = arg;
    const muc_train_tensor *t = &w->q->shape->tensors[tensor];

    if (t->columns == 0) {
        if (w->action == ROUND)
            memcpy(w->q->used + t->first, w->weights + t->first, t->elements * sizeof(*w->weights));
        return MUC_OK;
    }
    for (size_t i = 0; i < t->rows; i++) {
        row r = row_of(w->q, tensor, i, w->weights);
        bool follows = r.format == MUC_LOWBIT_INT8;

        if (w->action == START || (follows && w->action == ROUND))
            start_row(&r);
        if (w->action == FOLLOW && !follows)
            follow_row(&r);
        if (w->action == LEARN && !follows)
            learn_row(&r, w->gradients + t->first + i * t->columns, w->rate);
        if (w->action == ROUND)
            round_row(&r, w->q->used + t->first + i * t->columns);
    }
    return MUC_OK;
}

static muc_status act(muc_train_lowbit *q, action what, const muc_scalar *weights,
                      const muc_scalar *gradients, double rate)
{
    work w = { q, weights, gradients, what, rate };

    return muc_parallel_for(q->ctx, q->shape->tensor_count, work_on_tensor, &w);
}

static muc_status prepare(void *arg, uint64_t step, muc_scalar *weights, const muc_scalar **used)
{
    muc_train_lowbit *q = arg;

    if (step < q->phases.real)
        return MUC_OK;
    if (!q->is_on)
        MUC_TRY(act(q, START, weights, NULL, 0));
    else if (step < q->phases.learn && step % LLOYD_EVERY == 0)
        MUC_TRY(act(q, FOLLOW, weights, NULL, 0));
    q->is_on = true;
    MUC_TRY(act(q, ROUND, weights, NULL, 0));
    *used = q->used;
    return MUC_OK;
}

static muc_status adjust(void *arg, uint64_t step, muc_scalar *weights, muc_scalar *gradients)
{
    muc_train_lowbit *q = arg;

    if (step < q->phases.learn || !q->is_on)
        return MUC_OK;
    return act(q, LEARN, weights, gradients,
               q->phases.rate * muc_train_rate(q->recipe, step) / q->recipe->rate);
}

/* ---- activations ---- */

/* mur_decoder.h: "Quantizing a vector" */
static muc_status round_activations(void *arg, muc_train_site site, uint32_t layer, size_t rows,
                                    size_t columns, muc_scalar *x)
{
    const muc_train_lowbit *q = arg;

    (void)site;
    (void)layer;
    if (!q->is_on)
        return MUC_OK;
    for (size_t r = 0; r < rows; r++, x += columns) {
        float most = 0, inverse, scale;

        for (size_t i = 0; i < columns; i++)
            most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
        inverse = most < 0x1p-100f ? 0 : 127 / most;
        scale = most < 0x1p-100f ? 0 : most / 127;
        for (size_t i = 0; i < columns; i++)
            x[i] = ((x[i] * inverse + 12582912.0f) - 12582912.0f) * scale;
    }
    return MUC_OK;
}

/* ---- ends ---- */

void muc_train_lowbit_row(const muc_train_lowbit *q, size_t tensor, size_t index,
                          const muc_scalar *weights, uint8_t *codes, uint16_t *numbers)
{
    row r = row_of(q, tensor, index, weights);
    size_t count = muc_lowbit_numbers(r.format, r.k);

    if (r.format == MUC_LOWBIT_INT8)
        start_row(&r);
    for (size_t i = 0; i < count; i++)
        numbers[i] = muc_f16_of_f32(stored(&r, r.numbers[i]));
    if (muc_lowbit_get(r.format)->group) {
        muc_lowbit_encode_entries(r.format, r.k, r.w, numbers, codes);
        return;
    }
    muc_lowbit_encode_levels(r.format, r.k, r.w, numbers[0], codes);
}

static muc_status make(muc_train_lowbit *q)
{
    const muc_train_shape *shape = q->shape;

    MUC_TRY(MUC_ARENA_NEW(q->ctx, &q->arena, shape->tensor_count, &q->first));
    for (size_t t = 0; t < shape->tensor_count; t++) {
        const muc_train_tensor *tensor = &shape->tensors[t];

        q->first[t] = q->count;
        if (tensor->columns)
            q->count += tensor->rows * muc_lowbit_numbers(q->formats[t], tensor->columns);
    }
    MUC_TRY(MUC_ARENA_NEW(q->ctx, &q->arena, q->count, &q->numbers));
    MUC_TRY(MUC_ARENA_NEW(q->ctx, &q->arena, 2 * q->count, &q->moments));
    return MUC_ARENA_NEW(q->ctx, &q->arena, shape->elements, &q->used);
}

muc_status muc_train_lowbit_make(muc_context *ctx, const muc_train_shape *shape,
                                 const muc_train_recipe *recipe, const muc_train_phases *phases,
                                 const muc_lowbit *formats, muc_train_lowbit *out)
{
    muc_status status;

    *out = (muc_train_lowbit){
        .ctx = ctx, .shape = shape, .phases = *phases, .formats = formats, .recipe = recipe
    };
    status = make(out);
    if (status != MUC_OK)
        muc_train_lowbit_free(out);
    return status;
}

void muc_train_lowbit_free(muc_train_lowbit *q)
{
    muc_arena_free(&q->arena);
}

void muc_train_lowbit_join(muc_train_lowbit *q, muc_train_trainer *trainer)
{
    trainer->method = (muc_train_method){ q, prepare, adjust };
    q->hooks = (muc_train_hooks){ .arg = q, .forward = round_activations };
    trainer->pass.hooks = &q->hooks;
}
