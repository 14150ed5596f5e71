/* bd_sequence.c - tiles of 64 by 8: encoded, checked, decoded. */
#include "quant/bd_sequence.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/large.h"
#include "base/threads.h"
#include "quant/bd_band.h"

static const char room[] = "blockdialect";

/* ---- encoding ---- */

typedef struct encoded_band {
    uint8_t *data;
    size_t bytes;
    uint32_t at; /* where it goes in the sequence */
    uint64_t blocks[MUC_BD_KIND_COUNT], shared;
    double error, energy;
} encoded_band;

typedef struct encoding {
    muc_context *ctx;
    const muc_bd_matrix *matrix;
    const muc_bd_rule *rule; /* or NULL: */
    muc_bd_chooser *choose;
    void *choose_arg;
    muc_bd_bands grid;
    encoded_band *bands;
    uint32_t *tile_bytes; /* [tiles] */
    atomic_size_t next;   /* bands: nobody has taken this one and those after it */
} encoding;

static void encode_column(const encoding *e, const float *w, const muc_bd_column *column,
                          uint32_t first_k, encoded_band *out)
{
    const float *importance = muc_bd_importance_at(e->matrix, first_k);

    for (unsigned b = 0; b < muc_bd_block_count(column->rows); b++) {
        const muc_bd_block *block = &column->block[b];
        unsigned n = muc_bd_block_elements(column->rows, b), at = b * MUC_BD_ELEMS;
        double energy;

        out->bytes += muc_bd_write(block, n, out->data + out->bytes);
        out->blocks[block->kind]++;
        out->shared += block->shared;
        if (e->matrix->unmeasured)
            continue;
        out->error += muc_bd_error(block, w + at, importance ? importance + at : NULL, n, &energy);
        out->energy += energy;
    }
}

/* Columns of as many rows that wait to be chosen for together. */
typedef struct waiting {
    unsigned count, rows;
    const float *importance;
    const float *w[MUC_BD_LANES];
    muc_bd_column *out[MUC_BD_LANES];
} waiting;

static void choose_waiting(const encoding *e, waiting *all)
{
    if (all->count > 0)
        muc_bd_choose_columns(e->rule, all->w, all->count, all->importance, all->rows, all->out);
    all->count = 0;
}

static void choose_later(const encoding *e, waiting *all, const muc_bd_tile *t, const float *w,
                         muc_bd_column *out)
{
    const float *importance = muc_bd_importance_at(e->matrix, t->first_k);

    if (all->count == MUC_BD_LANES || all->rows != t->rows || all->importance != importance)
        choose_waiting(e, all);
    all->rows = t->rows;
    all->importance = importance;
    all->w[all->count] = w;
    all->out[all->count++] = out;
}

/* Takes what planning has found, or finds it. */
static void choose_tile(const encoding *e, uint32_t band, uint32_t down, const float *values,
                        muc_bd_column *columns, waiting *later)
{
    const muc_bd_bands *g = &e->grid;
    const uint64_t *all = e->matrix->kept;
    muc_bd_tile t = muc_bd_tile_at(g, band, down);

    for (uint32_t c = 0; c < t.columns; c++) {
        const float *w = values + (size_t)c * g->k + t.first_k;
        muc_bd_column *out = columns + (size_t)c * g->tiles_down + down;
        uint64_t kept = all ? all[muc_bd_column_at(g, band, down, c)] : 0;

        if (kept != 0)
            muc_bd_take_kept(kept, e->rule, w, t.rows, out);
        else
            choose_later(e, later, &t, w, out);
    }
}

