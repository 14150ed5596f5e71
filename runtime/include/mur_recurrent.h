/* mur_recurrent.h - layers on binary32 that carry a state from step to step: RNN, GRU and LSTM as
 * ONNX defines them. The same bits on every machine: sums are made in a written order (compile with
 * -ffp-contract=off), sigmoid and tanh are those of mur_real.h.
 */
#ifndef MUR_RECURRENT_H
#define MUR_RECURRENT_H

#include <stddef.h>
#include <stdint.h>

/* what a layer's gates are called by, and their number */
enum { MUR_RNN = 1, MUR_GRU = 3, MUR_LSTM = 4 };

typedef struct mur_recurrent_f32 {
    uint32_t steps, batch, inputs, hidden;
    uint8_t gates;               /* MUR_RNN, ... */
    uint8_t directions;          /* 1 or 2, the second backwards */
    uint8_t backwards;           /* 1: so is the first */
    uint8_t batch_first;         /* 1: the batch is dimension 0 of x, y and states */
    uint8_t relu;                /* of MUR_RNN: relu, not tanh */
    uint8_t linear_before_reset; /* of MUR_GRU */
} mur_recurrent_f32;

/* Operands; all but x, w and r may be NULL: zeros, full lengths, results that nobody wants.
 * Dimensions are those of batch_first = 0; gates are i o f c (LSTM), z r h (GRU). A length outside
 * of 0..steps counts as the nearest that is not. No result may overlap another operand. */
typedef struct mur_recurrent_operands {
    const float *x;         /* [steps][batch][inputs] */
    const float *w;         /* [directions][gates * hidden][inputs] */
    const float *r;         /* [directions][gates * hidden][hidden] */
    const float *bias;      /* [directions][2][gates * hidden]: of w, of r */
    const int32_t *lengths; /* [batch] */
    const float *h, *c;     /* [directions][batch][hidden]: states before the first step */
    const float *peephole;  /* [directions][3][hidden]: of i, o, f */
    float *y;               /* [steps][directions][batch][hidden], 0 behind a sequence's end */
    float *last_h, *last_c; /* [directions][batch][hidden]: states after the last step */
} mur_recurrent_operands;

/* scratch: mur_recurrent_f32_scratch_bytes, aligned to 4 bytes */
void mur_recurrent_f32_run(const mur_recurrent_f32 *layer, const mur_recurrent_operands *operands,
                           void *scratch);

static inline size_t mur_recurrent_f32_scratch_bytes(const mur_recurrent_f32 *layer)
{
    return ((size_t)2 + 2 * layer->gates) * layer->hidden * sizeof(float);
}

#endif
