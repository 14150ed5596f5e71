/* model.h - what muc_model_open found. */
#ifndef MUC_DRIVER_MODEL_H
#define MUC_DRIVER_MODEL_H

#include "base/file.h"
#include "formats/checkpoint.h"
#include "mur_tokenizer.h"
#include "muc/model.h"

typedef enum muc_model_kind {
    MUC_MODEL_CHECKPOINT,
    MUC_MODEL_BLOCKS,
    MUC_MODEL_PROGRAM,
} muc_model_kind;

struct muc_model {
    muc_model_kind kind;
    const char *path; /* in the arena, as all that has no other home */
    muc_arena arena;
    muc_checkpoint checkpoint; /* of a CHECKPOINT */
    muc_file file;             /* of the others */
    const uint8_t *tokenizer_form;
    size_t tokenizer_bytes; /* 0: the model has no tokenizer */
    mur_tokenizer tokenizer;
    uint32_t context;            /* positions that it is run or compiled for */
    const char *prompt_template; /* with one "{prompt}" in it, or NULL */
};

/* Fails with MUC_USAGE if the model has no tokenizer, telling how to give one. */
muc_status muc_model_need_tokenizer(muc_context *ctx, const muc_model *model);

/* The prompt as the model was trained to see it, arena-owned; raw: as it is. */
muc_status muc_model_dress_prompt(muc_context *ctx, const muc_model *model, muc_arena *arena,
                                  const char *prompt, bool raw, const char **out);

/* True if the token ends a text. */
bool muc_model_is_end(const muc_model *model, uint32_t token);

#endif
