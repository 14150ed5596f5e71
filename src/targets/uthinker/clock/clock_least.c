/* clock_least.c - the fewest bytes that any schedule of a model can move: SPEC.md section 9. */
#include "targets/uthinker/clock/clock.h"

#include "base/bytes.h"

enum { TILE_K = 64, TILE_N = 8, TOKENS = 64 };

/* The bytes of the blocks of the sequence of `tiles` tiles at *at, which moves to the next; 0 if
 * region WGTS does not hold such a sequence there. */
static uint64_t sequence_bytes(muc_bytes wgts, uint64_t tiles, uint64_t *at)
{
    uint64_t index = 4 * (tiles + 1), first, end;

    if (*at > wgts.size || index > wgts.size - *at)
        return 0;
    first = muc_load_u32(wgts.data + *at);
    end = muc_load_u32(wgts.data + *at + 4 * tiles);
    if (first > end || end > wgts.size - *at)
        return 0;
    *at = (*at + end + 15) / 16 * 16;
    return end - first;
}

static uint64_t tiles_of(uint64_t k, uint64_t n, uint64_t layers)
{
    return (k + TILE_K - 1) / TILE_K * ((n + TILE_N - 1) / TILE_N) * layers;
}

/* The blocks of every matrix once, the embedding's only where it is the head too. Section 8 gives
 * the order of the kinds. */
static uint64_t weight_bytes(const mur_program *program)
{
    const mur_meta *meta = program->meta;
    const muc_bytes wgts = { program->section[MUR_SECTION_WGTS],
                             program->section_bytes[MUR_SECTION_WGTS], "WGTS" };
    uint64_t d = meta->width, f = meta->ffn_width, layers = meta->layers, at = 0, bytes;
    uint64_t queries = (uint64_t)meta->heads * meta->head_width;
    uint64_t keys = (uint64_t)meta->kv_heads * meta->head_width;
    const uint64_t shapes[][2] = { { f, d },       { d, f },    { d, f },   { queries, d },
                                   { d, queries }, { d, keys }, { d, keys } };

    bytes = sequence_bytes(wgts, tiles_of(d, meta->vocabulary, 1), &at);
    if (!meta->tied)
        bytes = sequence_bytes(wgts, tiles_of(d, meta->vocabulary, 1), &at);
    for (unsigned i = 0; i < MUC_COUNT(shapes); i++)
        bytes += sequence_bytes(wgts, tiles_of(shapes[i][0], shapes[i][1], layers), &at);
    return bytes;
}

/* what one kv head of one layer reads and writes of the KV region */
static uint64_t head_bytes(const mur_meta *meta, uint32_t pos, uint32_t m)
{
    uint64_t hd = meta->head_width, end = (uint64_t)pos + m, bytes = 0, keys = 0, rows;

    for (uint64_t at = 0; at < hd; at += TILE_K)
        keys += muc_uthinker_slots_bytes((uint32_t)(hd - at < TILE_K ? hd - at : TILE_K),
                                         meta->terms_k);
    if (!meta->recompute)
        bytes += end * keys; /* pos rows read, m written */
    /* values: whole chunks of the past and those that this call fills; rows of unfinished ones */
    bytes += end / TOKENS * hd * muc_uthinker_slots_bytes(TOKENS, meta->terms_v);
    rows = pos % TOKENS + (end % TOKENS < m ? end % TOKENS : m);
    return bytes + rows * hd * 4;
}

uint64_t muc_clock_least_bytes(const mur_program *program, uint32_t pos, uint32_t m)
{
    const mur_meta *meta = program->meta;
    uint64_t d = meta->width, layers = meta->layers, end = (uint64_t)pos + m, bytes;

    bytes = weight_bytes(program) + layers * meta->kv_heads * head_bytes(meta, pos, m);
    if (meta->recompute)
        bytes += layers * end * muc_uthinker_slots_bytes(meta->width, meta->terms_x);
    bytes += 4 * d * (2 * layers + 1);                 /* gains */
    bytes += (uint64_t)m * 4 * (d + meta->head_width); /* rows of the embedding and of RoPE */
    return bytes + 4 * (uint64_t)meta->vocabulary;     /* logits */
}
