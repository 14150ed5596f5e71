/* dram_classes.c - the places of SPEC.md section 8, from the numbers of META alone. */
#include "targets/uthinker/clock/dram_classes.h"

#include "base/bytes.h"
#include "targets/uthinker/isa/layer_facts.h"

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

static muc_bytes wgts_of(const mur_program *program)
{
    return (muc_bytes){ program->section[MUR_SECTION_WGTS],
                        program->section_bytes[MUR_SECTION_WGTS], "WGTS" };
}

/* The matrices of `tiles` tiles each in the sequence at `at`, which begins with where its first
 * tile lies, behind its index; 0 if region WGTS does not hold such a sequence there. */
static uint64_t count_matrices(muc_bytes wgts, uint64_t tiles, uint64_t at)
{
    uint64_t first = at <= wgts.size && wgts.size - at >= 4 ? muc_load_u32(wgts.data + at) : 0;

    if (first < 4 || first > wgts.size - at || first % 4 != 0 || (first / 4 - 1) % tiles != 0)
        return 0;
    return (first / 4 - 1) / tiles;
}

/* The bytes of the blocks of the sequence at *at, of matrices of `tiles` tiles, which moves to the
 * next; 0 if region WGTS does not hold such a sequence there. */
static uint64_t sequence_bytes(muc_bytes wgts, uint64_t tiles, uint64_t *at)
{
    uint64_t count = count_matrices(wgts, tiles, *at), first, end;

    if (count == 0)
        return 0;
    first = muc_load_u32(wgts.data + *at);
    end = muc_load_u32(wgts.data + *at + 4 * count * tiles);
    if (first > end || end > wgts.size - *at)
        return 0;
    *at = (*at + end + 15) / 16 * 16;
    return end - first;
}

static void place_matrices(const mur_program *program, const muc_uthinker_machine *machine,
                           muc_dram_places *places)
{
    const mur_meta *meta = program->meta;
    const muc_bytes wgts = wgts_of(program);
    uint32_t d = meta->width, f = meta->ffn_width;
    uint32_t queries = meta->heads * meta->head_width, keys = meta->kv_heads * meta->head_width;
    uint32_t vocabulary = meta->vocabulary;
    const struct {
        uint32_t k, n;
    } shapes[MUC_DRAM_MATRICES] = {
        [MUC_DRAM_EMBEDDING] = { d, vocabulary },
        [MUC_DRAM_HEAD] = { d, vocabulary },
        [MUC_DRAM_DOWN] = { f, d },
        [MUC_DRAM_GATE] = { d, f },
        [MUC_DRAM_UP] = { d, f },
        [MUC_DRAM_O] = { queries, d },
        [MUC_DRAM_Q] = { d, queries },
        [MUC_DRAM_K] = { d, keys },
        [MUC_DRAM_V] = { d, keys },
    };
    uint64_t at = 0;

    for (unsigned i = 0; i < MUC_DRAM_MATRICES; i++) {
        places->start[i] = at;
        if (i != MUC_DRAM_EMBEDDING || !meta->tied)
            places->block_bytes[i] =
                sequence_bytes(wgts, muc_uthinker_tiles(machine, shapes[i].k, shapes[i].n), &at);
    }
    places->own_layers = (uint32_t)count_matrices(wgts, muc_uthinker_tiles(machine, f, d),
                                                  places->start[MUC_DRAM_DOWN]);
}

static uint64_t rope_bytes(const mur_program *program)
{
    uint64_t tables = 1;

    for (uint32_t l = 0; l < program->meta->layers; l++) {
        uint32_t number = muc_layer_facts_of(program, l).rope;

        tables = number >= tables ? number + 1ull : tables;
    }
    return tables * program->meta->context * 4 * muc_layer_facts_of(program, 0).rotary;
}

muc_dram_places muc_dram_places_of(const mur_program *program, const muc_uthinker_machine *machine)
{
    const mur_meta *meta = program->meta;
    uint64_t tokens = machine->tokens, hd = meta->head_width, d = meta->width;
    uint64_t heads = meta->kv_heads, chunks = (meta->context + tokens - 1) / tokens;
    muc_dram_places places = { 0 };
    uint64_t *start = places.start, keys = 0, values = 0;

    place_matrices(program, machine, &places);
    for (uint32_t l = 0; l < meta->layers; l++) {
        const muc_uthinker_terms terms = muc_layer_terms_of(program, l);

        if (!meta->recompute)
            keys += heads * chunks * tokens * muc_dram_key_bytes(meta, machine, terms.k);
        values += heads * chunks * hd * muc_uthinker_slots_bytes(machine->tokens, terms.v);
    }
    start[MUC_DRAM_GAINS] = rope_bytes(program);
    start[MUC_DRAM_VECTORS] =
        start[MUC_DRAM_GAINS] +
        4 * d * (muc_layer_facts_of(program, 0).norms ? 2 * places.own_layers + 1 : 1);
    start[MUC_DRAM_V_CACHE] = keys;
    start[MUC_DRAM_V_TAIL] = keys + values;
    start[MUC_DRAM_X_CACHE] =
        start[MUC_DRAM_V_TAIL] + (uint64_t)meta->layers * heads * tokens * 4 * hd;
    start[MUC_DRAM_ROWS] = meta->embedded;
    start[MUC_DRAM_LOGITS] = meta->logits;
    return places;
}

uint32_t muc_dram_key_bytes(const mur_meta *meta, const muc_uthinker_machine *machine,
                            uint32_t terms)
{
    uint32_t bytes = 0, left = meta->head_width, slab;

    for (; left; left -= slab) {
        slab = left < machine->tile_k ? left : machine->tile_k;
        bytes += muc_uthinker_slots_bytes(slab, terms);
    }
    return bytes;
}

uint32_t muc_dram_own_layers(const mur_program *program)
{
    const muc_uthinker_machine tiles = { .tile_k = mur_tile_rows(program->mach->isa),
                                         .tile_n = mur_tile_columns(program->mach->isa) };
    muc_dram_places places = { 0 };

    place_matrices(program, &tiles, &places);
    return places.own_layers;
}

muc_dram_class muc_dram_class_at(const muc_dram_places *places, enum mur_region region,
                                 uint64_t offset)
{
    unsigned class = regions[region].end - 1u;

    while (class > (unsigned)regions[region].first && places->start[class] > offset)
        class --;
    return (muc_dram_class) class;
}
