/* emit_sections.h - a laid-out model and its flattened templates as the sections of a program. */
#ifndef MUC_UTHINKER_EMIT_H
#define MUC_UTHINKER_EMIT_H

#include "targets/uthinker/isa/utp_container.h"
#include "targets/uthinker/emit/flatten.h"
#include "targets/uthinker/lower/uthinker_layout.h"

enum { MUC_UTHINKER_ENTRIES = 2, MUC_UTHINKER_MAX_EOS = 3 };

/* What a program carries beside the model: borrowed. */
typedef struct muc_uthinker_tokens {
    const uint8_t *tokenizer; /* compiled (runtime/include/mur_tokenizer.h), or NULL */
    size_t tokenizer_bytes;
    uint32_t bos, eos[MUC_UTHINKER_MAX_EOS]; /* UINT32_MAX: there is none */
    const char *prompt;                      /* its template, or NULL */
    uint32_t golden;    /* positions whose golden vectors will follow, if the context has as many */
    bool strip;         /* neither names nor checksums of stages */
    muc_output *output; /* where the program is put together, if it can be mapped; or NULL */
} muc_uthinker_tokens;

typedef struct muc_uthinker_entry {
    uint32_t kind; /* muc_entry_kind */
    uint32_t min_m, max_m;
    const muc_flat *flat;
} muc_uthinker_entry;

/* The sections without weights and parameters, which say what a call does; in arena. */
muc_status muc_uthinker_emit_code(muc_context *ctx, muc_arena *arena,
                                  const muc_uthinker_layout *layout,
                                  const muc_uthinker_entry entries[MUC_UTHINKER_ENTRIES],
                                  const muc_uthinker_tokens *tokens, muc_container *out);

/* Fills all sections, GOLD and STAG with zeros; everything lives in arena. */
muc_status muc_uthinker_emit(muc_context *ctx, muc_arena *arena, const muc_uthinker_model *model,
                             const muc_uthinker_layout *layout,
                             const muc_uthinker_entry entries[MUC_UTHINKER_ENTRIES],
                             const muc_uthinker_tokens *tokens, muc_container *out);

#endif
