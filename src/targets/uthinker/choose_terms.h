/* choose_terms.h - places of activations, and layers, that do with one term, by measured loss. */
#ifndef MUC_UTHINKER_CHOOSE_TERMS_H
#define MUC_UTHINKER_CHOOSE_TERMS_H

#include "report/report_builder.h"
#include "run/opened_model.h"
#include "targets/uthinker/uthinker.h"

/* One step of the choice: with one term at this place of layers first .. end - 1, and wherever it
 * was kept before. */
typedef struct muc_terms_trial {
    const char *place; /* its letter; NULL: two terms everywhere */
    uint32_t first, end;
    bool kept;
    double divergence;   /* from float32, mean of a token, in nats */
    uint64_t dram_bytes; /* for the token at the context's last position */
    double decode;       /* tokens a second there, with the choice of the next token */
    double prefill;      /* tokens a second of the longest call in the middle of the context */
} muc_terms_trial;

typedef struct muc_terms_choice {
    uint32_t layers;
    muc_uthinker_terms *terms; /* [layers], in the arena */
    muc_terms_trial *trials;   /* in the arena; the first has two terms everywhere */
    size_t count;
} muc_terms_choice;

/* graph: the checkpoint's, its weights quantized; base: all other options of the program. Tries one
 * term at each place, those that save bytes of the KV cache first, of all layers or else of halves,
 * quarters and eighths of them, on texts that the model writes itself (source NULL or "auto") or on
 * those of a file. It is kept if the DRAM moves fewer bytes, or prefill is faster by half a
 * percent, and while the divergence from float32 grows by no more than a twentieth in all. The same
 * on every machine and with any number of threads. */
muc_status muc_uthinker_choose_terms(muc_context *ctx, muc_arena *arena, const muc_model *model,
                                     const char *source, muc_graph *graph,
                                     const muc_uthinker_machine *machine,
                                     const muc_uthinker_options *base, muc_terms_choice *out);

/* The table "terms", and act_terms: the choice as muc_uthinker_read_terms takes it. */
muc_status muc_terms_choice_report(const muc_terms_choice *choice, muc_report *report);

#endif
