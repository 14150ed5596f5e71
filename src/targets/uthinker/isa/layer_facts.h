/* layer_facts.h - what a program's layers have of their own: section LAYR. */
#ifndef MUC_UTHINKER_LAYER_FACTS_H
#define MUC_UTHINKER_LAYER_FACTS_H

#include "base/base.h"
#include "mur.h"

/* Where activations are quantized: SPEC.md section 8's letters. All but the last are a layer's. */
#define MUC_UTHINKER_TERMS(X) \
    X(x, "input of Q, K and V") \
    X(q, "queries") \
    X(k, "keys") \
    X(p, "probabilities") \
    X(v, "values") \
    X(o, "input of O") \
    X(f, "input of gate and up") \
    X(h, "input of down") \
    X(l, "input of the head")

typedef struct muc_uthinker_terms {
#define MUC_UTHINKER_TERM(letter, meaning) uint8_t letter; /* 1 or 2 */
    MUC_UTHINKER_TERMS(MUC_UTHINKER_TERM)
#undef MUC_UTHINKER_TERM
} muc_uthinker_terms;

enum {
#define MUC_COUNT_TERM(letter, meaning) +1
    MUC_UTHINKER_PLACES_OF_TERMS = 0 MUC_UTHINKER_TERMS(MUC_COUNT_TERM)
#undef MUC_COUNT_TERM
};

/* The terms of all places, in the order of their letters. */
static inline uint8_t *muc_uthinker_terms_at(muc_uthinker_terms *terms)
{
    return (uint8_t *)terms;
}

/* LAYR's word for a layer that has `own` where META has `most`. */
uint32_t muc_uthinker_one_term(const muc_uthinker_terms *own, const muc_uthinker_terms *most);

/* Whether the section, if it is there, has a row for each layer with words in their ranges. */
muc_status muc_layer_facts_check(muc_context *ctx, const char *name, const mur_program *program);
/* A layer's row, or what it is where there is no section. */
mur_layr muc_layer_facts_of(const mur_program *program, uint32_t layer);
/* The terms of its places, and of l. */
muc_uthinker_terms muc_layer_terms_of(const mur_program *program, uint32_t layer);

#endif
