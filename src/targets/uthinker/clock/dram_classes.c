/* dram_classes.c - the places of SPEC.md section 8, from the numbers of META alone. */
#include "targets/uthinker/clock/dram_classes.h"

#include "base/bytes.h"

static const char *const words[MUC_DRAM_CLASSES] = {
#define MUC_DRAM_CLASS(name, words) words,
#include "targets/uthinker/clock/dram_classes.def"
};

/* a region's first class and the one after its last */
static const struct {
    muc_dram_class first, end;
} regions[MUR_REGIONS] = {
    [MUR_WGTS] = { MUC_DRAM_EMBEDDING, MUC_DRAM_ROPE },
    [MUR_PARM] = { MUC_DRAM_ROPE, MUC_DRAM_K_CACHE },
    [MUR_KV] = { MUC_DRAM_K_CACHE, MUC_DRAM_TOKENS },
    [MUR_IO] = { MUC_DRAM_TOKENS, MUC_DRAM_CLASSES },
};

const char *muc_dram_class_words(muc_dram_class class)
{
    return words[class];
}

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

static void place_matrices(const mur_program *program, const muc_uthinker_machine *machine,
                           muc_dram_places *places)
{
    const mur_meta *meta = program->meta;
    const muc_bytes wgts = { program->section[MUR_SECTION_WGTS],
                             program->section_bytes[MUR_SECTION_WGTS], "WGTS" };
    uint32_t d = meta->width, f = meta->ffn_width, layers = meta->layers;
    uint32_t queries = meta->heads * meta->head_width, keys = meta->kv_heads * meta->head_width;
    uint32_t vocabulary = meta->vocabulary;
    const struct {
        uint32_t k, n, count;
    } shapes[MUC_DRAM_MATRICES] = {
        [MUC_DRAM_EMBEDDING] = { d, vocabulary, meta->tied ? 0 : 1 },
        [MUC_DRAM_HEAD] = { d, vocabulary, 1 },
        [MUC_DRAM_DOWN] = { f, d, layers },
        [MUC_DRAM_GATE] = { d, f, layers },
        [MUC_DRAM_UP] = { d, f, layers },
        [MUC_DRAM_O] = { queries, d, layers },
        [MUC_DRAM_Q] = { d, queries, layers },
        [MUC_DRAM_K] = { d, keys, layers },
        [MUC_DRAM_V] = { d, keys, layers },
    };
    uint64_t at = 0;

    for (unsigned i = 0; i < MUC_DRAM_MATRICES; i++) {
        places->start[i] = at;
        if (shapes[i].count)
            places->block_bytes[i] = sequence_bytes(
                wgts, shapes[i].count * muc_uthinker_tiles(machine, shapes[i].k, shapes[i].n), &at);
    }
}

muc_dram_places muc_dram_places_of(const mur_program *program, const muc_uthinker_machine *machine)
{
    const mur_meta *meta = program->meta;
    uint64_t tokens = machine->tokens, hd = meta->head_width;
    uint64_t streams = (uint64_t)meta->layers * meta->kv_heads;
    uint64_t chunks = (meta->context + tokens - 1) / tokens;
    muc_dram_places places = { 0 };
    uint64_t *start = places.start;

    place_matrices(program, machine, &places);
    start[MUC_DRAM_GAINS] = 4 * hd * meta->context;
    start[MUC_DRAM_V_CACHE] =
        meta->recompute
            ? 0
            : streams * chunks * tokens * muc_uthinker_slots_bytes(meta->head_width, meta->terms_k);
    start[MUC_DRAM_V_TAIL] =
        start[MUC_DRAM_V_CACHE] +
        streams * chunks * hd * muc_uthinker_slots_bytes(machine->tokens, meta->terms_v);
    start[MUC_DRAM_X_CACHE] = start[MUC_DRAM_V_TAIL] + streams * tokens * 4 * hd;
    start[MUC_DRAM_ROWS] = meta->embedded;
    start[MUC_DRAM_LOGITS] = meta->logits;
    return places;
}

muc_dram_class muc_dram_class_at(const muc_dram_places *places, enum mur_region region,
                                 uint64_t offset)
{
    unsigned class = regions[region].end - 1u;

    while (class > (unsigned)regions[region].first && places->start[class] > offset)
        class --;
    return (muc_dram_class) class;
}
