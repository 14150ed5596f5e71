/* clock_least.c - the fewest bytes that any schedule of a model can move: SPEC.md section 9. */
#include "targets/uthinker/clock/clock.h"

#include "targets/uthinker/clock/dram_classes.h"
#include "targets/uthinker/isa/layer_facts.h"

/* The blocks of every matrix once, of the head's if there are logits; the embedding's are not. */
static uint64_t weight_bytes(const muc_dram_places *places, bool logits)
{
    uint64_t bytes = 0;

    for (unsigned i = logits ? MUC_DRAM_HEAD : MUC_DRAM_HEAD + 1; i < MUC_DRAM_MATRICES; i++)
        bytes += places->block_bytes[i];
    return bytes;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* What one layer reads and writes of the KV region. Its queries see `window` positions, so the
 * first that is needed of the past is that of the call's first token. */
static uint64_t cache_bytes(const mur_program *program, const muc_uthinker_machine *machine,
                            uint32_t layer, uint32_t pos, uint32_t m)
{
    const mur_meta *meta = program->meta;
    const muc_uthinker_terms terms = muc_layer_terms_of(program, layer);
    uint32_t window = muc_layer_facts_of(program, layer).window, tokens = machine->tokens;
    uint32_t first = pos + 1 > window ? pos + 1 - window : 0, end = pos + m;
    uint32_t chunk = muc_uthinker_slots_bytes(tokens, terms.v), tail = pos % tokens;
    uint64_t hd = meta->head_width, bytes = 0, x = 0, rows;

    if (meta->recompute)
        x = (uint64_t)(end - first) * muc_uthinker_slots_bytes(meta->width, terms.x);
    else /* rows of the past are read, m written */
        bytes += (uint64_t)(end - first) * muc_dram_key_bytes(meta, machine, terms.k);
    /* values: whole chunks of the past and those that this call fills; rows of unfinished ones, of
     * which a chunk that is filled takes all */
    bytes += (end / tokens - first / tokens) * hd * chunk;
    rows = (end / tokens > pos / tokens ? tail : smaller(tail, pos - first)) +
           smaller(m, end % tokens);
    return x + meta->kv_heads * (bytes + rows * hd * 4);
}

/* gains and vectors of layers with weights of their own, which others may share */
static uint64_t parameter_bytes(const mur_program *program, uint32_t own_layers)
{
    const mur_layr facts = muc_layer_facts_of(program, 0);
    uint64_t elements = (uint64_t)facts.vectors + (facts.norms ? 2 * program->meta->width : 0);

    return 4 * elements * own_layers;
}

/* rows of the tables of RoPE, each once */
static uint64_t rope_bytes(const mur_program *program, uint32_t m)
{
    uint32_t most = 0;

    for (uint32_t l = 0; l < program->meta->layers; l++) {
        uint32_t number = muc_layer_facts_of(program, l).rope;

        most = number > most ? number : most;
    }
    return (most + 1ull) * m * 4 * muc_layer_facts_of(program, 0).rotary;
}

uint64_t muc_clock_least_bytes(const mur_program *program, const muc_uthinker_machine *machine,
                               uint32_t pos, uint32_t m, bool logits)
{
    const mur_meta *meta = program->meta;
    const muc_dram_places places = muc_dram_places_of(program, machine);
    uint64_t d = meta->width, bytes = weight_bytes(&places, logits);

    for (uint32_t l = 0; l < meta->layers; l++)
        bytes += cache_bytes(program, machine, l, pos, m);
    bytes += parameter_bytes(program, places.own_layers) + rope_bytes(program, m);
    bytes += (uint64_t)m * 4 * d; /* rows of the embedding */
    if (logits)                   /* and the final gain */
        bytes += 4 * (d + meta->vocabulary);
    return bytes;
}
