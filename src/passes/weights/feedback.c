/* feedback.c - rounds columns of weights with error feedback: moments of the inputs, and their
 * triangular factor.
 *
 * H, damped, is factored as M M^T with M upper triangular. Then e H e = |e M|^2, and component j
 * of e M is M_jj times e_j plus a sum over the elements before j: rounding w_j plus that sum over
 * M_jj makes component j as small as its grid allows. No inverse is formed. M is kept as its
 * transpose, so that every inner loop runs along a row.
 */
#include "passes/weights/feedback.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"

static const char room[] = "feedback";

/* docs/QUANTIZATION.md tells what other values do. */
static const double damping =
    0.01; /* share of H's mean diagonal: texts are few, inputs may be dead */
static const double make_up = 0.5; /* share of what the inputs have lost */
enum { MOST_SWEEPS = 4 };

/* ---- sums in one order ---- */

enum { LANES = 4, WORTH_THREADS = 1 << 20 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(8), may_alias));

static inline const lanes *at(const double *p)
{
    return (const lanes *)(const void *)p;
}

static double dot(const double *a, const double *b, size_t n)
{
    lanes sum = { 0 };
    double total;
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        sum += *at(a + i) * *at(b + i);
    total = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    for (; i < n; i++)
        total += a[i] * b[i];
    return total;
}

static void add_scaled(double *y, double a, const double *x, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        *(lanes *)(void *)(y + i) += a * *at(x + i);
    for (; i < n; i++)
        y[i] += a * x[i];
}

static muc_status for_rows(muc_context *ctx, size_t rows, size_t work, muc_parallel_body *body,
                           void *arg)
{
    if (work >= WORTH_THREADS)
        return muc_parallel_for(ctx, rows, body, arg);
    for (size_t i = 0; i < rows; i++)
        MUC_TRY(body(arg, i));
    return MUC_OK;
}

/* ---- moments ---- */

muc_status muc_moments_new(muc_context *ctx, uint32_t k, bool cross, muc_moments *out)
{
    *out = (muc_moments){ .k = k };
    MUC_TRY(MUC_NEW_ARRAY(ctx, room, (size_t)k * k, &out->h));
    if (cross)
        MUC_TRY(MUC_NEW_ARRAY(ctx, room, (size_t)k * k, &out->cross));
    return MUC_OK;
}

void muc_moments_free(muc_moments *moments)
{
    free(moments->h);
    free(moments->cross);
    *moments = (muc_moments){ 0 };
}

typedef struct adding {
    muc_moments *moments;
    const double *x;
    const float *f;
    size_t rows;
} adding;

/* row i of h, and of cross */
static muc_status add_row(void *arg, size_t i)
{
    const adding *a = arg;
    size_t k = a->moments->k;

    for (size_t r = 0; r < a->rows; r++) {
        const double *x = a->x + r * k;

        add_scaled(a->moments->h + i * k, x[i], x, k);
        if (a->f)
            add_scaled(a->moments->cross + i * k, (double)a->f[r * k + i] - x[i], x, k);
    }
    return MUC_OK;
}

muc_status muc_moments_add(muc_context *ctx, muc_moments *moments, const float *x, const float *f,
                           size_t rows)
{
    size_t count = rows * moments->k;
    adding a = { moments, NULL, f, rows };
    muc_status status;
    double *wide;

    MUC_TRY(MUC_NEW_ARRAY(ctx, room, count, &wide));
    for (size_t i = 0; i < count; i++)
        wide[i] = (double)x[i];
    a.x = wide;
    status = for_rows(ctx, moments->k, count * moments->k, add_row, &a);
    free(wide);
    return status;
}

/* ---- the factor ---- */

struct muc_feedback {
    uint32_t k;
    double *h;         /* [k][k], damped */
    double *cross;     /* [k][k] or NULL */
    double *factor;    /* [k][k], row j: M_0j .. M_jj */
    float *importance; /* [k], M_jj^2 over the largest: what a rounding error at j will cost */
};

typedef struct factoring {
    double *factor;
    size_t k, first, end; /* rows of the factor that are done last */
} factoring;

enum { PANEL = 32 };

