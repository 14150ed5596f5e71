/* clock_least.c - the fewest bytes that any schedule of a model can move: SPEC.md section 9. */
#include "targets/uthinker/clock/clock.h"

#include "targets/uthinker/clock/dram_classes.h"

/* The blocks of every matrix once, of the head's if there are logits; the embedding's are not. */
static uint64_t weight_bytes(const mur_program *program, const muc_uthinker_machine *machine,
                             bool logits)
{
    const muc_dram_places places = muc_dram_places_of(program, machine);
    uint64_t bytes = 0;

    for (unsigned i = logits ? MUC_DRAM_HEAD : MUC_DRAM_HEAD + 1; i < MUC_DRAM_MATRICES; i++)
        bytes += places.block_bytes[i];
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
                               uint32_t pos, uint32_t m, bool logits)
{
    const mur_meta *meta = program->meta;
    uint64_t d = meta->width, layers = meta->layers, end = (uint64_t)pos + m, bytes;

    bytes = weight_bytes(program, machine, logits) +
            layers * meta->kv_heads * head_bytes(meta, machine, pos, m);
    if (meta->recompute)
        bytes += layers * end * muc_uthinker_slots_bytes(meta->width, meta->terms_x);
    bytes += 4 * d * (2 * layers + logits);            /* gains */
    bytes += (uint64_t)m * 4 * (d + meta->head_width); /* rows of the embedding and of RoPE */
    return bytes + 4 * (uint64_t)meta->vocabulary * logits;
}
