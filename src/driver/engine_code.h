/* engine_code.h - a folder of C code that is a language model, built and loaded. */
#ifndef MUC_DRIVER_ENGINE_CODE_H
#define MUC_DRIVER_ENGINE_CODE_H

#include "driver/model.h"
#include "passes/hybrid.h"

/* What the code offers; it is called in this process. */
struct muc_model_code {
    void *library;
    const float *(*feed)(void *arena, uint32_t pos, const uint32_t *tokens, uint32_t count);
    uint64_t arena_bytes;
    uint32_t vocabulary;
    muc_hybrid_levels levels; /* of its matrices */
};

/* Whether path is such a folder. */
bool muc_code_is_language_model(const char *path);
/* Builds and loads the code at model->path; fills code, tokens, tokenizer_form, context and
 * prompt_template. */
muc_status muc_model_open_code(muc_context *ctx, muc_model *model);
void muc_model_close_code(muc_model *model);

#endif