/* columns: [columns of the band][tiles_down] */
static muc_status choose_columns(const encoding *e, uint32_t index, const float *values,
                                 muc_bd_column *columns)
{
    const muc_bd_bands *g = &e->grid;
    waiting later = { .count = 0 };

    for (uint32_t down = 0; down < g->tiles_down; down++) {
        muc_bd_tile t = muc_bd_tile_at(g, index, down);

        for (uint32_t c = 0; c < t.columns; c++)
            columns[(size_t)c * g->tiles_down + down].rows = t.rows;
        if (e->rule)
            choose_tile(e, index, down, values, columns, &later);
    }
    choose_waiting(e, &later);
    for (uint32_t c = 0; c < muc_bd_tile_at(g, index, 0).columns && !e->rule; c++)
        MUC_TRY(e->choose(e->choose_arg, index * MUC_BD_TILE_N + c, values + (size_t)c * g->k,
                          columns + (size_t)c * g->tiles_down));
    return MUC_OK;
}

/* What one thread has for a band at a time, the largest. */
typedef struct band_room {
    float *values;
    muc_bd_column *columns;
    uint8_t *data;
} band_room;

static void encode_tiles(const encoding *e, uint32_t index, const float *values,
                         const muc_bd_column *columns, encoded_band *out)
{
    const muc_bd_bands *g = &e->grid;

    for (uint32_t down = 0; down < g->tiles_down; down++) {
        muc_bd_tile t = muc_bd_tile_at(g, index, down);
        size_t start = out->bytes;

        for (uint32_t c = 0; c < t.columns; c++)
            encode_column(e, values + (size_t)c * g->k + t.first_k,
                          &columns[(size_t)c * g->tiles_down + down], t.first_k, out);
        e->tile_bytes[index * g->tiles_down + down] = (uint32_t)(out->bytes - start);
    }
}

static muc_status encode_band(const encoding *e, uint32_t index, const band_room *r)
{
    encoded_band *out = &e->bands[index];

    MUC_TRY(muc_bd_read_band(e->ctx, e->matrix, &e->grid, index, r->values));
    MUC_TRY(choose_columns(e, index, r->values, r->columns));
    out->data = r->data;
    encode_tiles(e, index, r->values, r->columns, out);
    out->data = NULL;
    MUC_TRY(MUC_NEW_ARRAY(e->ctx, room, out->bytes, &out->data));
    memcpy(out->data, r->data, out->bytes);
    return MUC_OK;
}

static muc_status new_room(const encoding *e, band_room *out)
{
    size_t blocks = (size_t)MUC_BD_TILE_N * muc_bd_pieces(e->grid.k, MUC_BD_ELEMS);

    MUC_TRY(MUC_NEW_ARRAY(e->ctx, room, (size_t)MUC_BD_TILE_N * e->grid.k, &out->values));
    MUC_TRY(MUC_NEW_ARRAY(e->ctx, room, (size_t)MUC_BD_TILE_N * e->grid.tiles_down, &out->columns));
    return MUC_NEW_ARRAY(e->ctx, room, blocks * MUC_BD_MAX_BYTES, &out->data);
}

static muc_status encode_part(void *arg, size_t part)
{
    encoding *e = arg;
    band_room r = { NULL, NULL, NULL };
    muc_status status = new_room(e, &r);
    size_t index;

    (void)part;
    while (status == MUC_OK && (index = atomic_fetch_add(&e->next, 1)) < e->grid.bands)
        status = encode_band(e, (uint32_t)index, &r);
    free(r.data);
    free(r.columns);
    free(r.values);
    return status;
}

enum { JOINED = 32 /* bands, which take some pages */ };

typedef struct joining {
    const encoding *encoding;
    muc_large_file out;
} joining;

static muc_status join_some(void *arg, size_t index)
{
    const joining *j = arg;
    const encoding *e = j->encoding;
    encoded_band *first = &e->bands[JOINED * index], *end = first + JOINED;
    const encoded_band *last;
    uint8_t *joined;

    if (end > e->bands + e->grid.bands)
        end = e->bands + e->grid.bands;
    last = end - 1;
    MUC_TRY(MUC_NEW_ARRAY(e->ctx, room, last->at - first->at + last->bytes, &joined));
    for (encoded_band *band = first; band < end; band++) {
        memcpy(joined + (band->at - first->at), band->data, band->bytes);
        free(band->data);
        band->data = NULL;
    }
    muc_large_put(&j->out, first->at, joined, last->at - first->at + last->bytes);
    free(joined);
    return MUC_OK;
}

