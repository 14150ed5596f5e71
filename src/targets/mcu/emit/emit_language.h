/* emit_language.h - what stands around a program that is a language model: NAME_lm.h, NAME_lm.c and
 * a main.c that takes a prompt. */
#ifndef MUC_MCU_LM_H
#define MUC_MCU_LM_H

#include "targets/mcu/program/mcu_program.h"

enum { MUC_MCU_LM_ENDS = 3 };

/* All pointers are borrowed. The program's graph has the tensor input "tokens" i32 [m], the
 * expression inputs pos and m, and one output, the logits f32 [1, vocabulary]. */
struct muc_mcu_lm {
    const uint8_t *tokenizer; /* the runtime's compiled form (mur_tokenizer.h) */
    size_t tokenizer_bytes;
    uint32_t ends[MUC_MCU_LM_ENDS]; /* tokens that end a text; UINT32_MAX: none */
    const char *prompt;             /* a text with "{prompt}" in it, or NULL */
    uint32_t context, vocabulary, most_tokens;
    bool blocks; /* matrices are BlockDialect's */
    bool shapes; /* constants have no data: the plan alone is wanted, no code */
    /* where a plan that does not fit leaves the context whose caches may leave room enough, or 0 if
     * none does; or NULL */
    uint32_t *shorter;
};

/* Adds the sources that a language model needs besides its kernels. */
muc_status muc_mcu_lm_sources(muc_context *ctx, muc_mcu_program *program);

void muc_mcu_lm_header(const muc_mcu_program *program, muc_text *text);
void muc_mcu_lm_source(const muc_mcu_program *program, muc_text *text);
/* a member of NAME.json, with the comma after it */
void muc_mcu_lm_json(const muc_mcu_program *program, muc_text *text);
void muc_mcu_lm_main(const muc_mcu_program *program, muc_text *text);

#endif
