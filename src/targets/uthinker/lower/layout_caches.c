/* layout_caches.c - terms of layers, and where each layer's part of the caches lies. */
#include <string.h>

#include "targets/uthinker/lower/layout_parts.h"

const muc_uthinker_terms *muc_uthinker_terms_of(const muc_uthinker_layout *layout, uint32_t layer)
{
    const muc_uthinker_options *options = &layout->options;

    return options->layer_terms ? &options->layer_terms[layer] : &options->terms;
}

uint32_t muc_uthinker_run_end(const muc_uthinker_layout *layout, uint32_t layer)
{
    const muc_uthinker_terms *terms = muc_uthinker_terms_of(layout, layer);
    uint32_t end = layer + 1;

    while (end < layout->layers &&
           memcmp(muc_uthinker_terms_of(layout, end), terms, sizeof(*terms)) == 0)
        end++;
    return end;
}

/* bytes of a layer's part of each cache */
static muc_uthinker_caches cache_bytes(const muc_uthinker_layout *layout,
                                       const muc_uthinker_terms *terms)
{
    uint32_t tokens = layout->machine.tokens;
    uint64_t padded = layout->padded_context, heads = layout->kv_heads;
    uint64_t key = muc_uthinker_key_bytes(layout, terms, layout->slabs);
    uint64_t value = product(layout->head_width, muc_uthinker_slots_bytes(tokens, terms->v));
    uint64_t x = muc_uthinker_slots_bytes(layout->width, terms->x);

    return (muc_uthinker_caches){
        .k = layout->options.recompute ? 0 : product(heads, product(padded, key)),
        .v = product(heads, product(padded / tokens, value)),
        .x = layout->options.recompute ? product(padded, x) : 0,
    };
}

/* not beyond what 64 bits hold */
static uint64_t sum(uint64_t a, uint64_t b)
{
    return a + b < UINT64_MAX / 16 ? a + b : UINT64_MAX / 16;
}

muc_uthinker_caches muc_uthinker_caches_of(const muc_uthinker_layout *layout, uint32_t layer)
{
    muc_uthinker_caches at = { layout->k_cache, layout->v_cache, layout->x_cache };

    for (uint32_t i = 0; i < layer; i++) {
        const muc_uthinker_caches bytes = cache_bytes(layout, muc_uthinker_terms_of(layout, i));

        at.k = sum(at.k, bytes.k);
        at.v = sum(at.v, bytes.v);
        at.x = sum(at.x, bytes.x);
    }
    return at;
}

void muc_layout_join_terms(muc_uthinker_layout *layout)
{
    muc_uthinker_options *options = &layout->options;

    if (!options->layer_terms)
        return;
    options->terms = options->layer_terms[0];
    for (uint32_t l = 1; l < layout->layers; l++) {
        muc_uthinker_terms terms = options->layer_terms[l];

        for (unsigned i = 0; i < MUC_UTHINKER_PLACES_OF_TERMS; i++)
            if (muc_uthinker_terms_at(&terms)[i] > muc_uthinker_terms_at(&options->terms)[i])
                muc_uthinker_terms_at(&options->terms)[i] = muc_uthinker_terms_at(&terms)[i];
    }
    if (muc_uthinker_run_end(layout, 0) == layout->layers)
        options->layer_terms = NULL;
}

/* steps of a context in whole groups */
static uint64_t whole_groups(const muc_uthinker_layout *layout, const muc_uthinker_chip *chip)
{
    uint32_t group = chip->steps * layout->machine.tokens;

    return ((layout->options.context - 1) / group + 1) * (uint64_t)chip->steps;
}

/* what intervals see of the caches of layers first .. end - 1, which have the same terms */
static uint64_t reach_of_run(const muc_uthinker_layout *layout, uint32_t first, uint32_t end)
{
    const muc_uthinker_caches at = muc_uthinker_caches_of(layout, first);
    const muc_uthinker_terms *terms = muc_uthinker_terms_of(layout, first);
    const muc_uthinker_caches bytes = cache_bytes(layout, terms);
    uint32_t tokens = layout->machine.tokens, before_last = end - first - 1;
    uint64_t heads = layout->kv_heads, padded = layout->padded_context, reach = 0;
    uint64_t x_row = muc_uthinker_slots_bytes(layout->width, terms->x);
    /* where a window's groups begin, as far as intervals tell */
    uint64_t origin = layout->windows ? padded : 0;
    /* the last possible row, then as many as a call has */
    uint64_t past = layout->options.context - 1 + layout->options.rows;
    uint64_t most_steps =
        larger(whole_groups(layout, &layout->decode), whole_groups(layout, &layout->prefill));
    uint64_t last_k = at.k + before_last * bytes.k + (heads - 1) * (bytes.k / heads);
    uint64_t last_v = at.v + before_last * bytes.v + (heads - 1) * (bytes.v / heads);

    if (layout->options.recompute)
        return at.x + before_last * bytes.x + past * x_row;
    for (uint32_t s = 0; s < layout->slabs; s++) {
        uint64_t row = muc_uthinker_slots_bytes(muc_uthinker_slab(layout, s), terms->k);

        reach = larger(reach, last_k + padded * muc_uthinker_key_bytes(layout, terms, s) +
                                  (origin + larger(past, most_steps * tokens)) * row);
    }
    return larger(reach,
                  last_v + (origin / tokens + most_steps) * (bytes.v / heads) / (padded / tokens));
}

uint64_t muc_layout_reach_of_caches(const muc_uthinker_layout *layout)
{
    uint64_t reach = 0;

    for (uint32_t first = 0, next; first < layout->layers; first = next) {
        next = muc_uthinker_run_end(layout, first);
        reach = larger(reach, reach_of_run(layout, first, next));
    }
    return reach;
}