static muc_status join_bands(const encoding *e, muc_bd_sequence *out)
{
    uint64_t total = muc_bd_bands_index_bytes(&e->grid);
    joining j = { .encoding = e };
    muc_status status;
    uint32_t at = muc_bd_bands_index_bytes(&e->grid);

    for (uint32_t i = 0; i < e->grid.bands; i++)
        total += e->bands[i].bytes;
    if (total > UINT32_MAX)
        return muc_fail(e->ctx, MUC_NOFIT, e->matrix->name, MUC_NO_OFFSET,
                        "its blocks take %llu bytes, more than 32-bit offsets reach",
                        (unsigned long long)total);
    MUC_TRY(muc_large_open(e->ctx, (size_t)total, &j.out));
    out->data = j.out.data;
    out->bytes = (uint32_t)total;
    for (uint32_t i = 0; i < e->grid.tiles; i++) {
        muc_store_u32(out->data + 4 * (size_t)i, at);
        at += e->tile_bytes[i];
    }
    muc_store_u32(out->data + 4 * (size_t)e->grid.tiles, at);
    at = muc_bd_bands_index_bytes(&e->grid);
    for (uint32_t i = 0; i < e->grid.bands; i++) {
        encoded_band *b = &e->bands[i];

        b->at = at;
        at += (uint32_t)b->bytes;
        for (unsigned kind = 0; kind < MUC_BD_KIND_COUNT; kind++)
            out->blocks[kind] += b->blocks[kind];
        out->shared += b->shared;
        out->error += b->error;
        out->energy += b->energy;
    }
    status = muc_parallel_for(e->ctx, muc_bd_pieces(e->grid.bands, JOINED), join_some, &j);
    muc_large_close(&j.out);
    if (status != MUC_OK)
        muc_bd_sequence_free(out);
    return status;
}

static muc_status encode(encoding *e, muc_bd_sequence *out)
{
    const muc_bd_matrix *matrix = e->matrix;
    muc_status status;

    memset(out, 0, sizeof(*out));
    MUC_TRY(muc_bd_bands_of(e->ctx, matrix->name, MUC_NO_OFFSET, matrix->n, matrix->k, &e->grid));
    MUC_TRY(MUC_NEW_ARRAY(e->ctx, room, e->grid.bands, &e->bands));
    status = MUC_NEW_ARRAY(e->ctx, room, e->grid.tiles, &e->tile_bytes);
    if (status == MUC_OK)
        status = muc_parallel_for(e->ctx, muc_context_threads(e->ctx), encode_part, e);
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
    muc_bd_bands grid;
} checking;

/* The tile's offsets have been checked to rise within the bytes. */
static muc_status check_tile(const checking *p, uint32_t index)
{
    muc_bd_tile t =
        muc_bd_tile_at(&p->grid, index / p->grid.tiles_down, index % p->grid.tiles_down);
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
    uint32_t before = muc_bd_bands_index_bytes(&p->grid);
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

    MUC_TRY(muc_bd_bands_of(ctx, bytes.name, base_offset, n, k, &p.grid));
    MUC_TRY(check_index(&p));
    return muc_parallel_for(ctx, p.grid.bands, check_band, &p);
}

muc_status muc_bd_decode_column(muc_context *ctx, muc_bytes bytes, uint32_t n, uint32_t k,
                                uint32_t column, float *out)
{
    muc_bd_bands g;

    MUC_TRY(muc_bd_bands_of(ctx, bytes.name, MUC_NO_OFFSET, n, k, &g));
    for (uint32_t down = 0; down < g.tiles_down; down++) {
        uint32_t band = column / MUC_BD_TILE_N;
        muc_bd_tile t = muc_bd_tile_at(&g, band, down);
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
