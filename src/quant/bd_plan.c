/* bd_plan.c - the price of a byte under which matrices fit a budget.
 *
 * It is found by counting, not by bisection: every column of a tile says at which price it would
 * grow, in steps of a fixed scale; one histogram of bytes over prices then tells the size at every
 * price. Counts are integers, so the order in which threads add them does not matter.
 *
 * Some bands are counted first. They tell where about the price will be, and so what most of the
 * other columns will become, which is kept for whoever encodes them: then nobody searches twice.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "quant/bd_band.h"

static const char room[] = "blockdialect";

/* One band of so many is counted first; how far the price may be from theirs, of 2048 steps for
 * twice the price. */
enum { SAMPLED = 32, MARGIN = 512 };

typedef struct planning {
    muc_context *ctx;
    const muc_bd_matrix *matrix;
    muc_bd_bands grid;
    uint32_t kinds;
    bool samples;                           /* one band of so many, or those between; */
    uint32_t lowest, highest;               /* prices that are expected, then */
    atomic_uint_fast64_t weights, smallest; /* bytes when every column is as small as it can be */
    atomic_uint_fast64_t *growth; /* [MUC_BD_PRICES + 1] bytes that columns grow by at a price */
} planning;

/* ---- counting ---- */

/* returns the bytes of the smallest offer */
static uint32_t count_offers(const planning *p, const muc_bd_offers *offers)
{
    const muc_bd_offer *offer = offers->offer;

    for (unsigned i = 1; i < offers->count; i++)
        atomic_fetch_add_explicit(&p->growth[offer[i].price], offer[i].bytes - offer[i - 1].bytes,
                                  memory_order_relaxed);
    return offer[0].bytes;
}

/* w: [columns of the tile][k] */
static void plan_tile(planning *p, const float *w, uint32_t band, uint32_t down)
{
    muc_bd_tile t = muc_bd_tile_at(&p->grid, band, down);
    uint32_t smallest = sizeof(uint32_t); /* its place in the index */
    uint64_t *kept = p->matrix->kept;
    const float *columns[MUC_BD_TILE_N];
    muc_bd_offers offers[MUC_BD_TILE_N];

    for (uint32_t c = 0; c < t.columns; c++)
        columns[c] = w + (size_t)c * p->grid.k + t.first_k;
    muc_bd_offer_columns(p->kinds, columns, t.columns, muc_bd_importance_at(p->matrix, t.first_k),
                         t.rows, offers);
    for (uint32_t c = 0; c < t.columns; c++) {
        smallest += count_offers(p, &offers[c]);
        if (kept && !p->samples)
            kept[muc_bd_column_at(&p->grid, band, down, c)] =
                muc_bd_keep_offers(&offers[c], p->lowest, p->highest);
    }
    atomic_fetch_add_explicit(&p->smallest, smallest, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->weights, t.columns * t.rows, memory_order_relaxed);
}

static muc_status plan_band(void *arg, size_t index)
{
    planning *p = arg;
    uint32_t band = (uint32_t)(p->samples ? index * SAMPLED : index + index / (SAMPLED - 1) + 1);
    float *values;

    MUC_TRY(muc_bd_read_band(p->ctx, p->matrix, &p->grid, band, &values));
    for (uint32_t down = 0; down < p->grid.tiles_down; down++)
        plan_tile(p, values, band, down);
    free(values);
    return MUC_OK;
}

/* of the bands that are sampled, or of the others */
static muc_status count_bands(planning *p, const muc_bd_matrix *matrices, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const muc_bd_matrix *m = p->matrix = &matrices[i];
        uint32_t sampled;

        MUC_TRY(muc_bd_bands_of(p->ctx, m->name, MUC_NO_OFFSET, m->n, m->k, &p->grid));
        sampled = muc_bd_pieces(p->grid.bands, SAMPLED);
        MUC_TRY(
            muc_parallel_for(p->ctx, p->samples ? sampled : p->grid.bands - sampled, plan_band, p));
        if (p->samples)
            continue;
        atomic_fetch_add(&p->smallest, sizeof(uint32_t)); /* where its last tile ends */
        muc_progress(p->ctx, "planning blocks", i + 1, count);
    }
    return MUC_OK;
}

/* ---- the price ---- */

static double budget_of(const planning *p, double bits)
{
    return bits * (double)p->weights / 8;
}

/* the lowest price whose bytes fit */
static uint32_t price_for(const planning *p, double bits)
{
    uint64_t total = p->smallest, budget = (uint64_t)budget_of(p, bits);
    uint32_t price = MUC_BD_PRICES + 1;

    while (price > 0 && total + p->growth[price - 1] <= budget)
        total += p->growth[--price];
    return price;
}

static muc_status count_growth(planning *p, const muc_bd_matrix *matrices, size_t count,
                               double bits)
{
    uint32_t price;

    p->samples = true;
    MUC_TRY(count_bands(p, matrices, count));
    price = price_for(p, bits);
    p->lowest = price > MARGIN ? price - MARGIN : 0;
    p->highest = price + MARGIN;
    p->samples = false;
    return count_bands(p, matrices, count);
}

/* What was kept is of no use at an unexpected price. */
static void forget_kept(const muc_bd_matrix *matrices, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (matrices[i].kept)
            memset(matrices[i].kept, 0,
                   muc_bd_kept_count(matrices[i].n, matrices[i].k) * sizeof(*matrices[i].kept));
}

/* Plans within the budget; false, and *out untouched, if that is too little. */
static muc_status plan(muc_context *ctx, const muc_bd_matrix *matrices, size_t count,
                       uint32_t kinds, double bits, bool *fits, double *least_bits,
                       muc_bd_rule *out)
{
    planning p = { .ctx = ctx, .kinds = kinds };
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(ctx, room, MUC_BD_PRICES + 1, &p.growth));
    status = count_growth(&p, matrices, count, bits);
    if (status == MUC_OK) {
        *least_bits = 8 * (double)p.smallest / (double)p.weights;
        *fits = (double)p.smallest <= budget_of(&p, bits);
        if (*fits)
            *out = (muc_bd_rule){ kinds, price_for(&p, bits) };
        if (!*fits || out->price < p.lowest || out->price > p.highest)
            forget_kept(matrices, count);
    }
    free(p.growth);
    return status;
}

muc_status muc_bd_plan(muc_context *ctx, const muc_bd_matrix *matrices, size_t count,
                       uint32_t kinds, double bits_per_weight, muc_bd_rule *out)
{
    double least_bits;
    bool fits;

    MUC_TRY(plan(ctx, matrices, count, kinds, bits_per_weight, &fits, &least_bits, out));
    if (!fits)
        return muc_fail(ctx, MUC_NOFIT, room, MUC_NO_OFFSET,
                        "%.3f bits per weight are asked for, the smallest blocks take %.3f",
                        bits_per_weight, least_bits);
    return MUC_OK;
}

muc_status muc_bd_afford(muc_context *ctx, const muc_bd_matrix *matrices, size_t count,
                         double bits_per_weight, muc_bd_rule *out)
{
    const uint32_t b4 = 1 << MUC_BD_B4, b5 = 1 << MUC_BD_B5, r = 1 << MUC_BD_R;
    double least_bits;
    bool fits;

    MUC_TRY(muc_bd_plan(ctx, matrices, count, b4 | b5 | MUC_BD_SHARING, bits_per_weight, out));
    if (out->price > 0)
        return MUC_OK;
    return plan(ctx, matrices, count, b5 | r | MUC_BD_SHARING, bits_per_weight, &fits, &least_bits,
                out);
}
