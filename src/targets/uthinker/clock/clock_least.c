/* clock_least.c - the fewest bytes that any schedule of a model can move: SPEC.md section 9. */
#include "targets/uthinker/clock/clock.h"

#include "base/bytes.h"

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

/* The blocks of every matrix once, the embedding's only where it is the head too. Section 8 gives
 * the order of the kinds. */
static uint64_t weight_bytes(const mur_program *program, const muc_uthinker_machine *machine)
{
    const mur_meta *meta = program->meta;
    const muc_bytes wgts = { program->section[MUR_SECTION_WGTS],
                             program->section_bytes[MUR_SECTION_WGTS], "WGTS" };
    uint32_t d = meta->width, f = meta->ffn_width;
    uint32_t queries = meta->heads * meta->head_width, keys = meta->kv_heads * meta->head_width;
    uint64_t at = 0, bytes;
    const uint32_t shapes[][2] = { { f, d },       { d, f },    { d, f },   { queries, d },
                                   { d, queries }, { d, keys }, { d, keys } };

    bytes = sequence_bytes(wgts, muc_uthinker_tiles(machine, d, meta->vocabulary), &at);
    if (!meta->tied)
        bytes = sequence_bytes(wgts, muc_uthinker_tiles(machine, d, meta->vocabulary), &at);
    for (unsigned i = 0; i < MUC_COUNT(shapes); i++)
        bytes += sequence_bytes(
            wgts, meta->layers * muc_uthinker_tiles(machine, shapes[i][0], shapes[i][1]), &at);
    return bytes;
}

/* what one kv head of one layer reads and writes of the KV region */
static uint64_t head_bytes(const mur_meta *meta, const muc_uthinker_machine *machine, uint32_t pos,
                           uint32_t m)
{
    uint32_t tile_k = machine->tile_k, tokens = machine->tokens;
    uint64_t hd = meta->head_width, end = (uint64_t)pos + m, bytes = 0, keys = 0, rows;

    for (uint64_t at = 0; at < hd; at += tile_k)
        keys += muc_uthinker_slots_bytes((uint32_t)(hd - at < tile_k ? hd - at : tile_k),
                                         meta->terms_k);
    if (!meta->recompute)
        bytes += end * keys; /* pos rows read, m written */
    /* values: whole chunks of the past and those that this call fills; rows of unfinished ones */
    bytes += end / tokens * hd * muc_uthinker_slots_bytes(tokens, meta->terms_v);
    rows = pos % tokens + (end % tokens < m ? end % tokens : m);
    return bytes + rows * hd * 4;
}

uint64_t muc_clock_least_bytes(const mur_program *program, const muc_uthinker_machine *machine,
                               uint32_t pos, uint32_t m)
{
    const mur_meta *meta = program->meta;
    uint64_t d = meta->width, layers = meta->layers, end = (uint64_t)pos + m, bytes;

    bytes = weight_bytes(program, machine) +
            layers * meta->kv_heads * head_bytes(meta, machine, pos, m);
    if (meta->recompute)
        bytes += layers * end * muc_uthinker_slots_bytes(meta->width, meta->terms_x);
    bytes += 4 * d * (2 * layers + 1);                 /* gains */
    bytes += (uint64_t)m * 4 * (d + meta->head_width); /* rows of the embedding and of RoPE */
    return bytes + 4 * (uint64_t)meta->vocabulary;     /* logits */
}
