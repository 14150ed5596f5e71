/* layer_facts.c - rows of section LAYR, read and checked. */
#include "targets/uthinker/isa/layer_facts.h"

enum { PLACES_OF_LAYERS = MUC_UTHINKER_PLACES_OF_TERMS - 1 };

uint32_t muc_uthinker_one_term(const muc_uthinker_terms *own, const muc_uthinker_terms *most)
{
    muc_uthinker_terms a = *own, b = *most;
    uint32_t set = 0;

    for (unsigned i = 0; i < PLACES_OF_LAYERS; i++)
        if (muc_uthinker_terms_at(&a)[i] < muc_uthinker_terms_at(&b)[i])
            set |= 1u << i;
    return set;
}

muc_status muc_layer_facts_check(muc_context *ctx, const char *name, const mur_program *program)
{
    static const struct {
        const char *name;
        uint32_t min, max;
    } words[] = {
#define MUR_LAYR(name, min, max, meaning) { #name, min, max },
#include "mur_sections.def"
    };
    const uint32_t *row = (const uint32_t *)(const void *)program->section[MUR_SECTION_LAYR];
    uint32_t layers = program->meta->layers;

    if (!row)
        return MUC_OK;
    if (program->section_bytes[MUR_SECTION_LAYR] != (size_t)layers * sizeof(mur_layr))
        return muc_fail(ctx, MUC_MALFORMED, name, MUC_NO_OFFSET,
                        "section LAYR has %u bytes, expected %zu for each of %u layers",
                        program->section_bytes[MUR_SECTION_LAYR], sizeof(mur_layr), layers);
    for (uint32_t l = 0; l < layers; l++)
        for (size_t i = 0; i < MUC_COUNT(words); i++, row++)
            if (*row < words[i].min || *row > words[i].max)
                return muc_fail(ctx, MUC_MALFORMED, name, MUC_NO_OFFSET,
                                "section LAYR: %s of layer %u is %u, expected %u to %u",
                                words[i].name, l, *row, words[i].min, words[i].max);
    return MUC_OK;
}

mur_layr muc_layer_facts_of(const mur_program *program, uint32_t layer)
{
    const mur_layr *rows = (const mur_layr *)(const void *)program->section[MUR_SECTION_LAYR];

    return rows ? rows[layer]
                : (mur_layr){ .window = program->meta->context,
                              .rotary = program->meta->head_width,
                              .norms = 1 };
}

muc_uthinker_terms muc_layer_terms_of(const mur_program *program, uint32_t layer)
{
    uint32_t one_term = muc_layer_facts_of(program, layer).one_term;
    muc_uthinker_terms terms = {
#define TERM(letter, meaning) (uint8_t) program->meta->terms_##letter,
        MUC_UTHINKER_TERMS(TERM)
#undef TERM
    };

    for (unsigned i = 0; i < PLACES_OF_LAYERS; i++)
        if (one_term >> i & 1)
            muc_uthinker_terms_at(&terms)[i] = 1;
    return terms;
}
