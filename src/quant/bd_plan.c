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

/* What one thread counts: no two add to the same bytes. */
typedef struct counts {
    uint64_t weights, smallest; /* bytes when every column is as small as it can be */
    uint64_t *growth;           /* [MUC_BD_PRICES + 1] bytes that columns grow by at a price */
} counts;

typedef struct planning {
    muc_context *ctx;
    const muc_bd_matrix *matrix;
    muc_bd_bands grid;
    uint32_t kinds;
    bool samples;             /* one band of so many, or those between; */
    uint32_t lowest, highest; /* prices that are expected, then */
    size_t bands;             /* of the matrix that are counted now, */
    atomic_size_t next;       /* of which nobody has taken this one and those after it */
    counts *parts;            /* [part_count], a thread's each */
    size_t part_count;
    counts all; /* their sum */
} planning;

/* ---- counting ---- */

/* returns the bytes of the smallest offer */
static uint32_t count_offers(uint64_t *growth, const muc_bd_offers *offers)
{
    const muc_bd_offer *offer = offers->offer;

    for (unsigned i = 1; i < offers->count; i++)
        growth[offer[i].price] += offer[i].bytes - offer[i - 1].bytes;
    return offer[0].bytes;
}

/* w: [columns of the tile][k] */
static void plan_tile(const planning *p, const float *w, uint32_t band, uint32_t down, counts *sums)
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
        smallest += count_offers(sums->growth, &offers[c]);
        if (kept && !p->samples)
            kept[muc_bd_column_at(&p->grid, band, down, c)] =
                muc_bd_keep_offers(&offers[c], p->lowest, p->highest);
    }
    sums->smallest += smallest;
    sums->weights += t.columns * t.rows;
}

/* values: room for a band's */
static muc_status plan_band(const planning *p, size_t index, float *values, counts *sums)
{
    uint32_t band = (uint32_t)(p->samples ? index * SAMPLED : index + index / (SAMPLED - 1) + 1);

    MUC_TRY(muc_bd_read_band(p->ctx, p->matrix, &p->grid, band, values));
    for (uint32_t down = 0; down < p->grid.tiles_down; down++)
        plan_tile(p, values, band, down, sums);
    return MUC_OK;
}

static muc_status plan_part(void *arg, size_t part)
{
    planning *p = arg;
    muc_status status = MUC_OK;
    size_t index;
    float *values;

    MUC_TRY(MUC_NEW_ARRAY(p->ctx, room, (size_t)MUC_BD_TILE_N * p->grid.k, &values));
    while (status == MUC_OK && (index = atomic_fetch_add(&p->next, 1)) < p->bands)
        status = plan_band(p, index, values, &p->parts[part]);
    free(values);
    return status;
}

static void add_parts(planning *p)
{
    p->all.weights = p->all.smallest = 0;
    memset(p->all.growth, 0, (MUC_BD_PRICES + 1) * sizeof(*p->all.growth));
    for (size_t i = 0; i < p->part_count; i++) {
        const counts *part = &p->parts[i];

        p->all.weights += part->weights;
        p->all.smallest += part->smallest;
        for (size_t price = 0; price <= MUC_BD_PRICES; price++)
            p->all.growth[price] += part->growth[price];
    }
}

/* of the bands that are sampled, or of the others */
static muc_status count_bands(planning *p, const muc_bd_matrix *matrices, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const muc_bd_matrix *m = p->matrix = &matrices[i];
        uint32_t sampled;

        MUC_TRY(muc_bd_bands_of(p->ctx, m->name, MUC_NO_OFFSET, m->n, m->k, &p->grid));
        sampled = muc_bd_pieces(p->grid.bands, SAMPLED);
        p->bands = p->samples ? sampled : p->grid.bands - sampled;
        atomic_store(&p->next, 0);
        MUC_TRY(muc_parallel_for(p->ctx, p->part_count, plan_part, p));
        if (p->samples)
            continue;
        p->parts->smallest += sizeof(uint32_t); /* where its last tile ends */
        muc_progress(p->ctx, "planning blocks", i + 1, count);
    }
    add_parts(p);
    return MUC_OK;
}

/* ---- the price ---- */

static double budget_of(const planning *p, double bits)
{
    return bits * (double)p->all.weights / 8;
}

/* the lowest price whose bytes fit */
static uint32_t price_for(const planning *p, double bits)
{
    uint64_t total = p->all.smallest, budget = (uint64_t)budget_of(p, bits);
    uint32_t price = MUC_BD_PRICES + 1;

    while (price > 0 && total + p->all.growth[price - 1] <= budget)
        total += p->all.growth[--price];
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

static void close_counts(planning *p)
{
    for (size_t i = 0; p->parts && i < p->part_count; i++)
        free(p->parts[i].growth);
    free(p->parts);
    free(p->all.growth);
}

static muc_status open_counts(planning *p)
{
    p->part_count = muc_context_threads(p->ctx);
    MUC_TRY(MUC_NEW_ARRAY(p->ctx, room, MUC_BD_PRICES + 1, &p->all.growth));
    MUC_TRY(MUC_NEW_ARRAY(p->ctx, room, p->part_count, &p->parts));
    for (size_t i = 0; i < p->part_count; i++)
        MUC_TRY(MUC_NEW_ARRAY(p->ctx, room, MUC_BD_PRICES + 1, &p->parts[i].growth));
    return MUC_OK;
}

/* Plans within the budget; false, and *out untouched, if that is too little. */
static muc_status plan(muc_context *ctx, const muc_bd_matrix *matrices, size_t count,
                       uint32_t kinds, double bits, bool *fits, double *least_bits,
                       muc_bd_rule *out)
{
    planning p = { .ctx = ctx, .kinds = kinds };
    muc_status status = open_counts(&p);

    if (status == MUC_OK)
        status = count_growth(&p, matrices, count, bits);
    if (status == MUC_OK) {
        *least_bits = 8 * (double)p.all.smallest / (double)p.all.weights;
        *fits = (double)p.all.smallest <= budget_of(&p, bits);
        if (*fits)
            *out = (muc_bd_rule){ kinds, price_for(&p, bits) };
        if (!*fits || out->price < p.lowest || out->price > p.highest)
            forget_kept(matrices, count);
    }
    close_counts(&p);
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
