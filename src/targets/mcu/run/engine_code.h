/* engine_code.h - a folder of C code that is a language model, built and loaded. */
#ifndef MUC_MCU_ENGINE_CODE_H
#define MUC_MCU_ENGINE_CODE_H

#include "passes/weights/hybrid_decoder.h"
#include "run/opened_model.h"

/* What the code offers; it is called in this process. */
typedef struct muc_model_code {
    void *library;
    const float *(*feed)(void *arena, uint32_t pos, const uint32_t *tokens, uint32_t count);
    uint64_t arena_bytes;
    uint32_t vocabulary;
    muc_hybrid_levels levels; /* of its matrices */
} muc_model_code;

/* That of a model that mcu made. */
static inline muc_model_code *muc_model_code_of(const muc_model *model)
{
    return model->compiled;
}

#endif
