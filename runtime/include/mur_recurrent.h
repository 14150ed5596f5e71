/* mur_recurrent.h - layers that carry a state from step to step: RNN, GRU and LSTM as ONNX defines
 * them, in integers too, and TensorFlow Lite's SVDF. The same bits on every machine: sums are
 * made in a written order (compile with -ffp-contract=off), sigmoid and tanh of binary32 are those
 * of mur_real.h.
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
    float cell_clip;             /* of MUR_LSTM: c stays within it and less it; 0: no bound */
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

/* LSTM, GRU and RNN of integers, the first as TensorFlow Lite for Microcontrollers computes it;
 * gates are i o f c, or z r h, or one. A gate is the sum of two integers in Q3.12, of products with
 * x and with h, each mur_scale_q31 of its factor and saturated to 16 bits, as the sum is; its
 * function, in Q0.15, comes from a table of sigmoid(i / 24). LSTM: c = f c / 2^15 + i g * in, h = o
 * tanh(c) * out + zero, each step saturated. GRU: its state c is in Q0.15, and h = c * out + zero,
 * which products are with; the new state n + z (c - n) / 2^15, n = tanh(x's part + r h's part /
 * 2^15), or, not linear_before_reset, x's part and that of r c / 2^15 * out + zero; the quotients
 * with halves up. RNN: h = tanh(gate) * out + zero; with relu the gate is in units of 2^-7 of h's,
 * and h = max(gate, 0) * out + zero. */
typedef struct mur_recurrent_s8 {
    uint32_t steps, batch, inputs, hidden;
    uint8_t directions, backwards, batch_first, linear_before_reset; /* as above */
    int32_t x_mul[4], x_shift[4];                                    /* of gates */
    int32_t h_mul[4], h_shift[4];
    int32_t in_mul, in_shift, out_mul, out_shift;
    int32_t cell_shift; /* c's scale is 2^(cell_shift - 12); -12..12 */
    int32_t clip;       /* of c; 32768: no bound */
    int32_t zero;       /* h's */
    const int32_t *x_bias,
        *h_bias;             /* [directions][gates][hidden], less zero points times weights */
    const uint16_t *sigmoid; /* [256]; NULL: of MUR_RNN relu, not tanh */
} mur_recurrent_s8;

/* An LSTM's: each of its gates i, o and f, before its function, gets p c * mul more, which is
 * saturated as the sum is; o of the new c. */
typedef struct mur_peepholes_s8 {
    const int16_t *weights; /* [directions][3][hidden] */
    int32_t mul, shift;
} mur_peepholes_s8;

/* As mur_recurrent_operands; lengths may be NULL, of a GRU h and last_h,
 * of an RNN c and last_c. No result may overlap
 * another operand. */
typedef struct mur_recurrent_s8_operands {
    const int8_t *x, *w, *r;
    const int32_t *lengths;
    const int8_t *h;
    const int16_t *c;
    int8_t *y, *last_h;
    int16_t *last_c;
} mur_recurrent_s8_operands;

/* scratch: mur_lstm_s8_scratch_bytes, of a GRU or RNN mur_gru_ or mur_rnn_s8_scratch_bytes, aligned
 * to 2 bytes */
void mur_lstm_s8_run(const mur_recurrent_s8 *layer, const mur_recurrent_s8_operands *operands,
                     void *scratch);
void mur_gru_s8_run(const mur_recurrent_s8 *layer, const mur_recurrent_s8_operands *operands,
                    void *scratch);
void mur_rnn_s8_run(const mur_recurrent_s8 *layer, const mur_recurrent_s8_operands *operands,
                    void *scratch);
void mur_lstm_peephole_s8_run(const mur_recurrent_s8 *layer, const mur_peepholes_s8 *peepholes,
                              const mur_recurrent_s8_operands *operands, void *scratch);