/* takes the panel's rows off row i of what is left */
static muc_status reduce_row(void *arg, size_t i)
{
    const factoring *f = arg;
    double *row = f->factor + i * f->k;

    for (size_t j = f->end; j-- > f->first;) {
        const double *done = f->factor + j * f->k;

        add_scaled(row, -done[i], done, i + 1);
    }
    return MUC_OK;
}

/* H = M M^T from the last row of M up; every element is a sum in falling j */
static muc_status factorize(muc_context *ctx, double *factor, size_t k)
{
    factoring f = { .factor = factor, .k = k };

    for (f.end = k; f.end > 0; f.end = f.first) {
        f.first = f.end > PANEL ? f.end - PANEL : 0;
        for (size_t j = f.end; j-- > f.first;) {
            double *row = factor + j * k, scale = 1 / sqrt(row[j]);
            factoring one = { factor, k, j, j + 1 };

            for (size_t i = 0; i <= j; i++)
                row[i] *= scale;
            for (size_t i = f.first; i < j; i++)
                reduce_row(&one, i);
        }
        MUC_TRY(for_rows(ctx, f.first, f.first * f.first * (f.end - f.first) / 2, reduce_row, &f));
    }
    return MUC_OK;
}

static muc_status prepare(muc_context *ctx, muc_feedback *f)
{
    size_t k = f->k;
    double trace = 0, largest = 0;

    for (size_t j = 0; j < k; j++)
        trace += f->h[j * k + j];
    if (!isfinite(trace))
        return muc_fail(ctx, MUC_MALFORMED, room, MUC_NO_OFFSET,
                        "activations on the calibration text are not finite");
    for (size_t j = 0; j < k; j++)
        f->h[j * k + j] += trace > 0 ? damping * trace / (double)k : 1;
    memcpy(f->factor, f->h, k * k * sizeof(double));
    MUC_TRY(factorize(ctx, f->factor, k));
    for (size_t j = 0; j < k; j++)
        largest = fmax(largest, f->factor[j * k + j]);
    for (size_t j = 0; j < k; j++) {
        double share = f->factor[j * k + j] / largest;

        f->importance[j] = (float)(share * share);
    }
    return MUC_OK;
}

muc_status muc_feedback_new(muc_context *ctx, muc_moments *moments, muc_feedback **out)
{
    size_t k = moments->k;
    muc_feedback *f = NULL;
    muc_status status = MUC_NEW_ARRAY(ctx, room, 1, &f);

    if (status != MUC_OK) {
        muc_moments_free(moments);
        return status;
    }
    *f = (muc_feedback){ .k = moments->k, .h = moments->h, .cross = moments->cross };
    *moments = (muc_moments){ 0 };
    status = MUC_NEW_ARRAY(ctx, room, k * k, &f->factor);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(ctx, room, k, &f->importance);
    if (status == MUC_OK)
        status = prepare(ctx, f);
    if (status != MUC_OK) {
        muc_feedback_free(f);
        return status;
    }
    *out = f;
    return MUC_OK;
}

void muc_feedback_free(muc_feedback *f)
{
    if (!f)
        return;
    free(f->h);
    free(f->cross);
    free(f->factor);
    free(f->importance);
    free(f);
}

double muc_feedback_error(const muc_feedback *f, const double *e)
{
    double sum = 0;

    for (size_t j = 0; j < f->k; j++)
        sum += e[j] * dot(f->h + j * f->k, e, f->k);
    return sum;
}

/* ---- one column ---- */

typedef struct rounding {
    const muc_feedback *feedback;
    const muc_bd_rule *rule;
    double *target;   /* [k], the column to come close to */
    double *miss;     /* [k], target - value, of the elements so far */
    double *gradient; /* [k], miss H */
    muc_bd_column *tiles;
} rounding;

/* target = w + make_up * w cross H^-1, H^-1 by substitution in M and M^T */
static void set_target(const rounding *r, const float *w)
{
    const muc_feedback *f = r->feedback;
    size_t k = f->k;
    double *y = r->gradient;

    for (size_t j = 0; j < k; j++)
        r->target[j] = (double)w[j];
    if (!f->cross)
        return;
    memset(y, 0, k * sizeof(*y));
    for (size_t i = 0; i < k; i++)
        add_scaled(y, r->target[i], f->cross + i * k, k);
    for (size_t j = k; j-- > 0;) {
        const double *row = f->factor + j * k;

        y[j] /= row[j];
        add_scaled(y, -y[j], row, j);
    }
    for (size_t j = 0; j < k; j++) {
        const double *row = f->factor + j * k;

        y[j] = (y[j] - dot(row, y, j)) / row[j];
    }
    for (size_t j = 0; j < k; j++)
        r->target[j] += make_up * y[j];
}

