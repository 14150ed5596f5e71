/* bd_sequence.c - tiles of 64 by 8: planned under a byte budget, encoded, checked, decoded.
 *
 * A band is the 8 columns of one row of tiles. Bands are independent and follow each other in the
 * sequence, so they are the unit of parallel work, and only 8 columns are ever held as floats.
 *
 * The price of a byte is found by counting, not by bisection: every block says at which price it
 * would grow, in steps of a fixed scale; one histogram of bytes over prices then tells the size at
 * every price. Counts are integers, so the order in which threads add them does not matter.
 */
#include "quant/bd_sequence.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/large.h"
#include "base/threads.h"

static const char room[] = "blockdialect";

/* ---- geometry ---- */

typedef struct grid {
    uint32_t n, k, bands, tiles_down; /* tiles_down: tiles in a band */
    uint32_t tiles;
} grid;

static uint32_t pieces(uint32_t length, uint32_t piece)
{
    return length / piece + (length % piece != 0);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint64_t muc_bd_index_bytes(uint32_t n, uint32_t k)
{
    return 4 * ((uint64_t)pieces(n, MUC_BD_TILE_N) * pieces(k, MUC_BD_TILE_K) + 1);
}

uint64_t muc_bd_least_column_bytes(uint32_t k)
{
    uint64_t bytes = 0;

    for (uint32_t at = 0; at < k; at += MUC_BD_ELEMS) {
        bytes += muc_bd_kind_bytes(MUC_BD_B4, smaller(MUC_BD_ELEMS, k - at));
        if (at % MUC_BD_TILE_K != 0)
            bytes -= 2; /* the header of the block above it */
    }
    return bytes;
}

static muc_status grid_of(muc_context *ctx, const char *name, uint64_t offset, uint32_t n,
                          uint32_t k, grid *out)
{
    uint64_t tiles = (uint64_t)pieces(n, MUC_BD_TILE_N) * pieces(k, MUC_BD_TILE_K);

    if (n == 0 || k == 0)
        return muc_fail(ctx, MUC_MALFORMED, name, offset, "a matrix of %u x %u has no elements", n,
                        k);
    if (tiles >= UINT32_MAX / 4 - 1)
        return muc_fail(ctx, MUC_NOFIT, name, offset,
                        "a matrix of %u x %u is too large for 32-bit offsets", n, k);
    *out = (grid){ n, k, pieces(n, MUC_BD_TILE_N), pieces(k, MUC_BD_TILE_K), (uint32_t)tiles };
    return MUC_OK;
}

static uint32_t index_bytes(const grid *g)
{
    return (uint32_t)muc_bd_index_bytes(g->n, g->k);
}

/* A tile: its columns, and where its elements lie in them. */
typedef struct tile {
    uint32_t columns, first_k, rows;
} tile;

static tile tile_at(const grid *g, uint32_t band, uint32_t down)
{
    uint32_t first_k = down * MUC_BD_TILE_K;

    return (tile){ smaller(MUC_BD_TILE_N, g->n - band * MUC_BD_TILE_N), first_k,
                   smaller(MUC_BD_TILE_K, g->k - first_k) };
}

/* ---- a band of floats ---- */

static muc_status read_floats(muc_context *ctx, const muc_bd_matrix *matrix, uint32_t column,
                              float *out)
{
    (void)ctx;
    memcpy(out, (const float *)matrix->data + (size_t)column * matrix->k,
           matrix->k * sizeof(float));
    return MUC_OK;
}

muc_bd_matrix muc_bd_matrix_of(const char *name, const float *values, uint32_t n, uint32_t k)
{
    return (muc_bd_matrix){ .name = name, .n = n, .k = k, .read = read_floats, .data = values };
}

static muc_status read_column(muc_context *ctx, const muc_bd_matrix *matrix, uint32_t column,
                              float *out)
{
    MUC_TRY(matrix->read(ctx, matrix, column, out));
    for (uint32_t i = 0; i < matrix->k; i++)
        if (!(fabsf(out[i]) <= MUC_BD_MAX_WEIGHT))
            return muc_fail(ctx, MUC_UNSUPPORTED, matrix->name, MUC_NO_OFFSET,
                            "element [%u][%u] is %g; BlockDialect holds magnitudes up to 65504",
                            column, i, (double)out[i]);
    return MUC_OK;
}

/* Allocates *out [columns of the band][k]; the caller frees it. */
static muc_status read_band(muc_context *ctx, const muc_bd_matrix *matrix, const grid *g,
                            uint32_t band, float **out)
{
    uint32_t columns = tile_at(g, band, 0).columns;
    muc_status status = MUC_OK;

    MUC_TRY(MUC_NEW_ARRAY(ctx, room, (size_t)columns * g->k, out));
    for (uint32_t c = 0; c < columns && status == MUC_OK; c++)
        status = read_column(ctx, matrix, band * MUC_BD_TILE_N + c, *out + (size_t)c * g->k);
    if (status != MUC_OK)
        free(*out);
    return status;
}

static const float *importance_at(const muc_bd_matrix *matrix, uint32_t k)
{
    return matrix->importance ? matrix->importance + k : NULL;
}

/* ---- planning ---- */

typedef struct planning {
    muc_context *ctx;
    const muc_bd_matrix *matrix;
    grid grid;
    uint32_t kinds;
    atomic_uint_fast64_t *smallest; /* bytes when every column is as small as it can be */
    atomic_uint_fast64_t *growth;   /* [MUC_BD_PRICES + 1] bytes that columns grow by at a price */
} planning;

/* w: [columns of the tile][k] */
static void plan_tile(const planning *p, const float *w, const tile *t)
{
    const float *columns[MUC_BD_TILE_N];
    muc_bd_offers offers[MUC_BD_TILE_N];

    for (uint32_t c = 0; c < t->columns; c++)
        columns[c] = w + (size_t)c * p->grid.k + t->first_k;
    muc_bd_offer_columns(p->kinds, columns, t->columns, importance_at(p->matrix, t->first_k),
                         t->rows, offers);
    for (uint32_t c = 0; c < t->columns; c++) {
        const muc_bd_offer *offer = offers[c].offer;

        atomic_fetch_add_explicit(p->smallest, offer[0].bytes, memory_order_relaxed);
        for (unsigned i = 1; i < offers[c].count; i++)
            atomic_fetch_add_explicit(&p->growth[offer[i].price],
                                      offer[i].bytes - offer[i - 1].bytes, memory_order_relaxed);
    }
}

static muc_status plan_band(void *arg, size_t band)
{
    const planning *p = arg;
    const grid *g = &p->grid;
    float *values;

    MUC_TRY(read_band(p->ctx, p->matrix, g, (uint32_t)band, &values));
    for (uint32_t down = 0; down < g->tiles_down; down++) {
        tile t = tile_at(g, (uint32_t)band, down);

        plan_tile(p, values, &t);
    }
    free(values);
    return MUC_OK;
}

static muc_status count_growth(planning *p, const muc_bd_matrix *matrices, size_t count,
                               uint64_t *weights)
{
    *weights = 0;
    for (size_t i = 0; i < count; i++) {
        p->matrix = &matrices[i];
        MUC_TRY(
            grid_of(p->ctx, p->matrix->name, MUC_NO_OFFSET, p->matrix->n, p->matrix->k, &p->grid));
        atomic_fetch_add(p->smallest, index_bytes(&p->grid));
        *weights += (uint64_t)p->matrix->n * p->matrix->k;
        MUC_TRY(muc_parallel_for(p->ctx, p->grid.bands, plan_band, p));
        muc_progress(p->ctx, "planning blocks", i + 1, count);
    }
    return MUC_OK;
}

/* the lowest price whose bytes fit */
static uint32_t price_for(const planning *p, uint64_t budget)
{
    uint64_t total = *p->smallest;
    uint32_t price = MUC_BD_PRICES + 1;

    while (price > 0 && total + p->growth[price - 1] <= budget)
        total += p->growth[--price];
    return price;
}

/* Plans within budget bytes; false, and *out untouched, if that is too few. */
static muc_status plan(muc_context *ctx, const muc_bd_matrix *matrices, size_t count,
                       uint32_t kinds, double bits, bool *fits, double *least_bits,
                       muc_bd_rule *out)
{
    atomic_uint_fast64_t smallest = 0;
    planning p = { .ctx = ctx, .kinds = kinds, .smallest = &smallest };
    uint64_t weights;
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(ctx, room, MUC_BD_PRICES + 1, &p.growth));
    status = count_growth(&p, matrices, count, &weights);
    if (status == MUC_OK) {
        double budget = bits * (double)weights / 8;

        *least_bits = 8 * (double)smallest / (double)weights;
        *fits = (double)smallest <= budget;
        if (*fits)
            *out = (muc_bd_rule){ kinds, price_for(&p, (uint64_t)budget) };
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

/* ---- encoding ---- */

typedef struct encoded_band {
    uint8_t *data;
    size_t bytes;
    uint64_t blocks[MUC_BD_KIND_COUNT], shared;
    double error, energy;
} encoded_band;

typedef struct encoding {
    muc_context *ctx;
    const muc_bd_matrix *matrix;
    const muc_bd_rule *rule; /* or NULL: */
    muc_bd_chooser *choose;
    void *choose_arg;
    grid grid;
    encoded_band *bands;
    uint32_t *tile_bytes; /* [tiles] */
} encoding;

static void encode_column(const encoding *e, const float *w, const muc_bd_column *column,
                          uint32_t first_k, encoded_band *out)
{
    const float *importance = importance_at(e->matrix, first_k);

    for (unsigned b = 0; b < muc_bd_block_count(column->rows); b++) {
        const muc_bd_block *block = &column->block[b];
        unsigned n = muc_bd_block_elements(column->rows, b), at = b * MUC_BD_ELEMS;
        double energy;

        out->bytes += muc_bd_write(block, n, out->data + out->bytes);
        out->blocks[block->kind]++;
        out->shared += block->shared;
        out->error += muc_bd_error(block, w + at, importance ? importance + at : NULL, n, &energy);
        out->energy += energy;
    }
}

static void choose_tile(const encoding *e, const tile *t, uint32_t down, const float *values,
                        muc_bd_column *columns)
{
    const float *w[MUC_BD_TILE_N];
    muc_bd_column *out[MUC_BD_TILE_N];

    for (uint32_t c = 0; c < t->columns; c++) {
        w[c] = values + (size_t)c * e->grid.k + t->first_k;
        out[c] = columns + (size_t)c * e->grid.tiles_down + down;
    }
    muc_bd_choose_columns(e->rule, w, t->columns, importance_at(e->matrix, t->first_k), t->rows,
                          out);
}

/* columns: [columns of the band][tiles_down] */
static muc_status choose_columns(const encoding *e, uint32_t index, const float *values,
                                 muc_bd_column *columns)
{
    const grid *g = &e->grid;

    for (uint32_t down = 0; down < g->tiles_down; down++) {
        tile t = tile_at(g, index, down);

        if (e->rule)
            choose_tile(e, &t, down, values, columns);
        for (uint32_t c = 0; c < t.columns; c++)
            columns[(size_t)c * g->tiles_down + down].rows = t.rows;
    }
    for (uint32_t c = 0; c < tile_at(g, index, 0).columns && !e->rule; c++)
        MUC_TRY(e->choose(e->choose_arg, index * MUC_BD_TILE_N + c, values + (size_t)c * g->k,
                          columns + (size_t)c * g->tiles_down));
    return MUC_OK;
}

static void encode_tiles(const encoding *e, uint32_t index, const float *values,
                         const muc_bd_column *columns, encoded_band *out)
{
    const grid *g = &e->grid;

    for (uint32_t down = 0; down < g->tiles_down; down++) {
        tile t = tile_at(g, index, down);
        size_t start = out->bytes;

        for (uint32_t c = 0; c < t.columns; c++)
            encode_column(e, values + (size_t)c * g->k + t.first_k,
                          &columns[(size_t)c * g->tiles_down + down], t.first_k, out);
        e->tile_bytes[index * g->tiles_down + down] = (uint32_t)(out->bytes - start);
    }
}

/* Encodes into a buffer for the worst case, then keeps what it took. */
static muc_status encode_band(void *arg, size_t index)
{
    const encoding *e = arg;
    encoded_band *out = &e->bands[index];
    uint32_t columns = tile_at(&e->grid, (uint32_t)index, 0).columns;
    size_t blocks = (size_t)columns * pieces(e->grid.k, MUC_BD_ELEMS);
    muc_bd_column *chosen = NULL;
    muc_status status;
    float *values;
    void *kept;

    MUC_TRY(read_band(e->ctx, e->matrix, &e->grid, (uint32_t)index, &values));
    status = MUC_NEW_ARRAY(e->ctx, room, blocks * MUC_BD_MAX_BYTES, &out->data);
    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(e->ctx, room, (size_t)columns * e->grid.tiles_down, &chosen);
    if (status == MUC_OK)
        status = choose_columns(e, (uint32_t)index, values, chosen);
    if (status == MUC_OK) {
        encode_tiles(e, (uint32_t)index, values, chosen, out);
        kept = realloc(out->data, out->bytes);
        out->data = kept ? kept : out->data;
    }
    free(chosen);
    free(values);
    return status;
}

static muc_status join_bands(const encoding *e, muc_bd_sequence *out)
{
    uint64_t total = index_bytes(&e->grid);
    uint32_t at = index_bytes(&e->grid);

    for (uint32_t i = 0; i < e->grid.bands; i++)
        total += e->bands[i].bytes;
    if (total > UINT32_MAX)
        return muc_fail(e->ctx, MUC_NOFIT, e->matrix->name, MUC_NO_OFFSET,
                        "its blocks take %llu bytes, more than 32-bit offsets reach",
                        (unsigned long long)total);
    MUC_TRY(muc_large_new(e->ctx, (size_t)total, &out->data));
    out->bytes = (uint32_t)total;
    for (uint32_t i = 0; i < e->grid.tiles; i++) {
        muc_store_u32(out->data + 4 * (size_t)i, at);
        at += e->tile_bytes[i];
    }
    muc_store_u32(out->data + 4 * (size_t)e->grid.tiles, at);
    at = index_bytes(&e->grid);
    for (uint32_t i = 0; i < e->grid.bands; i++) {
        encoded_band *b = &e->bands[i];

        memcpy(out->data + at, b->data, b->bytes);
        free(b->data);
        b->data = NULL;
        at += (uint32_t)b->bytes;
        for (unsigned kind = 0; kind < MUC_BD_KIND_COUNT; kind++)
            out->blocks[kind] += b->blocks[kind];
        out->shared += b->shared;
        out->error += b->error;
        out->energy += b->energy;
    }
    return MUC_OK;
}

static muc_status encode(encoding *e, muc_bd_sequence *out)
{
    const muc_bd_matrix *matrix = e->matrix;
    muc_status status;

    memset(out, 0, sizeof(*out));
    MUC_TRY(grid_of(e->ctx, matrix->name, MUC_NO_OFFSET, matrix->n, matrix->k, &e->grid));
    MUC_TRY(MUC_NEW_ARRAY(e->ctx, room, e->grid.bands, &e->bands));
    status = MUC_NEW_ARRAY(e->ctx, room, e->grid.tiles, &e->tile_bytes);
    if (status == MUC_OK)
        status = muc_parallel_for(e->ctx, e->grid.bands, encode_band, e);
    if (status == MUC_OK)
        status = join_bands(e, out);
    for (uint32_t i = 0; i < e->grid.bands; i++)
        free(e->bands[i].data);
    free(e->tile_bytes);
    free(e->bands);
    return status;
}

muc_status muc_bd_encode(muc_context *ctx, const muc_bd_matrix *matrix, muc_bd_chooser *choose,
                         void *arg, muc_bd_sequence *out)
{
    return encode(&(encoding){ .ctx = ctx, .matrix = matrix, .choose = choose, .choose_arg = arg },
                  out);
}

muc_status muc_bd_quantize(muc_context *ctx, const muc_bd_matrix *matrix, const muc_bd_rule *rule,
                           muc_bd_sequence *out)
{
    return encode(&(encoding){ .ctx = ctx, .matrix = matrix, .rule = rule }, out);
}

void muc_bd_sequence_free(muc_bd_sequence *sequence)
{
    muc_large_free(sequence->data, sequence->bytes);
    memset(sequence, 0, sizeof(*sequence));
}

/* ---- checking and decoding ---- */

typedef struct checking {
    muc_context *ctx;
    muc_bytes bytes;
    uint64_t base_offset;
    grid grid;
} checking;

/* The tile's offsets have been checked to rise within the bytes. */
static muc_status check_tile(const checking *p, uint32_t index)
{
    tile t = tile_at(&p->grid, index / p->grid.tiles_down, index % p->grid.tiles_down);
    uint32_t at = muc_load_u32(p->bytes.data + 4 * (size_t)index);
    uint32_t end = muc_load_u32(p->bytes.data + 4 * (size_t)index + 4);

    for (uint32_t c = 0; c < t.columns; c++) {
        muc_bd_column column;

        for (unsigned b = 0; b < muc_bd_block_count(t.rows); b++) {
            const char *reason;
            unsigned used =
                muc_bd_read(p->bytes.data + at, end - at, muc_bd_block_elements(t.rows, b),
                            b > 0 ? &column.block[0] : NULL, &column.block[b], &reason);

            if (used == 0)
                return muc_fail(p->ctx, MUC_MALFORMED, p->bytes.name, p->base_offset + at,
                                "tile %u, column %u, block %u: %s", index, c, b, reason);
            at += used;
        }
    }
    if (at != end)
        return muc_fail(p->ctx, MUC_MALFORMED, p->bytes.name, p->base_offset + at,
                        "tile %u has %u bytes after its last block", index, end - at);
    return MUC_OK;
}

static muc_status check_band(void *arg, size_t band)
{
    const checking *p = arg;

    for (uint32_t down = 0; down < p->grid.tiles_down; down++)
        MUC_TRY(check_tile(p, (uint32_t)band * p->grid.tiles_down + down));
    return MUC_OK;
}

static muc_status check_index(const checking *p)
{
    uint32_t before = index_bytes(&p->grid);
    size_t size = p->bytes.size;

    if (size < before)
        return muc_fail(p->ctx, MUC_MALFORMED, p->bytes.name, p->base_offset,
                        "the index of %u tiles needs %u bytes, the sequence has %zu", p->grid.tiles,
                        before, size);
    for (uint32_t i = 0; i <= p->grid.tiles; i++) {
        uint32_t offset = muc_load_u32(p->bytes.data + 4 * (size_t)i);
        bool fits = i == 0 ? offset == before : offset >= before && offset <= size;

        if (!fits || (i == p->grid.tiles && offset != size))
            return muc_fail(p->ctx, MUC_MALFORMED, p->bytes.name, p->base_offset + 4 * (uint64_t)i,
                            "the offset of tile %u is %u, after %u, in %zu bytes", i, offset,
                            before, size);
        before = offset;
    }
    return MUC_OK;
}

muc_status muc_bd_check(muc_context *ctx, muc_bytes bytes, uint64_t base_offset, uint32_t n,
                        uint32_t k)
{
    checking p = { .ctx = ctx, .bytes = bytes, .base_offset = base_offset };

    MUC_TRY(grid_of(ctx, bytes.name, base_offset, n, k, &p.grid));
    MUC_TRY(check_index(&p));
    return muc_parallel_for(ctx, p.grid.bands, check_band, &p);
}

muc_status muc_bd_decode_column(muc_context *ctx, muc_bytes bytes, uint32_t n, uint32_t k,
                                uint32_t column, float *out)
{
    grid g;

    MUC_TRY(grid_of(ctx, bytes.name, MUC_NO_OFFSET, n, k, &g));
    for (uint32_t down = 0; down < g.tiles_down; down++) {
        uint32_t band = column / MUC_BD_TILE_N;
        tile t = tile_at(&g, band, down);
        size_t at = muc_load_u32(bytes.data + 4 * ((size_t)band * g.tiles_down + down));
        uint32_t above = column % MUC_BD_TILE_N * muc_bd_block_count(t.rows);
        muc_bd_block block[2];

        for (uint32_t i = 0; i < above; i++)
            at += (bytes.data[at] & ~(unsigned)MUC_BD_SHARED) + 1;
        for (unsigned b = 0; b < muc_bd_block_count(t.rows); b++) {
            unsigned elements = muc_bd_block_elements(t.rows, b);
            const char *reason;

            at += muc_bd_read(bytes.data + at, bytes.size - at, elements, b > 0 ? &block[0] : NULL,
                              &block[b], &reason);
            muc_bd_values(&block[b], elements, out + t.first_k + b * MUC_BD_ELEMS);
        }
    }
    return MUC_OK;
}