/* The same on SMLAD, and in vectors of Cortex-M55. */
void mur_dsp_lstm_s8_run(const mur_recurrent_s8 *layer, const mur_recurrent_s8_operands *operands,
                         void *scratch);
void mur_dsp_gru_s8_run(const mur_recurrent_s8 *layer, const mur_recurrent_s8_operands *operands,
                        void *scratch);
void mur_mve_lstm_s8_run(const mur_recurrent_s8 *layer, const mur_recurrent_s8_operands *operands,
                         void *scratch);
void mur_mve_gru_s8_run(const mur_recurrent_s8 *layer, const mur_recurrent_s8_operands *operands,
                        void *scratch);

void mur_dsp_rnn_s8_run(const mur_recurrent_s8 *layer, const mur_recurrent_s8_operands *operands,
                        void *scratch);
void mur_mve_rnn_s8_run(const mur_recurrent_s8 *layer, const mur_recurrent_s8_operands *operands,
                        void *scratch);
void mur_dsp_lstm_peephole_s8_run(const mur_recurrent_s8 *layer, const mur_peepholes_s8 *peepholes,
                                  const mur_recurrent_s8_operands *operands, void *scratch);
void mur_mve_lstm_peephole_s8_run(const mur_recurrent_s8 *layer, const mur_peepholes_s8 *peepholes,
                                  const mur_recurrent_s8_operands *operands, void *scratch);

static inline size_t mur_lstm_s8_scratch_bytes(const mur_recurrent_s8 *layer)
{
    return (size_t)4 * layer->hidden * sizeof(int16_t);
}

static inline size_t mur_gru_s8_scratch_bytes(const mur_recurrent_s8 *layer)
{
    return (size_t)3 * layer->hidden * sizeof(int16_t) + (size_t)2 * layer->hidden;
}

static inline size_t mur_rnn_s8_scratch_bytes(const mur_recurrent_s8 *layer)
{
    return (size_t)layer->hidden * sizeof(int16_t);
}

/* Filters over time ("SVDF"): each filter's product with x goes behind its last memory - 1 ones,
 * which move up; unit i is the sum of rank filters' products with time, plus a bias. */
typedef struct mur_svdf {
    uint32_t batch, inputs, units, rank, memory;
    /* of integers: factors of values and of units, zero points of the state and the result, and
     * what the values begin with, [units * rank], or NULL */
    int32_t value_mul, value_shift, unit_mul, unit_shift;
    int32_t state_zero, zero;
    const int32_t *offsets;
} mur_svdf;

/* x [batch][inputs], feature [units * rank][inputs], time [units * rank][memory], bias [units] or
 * NULL, state [batch][units * rank][memory], which is changed; y [batch][units] */
void mur_svdf_f32_run(const mur_svdf *layer, const float *x, const float *feature,
                      const float *time, const float *bias, float *state, float *y);
/* The same of integers, with a state, whose zero point is 0, and time of 16 bits: on SMLAD and in
 * vectors of Cortex-M55, too; of 8 bits: in vectors, too. */
void mur_svdf_s16_run(const mur_svdf *layer, const int8_t *x, const int8_t *feature,
                      const int16_t *time, const int32_t *bias, int16_t *state, int8_t *y);
void mur_dsp_svdf_s16_run(const mur_svdf *layer, const int8_t *x, const int8_t *feature,
                          const int16_t *time, const int32_t *bias, int16_t *state, int8_t *y);
void mur_mve_svdf_s16_run(const mur_svdf *layer, const int8_t *x, const int8_t *feature,
                          const int16_t *time, const int32_t *bias, int16_t *state, int8_t *y);
void mur_svdf_s8_run(const mur_svdf *layer, const int8_t *x, const int8_t *feature,
                     const int8_t *time, const int32_t *bias, int8_t *state, int8_t *y);
void mur_mve_svdf_s8_run(const mur_svdf *layer, const int8_t *x, const int8_t *feature,
                         const int8_t *time, const int32_t *bias, int8_t *state, int8_t *y);

#endif
