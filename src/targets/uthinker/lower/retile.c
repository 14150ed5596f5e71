/* retile.c - blocks found in one order of tiles, written in another. */
#include "targets/uthinker/lower/retile.h"

#include <string.h>

#include "mur_block.h"

enum { BLOCK = MUR_BLOCK_ELEMS, HEADER = 2 };

typedef struct block {
    const uint8_t *at;     /* its size byte */
    const uint8_t *header; /* its own, or the one that it shares; NULL: it needs none */
} block;

typedef struct matrix {
    muc_context *ctx;
    const char *name;
    uint32_t k, n, down; /* down: blocks of a column */
    block *blocks;       /* [n][down] */
} matrix;

static uint64_t pieces(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Visits every block in the order of tiles of a shape: its place in blocks, whether it is the first
 * of its column in the tile, and the tile's number. */
typedef muc_status visit(void *arg, block *b, bool first, uint64_t tile);

static muc_status walk(const matrix *m, muc_tile_shape shape, visit *each, void *arg)
{
    uint64_t tile = 0;

    for (uint32_t column = 0; column < m->n; column += smaller(shape.n, m->n - column))
        for (uint32_t row = 0; row < m->down; row += shape.k / BLOCK, tile++)
            for (uint32_t c = column; c < m->n && c - column < shape.n; c++)
                for (uint32_t r = row; r < m->down && r - row < shape.k / BLOCK; r++)
                    MUC_TRY(each(arg, &m->blocks[(size_t)c * m->down + r], r == row, tile));
    return MUC_OK;
}

typedef struct finding {
    const matrix *m;
    muc_reader reader;
    const uint8_t *header; /* of the block above */
} finding;

static muc_status find_block(void *arg, block *b, bool first, uint64_t tile)
{
    finding *f = arg;
    uint32_t size;

    (void)tile;
    MUC_TRY(muc_read_span(&f->reader, 1, "block", &b->at));
    size = *b->at & (MUR_BLOCK_SHARED - 1u);
    if (*b->at & MUR_BLOCK_SHARED) {
        b->header = first ? NULL : f->header;
        if (!b->header || size + HEADER >= MUR_BLOCK_SHARED)
            return muc_fail(f->m->ctx, MUC_MALFORMED, f->m->name, f->reader.at - 1,
                            "a block shares a header where there is none above it");
    } else {
        b->header = size >= HEADER ? b->at + 1 : NULL;
    }
    f->header = b->header;
    return muc_read_span(&f->reader, size, "block", &(const uint8_t *){ NULL });
}

typedef struct writing {
    uint8_t *data;
    size_t at;
    uint64_t tile; /* whose offset is written next */
} writing;

static muc_status write_block(void *arg, block *b, bool first, uint64_t tile)
{
    writing *w = arg;
    size_t size = *b->at & (MUR_BLOCK_SHARED - 1u);
    const uint8_t *from = b->at + 1;

    for (; w->tile <= tile; w->tile++)
        muc_store_u32(w->data + 4 * w->tile, (uint32_t)w->at);
    if (first && (*b->at & MUR_BLOCK_SHARED)) {
        w->data[w->at++] = (uint8_t)(size + HEADER);
        memcpy(w->data + w->at, b->header, HEADER);
        w->at += HEADER;
    } else {
        w->data[w->at++] = *b->at;
    }
    memcpy(w->data + w->at, from, size);
    w->at += size;
    return MUC_OK;
}

static uint64_t tiles_of(const matrix *m, muc_tile_shape shape)
{
    return pieces(m->n, shape.n) * pieces(m->k, shape.k);
}

static muc_status retile(matrix *m, muc_arena *arena, muc_bytes sequence, muc_tile_shape from,
                         muc_tile_shape to, muc_bytes *out)
{
    uint64_t index = 4 * (tiles_of(m, to) + 1), blocks = (uint64_t)m->n * m->down;
    finding f = { .m = m, .reader = muc_reader_of(m->ctx, sequence) };
    writing w = { .at = (size_t)index };
    const uint8_t *unused;

    MUC_TRY(muc_read_span(&f.reader, 4 * (tiles_of(m, from) + 1), "tile index", &unused));
    MUC_TRY(walk(m, from, find_block, &f));
    if (f.reader.at != sequence.size)
        return muc_fail(m->ctx, MUC_MALFORMED, m->name, f.reader.at,
                        "the blocks end here, the sequence has %zu bytes", sequence.size);
    MUC_TRY(muc_arena_new_large(m->ctx, arena, index + sequence.size + HEADER * blocks, &w.data));
    MUC_TRY(walk(m, to, write_block, &w));
    muc_store_u32(w.data + 4 * tiles_of(m, to), (uint32_t)w.at);
    *out = (muc_bytes){ w.data, w.at, sequence.name };
    return MUC_OK;
}

muc_status muc_retile(muc_context *ctx, muc_arena *arena, muc_bytes sequence, uint32_t k,
                      uint32_t n, muc_tile_shape from, muc_tile_shape to, muc_bytes *out)
{
    matrix m = { ctx, sequence.name, k, n, (uint32_t)pieces(k, BLOCK), NULL };
    muc_arena room = { 0 };
    muc_status status;

    /* what the sequence holds bounds what is allocated */
    if ((uint64_t)n * m.down > sequence.size)
        return muc_fail(ctx, MUC_MALFORMED, sequence.name, sequence.size,
                        "%zu bytes, too few for %u columns of %u blocks", sequence.size, n, m.down);
    status = MUC_ARENA_NEW(ctx, &room, (size_t)n * m.down, &m.blocks);
    if (status == MUC_OK)
        status = retile(&m, arena, sequence, from, to, out);
    muc_arena_free(&room);
    return status;
}