static float within_range(double value)
{
    const double most = (double)MUC_BD_MAX_WEIGHT;

    return (float)(value > most ? most : value < -most ? -most : value);
}

/* element j as it should be, given the misses before it */
static double corrected(const rounding *r, size_t j)
{
    const double *row = r->feedback->factor + j * r->feedback->k;

    return r->target[j] + dot(row, r->miss, j) / row[j];
}

/* Two blocks of sizes so different that no header was found for both take the coarser one. (Where
 * one has become Z there is nothing to share, and bytes to spare.) */
static void share_header(muc_bd_column *pair)
{
    muc_bd_term *upper = pair->block[0].term, *lower = pair->block[1].term;

    if (pair->block[0].kind != pair->block[1].kind)
        return;
    if (lower->exponent > upper->exponent)
        *upper = *lower;
    *lower = *upper;
    pair->block[1].shared = true;
}

/* Chooses the grids of blocks first..end-1 of a tile, which starts at element k, for what their
 * elements would be if they were not rounded. Kinds and sharing stay. */
static void choose_grids(const rounding *r, muc_bd_column *tile, size_t k, unsigned first,
                         unsigned end)
{
    unsigned start = first * MUC_BD_ELEMS, rows = 0;
    muc_bd_rule rule = { 1u << tile->block[first].kind, 0 };
    muc_bd_column chosen;
    float wanted[MUC_BD_ROWS];

    for (unsigned b = first; b < end; b++)
        rows += muc_bd_block_elements(tile->rows, b);
    for (unsigned i = 0; i < rows; i++) {
        size_t j = k + start + i;
        double value = corrected(r, j);

        r->miss[j] = r->target[j] - value;
        wanted[i] = within_range(value);
    }
    if (end - first > 1)
        rule = (muc_bd_rule){ rule.kinds | MUC_BD_SHARING, MUC_BD_PRICES };
    muc_bd_choose(&rule, wanted, r->feedback->importance + k + start, rows, &chosen);
    if (end - first > 1)
        share_header(&chosen);
    for (unsigned b = first; b < end; b++)
        tile->block[b] = chosen.block[b - first];
}

static void round_blocks(const rounding *r, muc_bd_column *tile, size_t k, unsigned first,
                         unsigned end)
{
    for (unsigned b = first; b < end; b++) {
        for (unsigned i = 0; i < muc_bd_block_elements(tile->rows, b); i++) {
            size_t j = k + b * MUC_BD_ELEMS + i;

            r->miss[j] = r->target[j] -
                         (double)muc_bd_round(&tile->block[b], i, within_range(corrected(r, j)));
        }
    }
}

static void round_tile(const rounding *r, muc_bd_column *tile, size_t k)
{
    unsigned count = muc_bd_block_count(tile->rows);

    for (unsigned first = 0, end; first < count; first = end) {
        end = first + 1;
        end += end < count && tile->block[end].shared;
        if (tile->block[first].kind != MUC_BD_Z)
            choose_grids(r, tile, k, first, end);
        round_blocks(r, tile, k, first, end);
    }
}

/* Puts element i of a block, j of the column, where the objective is least with all others fixed.
 * True if it moved. */
static bool settle(const rounding *r, muc_bd_block *block, unsigned i, size_t j)
{
    const double *h = r->feedback->h + j * r->feedback->k;
    double best = r->target[j] - r->miss[j] + r->gradient[j] / h[j];
    double value = r->target[j] - r->miss[j], moved;
    uint8_t codes[2] = { block->term[0].code[i], block->term[1].code[i] };

    moved = (double)muc_bd_round(block, i, within_range(best));
    if (fabs(moved - best) < fabs(value - best)) {
        r->miss[j] = r->target[j] - moved;
        add_scaled(r->gradient, value - moved, h, r->feedback->k);
        return true;
    }
    block->term[0].code[i] = codes[0];
    block->term[1].code[i] = codes[1];
    return false;
}

