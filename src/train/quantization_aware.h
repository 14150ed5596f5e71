/* quantization_aware.h - quantization-aware training: what is computed with are weights of few
 * bits, what learns are the real ones behind them, and their scales or codebooks.
 *
 * Gradients pass the rounding unchanged. For some time numbers follow the weights (Lloyd: each the
 * one that fits what is nearest to it); then they learn from their own gradients. Activations that
 * enter a product are int8 with a scale a token, as runtime/include/mur_decoder.h has it.
 */
#ifndef MUC_TRAIN_LOWBIT_H
#define MUC_TRAIN_LOWBIT_H

#include "quant/lowbit.h"
#include "train/trainer.h"

/* Steps of the run: `real` in float32, then rounded; from `learn` on numbers learn. */
typedef struct muc_train_phases {
    uint64_t real, learn;
    double rate; /* greatest relative change of a number in a step; falls with the run's */
} muc_train_phases;

typedef struct muc_train_lowbit {
    muc_context *ctx;
    const muc_train_shape *shape; /* borrowed */
    muc_train_phases phases;
    const muc_lowbit *formats;      /* borrowed: [tensor_count], of matrices */
    const muc_train_recipe *recipe; /* borrowed: of the run */
    muc_arena arena;
    size_t *first;   /* [tensor_count], of a tensor's numbers */
    float *numbers;  /* of all matrices, row by row */
    double *moments; /* [numbers][2]: averages of gradients, of their squares */
    size_t count;
    bool is_on;
    muc_train_hooks hooks;
    muc_scalar *used; /* [shape->elements] */
} muc_train_lowbit;

/* formats: [tensor_count], those of vectors do not matter. recipe, shape and formats must outlive
 * it.
 */
muc_status muc_train_lowbit_make(muc_context *ctx, const muc_train_shape *shape,
                                 const muc_train_recipe *recipe, const muc_train_phases *phases,
                                 const muc_lowbit *formats, muc_train_lowbit *out);
void muc_train_lowbit_free(muc_train_lowbit *lowbit);

/* Has the trainer's steps go through it. */
void muc_train_lowbit_join(muc_train_lowbit *lowbit, muc_train_trainer *trainer);

/* A row as indices and 16-bit floats, for muc_lowbit_decode: what the next step would compute with.
 */
void muc_train_lowbit_row(const muc_train_lowbit *lowbit, size_t tensor, size_t row,
                          const muc_scalar *weights, uint8_t *codes, uint16_t *numbers);

#endif
