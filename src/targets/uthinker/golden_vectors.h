/* golden_vectors.h - what a board compares itself with: the stages and logits of a program after
 * each token of a text, as the simulator computes them. */
#ifndef MUC_UTHINKER_GOLDEN_VECTORS_H
#define MUC_UTHINKER_GOLDEN_VECTORS_H

#include "mur.h"
#include "run/opened_model.h"

/* The least that has a step of 64 tokens behind it, and one begun before a call; the first of them
 * are compared with float32. */
enum { MUC_GOLDEN_POSITIONS = 66, MUC_GOLDEN_COMPARED = 16 };

typedef struct muc_golden_vectors {
    uint32_t positions, compared; /* fewer in a short context */
    mur_gold rows[MUC_GOLDEN_POSITIONS];
    uint32_t *stages; /* [positions][mur_stage_words]: their checksums */
    float *logits;    /* [compared][vocabulary] */
} muc_golden_vectors;

/* Runs a program on a text that the model's tokenizer takes, or on tokens one after the other where
 * it has none. What out points to is in arena. */
muc_status muc_make_golden_vectors(muc_context *ctx, muc_arena *arena, const muc_model *model,
                                   const muc_model *program, muc_golden_vectors *out);

#endif