static bool sweep(const rounding *r)
{
    bool moved = false;
    size_t k = r->feedback->k;

    for (size_t start = 0; start < k; start += MUC_BD_ROWS) {
        muc_bd_column *tile = &r->tiles[start / MUC_BD_ROWS];

        for (unsigned i = 0; i < tile->rows; i++)
            moved |= settle(r, &tile->block[i / MUC_BD_ELEMS], i % MUC_BD_ELEMS, start + i);
    }
    return moved;
}

static void round_column(const rounding *r, const float *w)
{
    size_t k = r->feedback->k;

    set_target(r, w);
    for (size_t start = 0; start < k; start += MUC_BD_ROWS) {
        muc_bd_column *tile = &r->tiles[start / MUC_BD_ROWS];

        muc_bd_choose(r->rule, w + start, NULL, tile->rows, tile);
        round_tile(r, tile, start);
    }
    for (size_t j = 0; j < k; j++)
        r->gradient[j] = dot(r->feedback->h + j * k, r->miss, k);
    for (int i = 0; i < MOST_SWEEPS && sweep(r); i++)
        ;
    for (size_t start = 0; start < k; start += MUC_BD_ROWS)
        muc_bd_pack(&r->tiles[start / MUC_BD_ROWS], r->rule->kinds);
}

/* ---- any grid ---- */

/* one element after the other, then again with all others fixed */
static void round_on_grid(const rounding *r, const float *w, muc_feedback_grid *grid, void *arg)
{
    size_t k = r->feedback->k;
    bool moved = true;

    set_target(r, w);
    for (size_t j = 0; j < k; j++)
        r->miss[j] = r->target[j] - grid(arg, j, corrected(r, j));
    for (size_t j = 0; j < k; j++)
        r->gradient[j] = dot(r->feedback->h + j * k, r->miss, k);
    for (int i = 0; i < MOST_SWEEPS && moved; i++) {
        moved = false;
        for (size_t j = 0; j < k; j++) {
            const double *h = r->feedback->h + j * k;
            double value = r->target[j] - r->miss[j], best = value + r->gradient[j] / h[j];
            double to = grid(arg, j, best);

            if (!(fabs(to - best) < fabs(value - best)))
                continue;
            r->miss[j] = r->target[j] - to;
            add_scaled(r->gradient, value - to, h, k);
            moved = true;
        }
    }
}

muc_status muc_feedback_round(muc_context *ctx, const muc_feedback *feedback, const float *w,
                              muc_feedback_grid *grid, void *arg, double *values, double *error)
{
    size_t k = feedback->k;
    rounding r = { .feedback = feedback };
    double *scratch;

    MUC_TRY(MUC_NEW_ARRAY(ctx, room, 3 * k, &scratch));
    r.target = scratch;
    r.miss = scratch + k;
    r.gradient = scratch + 2 * k;
    round_on_grid(&r, w, grid, arg);
    for (size_t j = 0; j < k; j++)
        values[j] = r.target[j] - r.miss[j];
    *error = muc_feedback_error(feedback, r.miss);
    free(scratch);
    return MUC_OK;
}

/* ---- blocks ---- */

typedef struct quantizing {
    muc_context *ctx;
    const muc_feedback *feedback;
    const muc_bd_rule *rule;
} quantizing;

static muc_status choose_column(void *arg, uint32_t column, const float *w, muc_bd_column *tiles)
{
    const quantizing *q = arg;
    size_t k = q->feedback->k;
    rounding r = { .feedback = q->feedback, .rule = q->rule, .tiles = tiles };
    double *scratch;

    (void)column;
    MUC_TRY(MUC_NEW_ARRAY(q->ctx, room, 3 * k, &scratch));
    r.target = scratch;
    r.miss = scratch + k;
    r.gradient = scratch + 2 * k;
    round_column(&r, w);
    free(scratch);
    return MUC_OK;
}

muc_status muc_feedback_quantize(muc_context *ctx, const muc_feedback *feedback,
                                 const muc_bd_matrix *matrix, const muc_bd_rule *rule,
                                 muc_bd_sequence *out)
{
    quantizing q = { ctx, feedback, rule };
    muc_bd_matrix plain = *matrix;

    plain.importance = NULL;
    return muc_bd_encode(ctx, &plain, choose_column, &q, out);
}
