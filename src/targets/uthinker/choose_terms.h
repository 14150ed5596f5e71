/* choose_terms.h - places of activations that do with one term, by measured loss. */
#ifndef MUC_UTHINKER_CHOOSE_TERMS_H
#define MUC_UTHINKER_CHOOSE_TERMS_H

#include "run/opened_model.h"
#include "targets/uthinker/lower/uthinker_layout.h"

/* One step of the choice: with one term at this place, and wherever it was chosen before. */
typedef struct muc_terms_trial {
    const char *place; /* its letter */
    bool chosen;
    double divergence; /* from float32, mean of a token, in nats */
} muc_terms_trial;

enum {
#define MUC_COUNT_TERM(letter, meaning) +1
    MUC_UTHINKER_PLACES_OF_TERMS = 0 MUC_UTHINKER_TERMS(MUC_COUNT_TERM)
#undef MUC_COUNT_TERM
};

typedef struct muc_terms_choice {
    muc_uthinker_terms terms;
    double divergence; /* with two terms everywhere */
    muc_terms_trial trials[MUC_UTHINKER_PLACES_OF_TERMS];
} muc_terms_choice;

/* graph: the checkpoint's, its weights quantized. Tries one term at each place, those that save
 * bytes of the KV cache first, on texts that the model writes itself (source NULL or "auto") or on
 * those of a file, and keeps it while the divergence from float32 grows by no more than a twentieth
 * in all. tokens: of a step of attention. The same on every machine. */
muc_status muc_uthinker_choose_terms(muc_context *ctx, const muc_model *model, const char *source,
                                     muc_graph *graph, uint32_t tokens, muc_terms_choice *out);

#endif
