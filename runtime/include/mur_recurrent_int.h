/* mur_recurrent_int.h - LSTM, GRU and RNN of integers, see mur_recurrent.h: sequence by sequence,
 * so that one state is at work. Its includer defines dot(a, b, count, sum): the sum and count
 * products, modulo 2^32. */
#include "mur_recurrent.h"

#include <string.h>

#include "mur_nn_arith.h"
#include "mur_sigmoid.h"

enum { IN, OUT, FORGET, CELL };
enum { UPDATE, RESET, NEW };

/* One direction of one sequence at work. */
typedef struct mur_sequence {
    const mur_recurrent_s8 *layer;
    const mur_peepholes_s8 *peepholes; /* NULL: none */
    const int16_t *p;                  /* of the direction, [3][hidden] */
    const int8_t *w, *r;
    const int32_t *x_bias, *h_bias;
    int8_t *h;      /* [hidden] */
    int16_t *c;     /* [hidden]: the cell, or a GRU's state */
    int16_t *gates; /* [gates][hidden], and of a GRU [hidden] more and [hidden] of bytes */
} mur_sequence;

static inline int32_t to_i16(int32_t x)
{
    return mur_clamp(x, INT16_MIN, INT16_MAX);
}

static inline int8_t to_byte(const mur_recurrent_s8 *layer, int32_t x)
{
    x = mur_scale_q31(x, layer->out_mul, layer->out_shift);
    return (int8_t)(mur_clamp(x, INT8_MIN - layer->zero, INT8_MAX - layer->zero) + layer->zero);
}

/* tanh of c in units of 2^(shift - 12) */
static inline int32_t tanh_of(const mur_recurrent_s8 *layer, int32_t c)
{
    const int32_t shift = layer->cell_shift;
    const int32_t x =
        shift < 0 ? mur_asr(3 * c + (1 << (-shift - 1)), -shift) : 3 * c * (1 << shift);

    return mur_tanh_q15(layer->sigmoid, x);
}

/* a row's part of a gate; apart, so that its loop has the registers */
static __attribute__((noinline)) int32_t part_of(const int8_t *row, const int8_t *x, uint32_t count,
                                                 int32_t bias, int32_t mul, int32_t shift)
{
    return to_i16(mur_scale_q31(dot(row, x, count, bias), mul, shift));
}

/* of unit j of a gate: from x, from the bytes h */
static inline int32_t part_of_x(const mur_sequence *s, uint32_t gate, uint32_t j, const int8_t *x)
{
    const mur_recurrent_s8 *layer = s->layer;
    const uint32_t row = gate * layer->hidden + j;

    return part_of(s->w + row * layer->inputs, x, layer->inputs, s->x_bias[row], layer->x_mul[gate],
                   layer->x_shift[gate]);
}

static inline int32_t part_of_h(const mur_sequence *s, uint32_t gate, uint32_t j, const int8_t *h)
{
    const mur_recurrent_s8 *layer = s->layer;
    const uint32_t row = gate * layer->hidden + j;

    return part_of(s->r + row * layer->hidden, h, layer->hidden, s->h_bias[row], layer->h_mul[gate],
                   layer->h_shift[gate]);
}

static inline int16_t open_gate(const mur_sequence *s, uint32_t gate, uint32_t j, const int8_t *x)
{
    return (int16_t)to_i16(part_of_x(s, gate, j, x) + part_of_h(s, gate, j, s->h));
}

/* a gate's sum with what its peephole lets in of the cell */
static inline int16_t peep(const mur_sequence *s, uint32_t gate, uint32_t j, int16_t sum)
{
    const int32_t seen = s->p[gate * s->layer->hidden + j] * s->c[j];

    return (int16_t)to_i16(sum +
                           to_i16(mur_scale_q31(seen, s->peepholes->mul, s->peepholes->shift)));
}

/* peeps: a constant, whether it has peepholes */
static inline void mur_lstm_int_step(const mur_sequence *s, const int8_t *x, int peeps)
{
    const mur_recurrent_s8 *layer = s->layer;
    const uint32_t hidden = layer->hidden;
    int16_t *gates = s->gates, *c = s->c;

    for (uint32_t gate = 0; gate < MUR_LSTM; gate++)
        for (uint32_t j = 0; j < hidden; j++) {
            int32_t sum = open_gate(s, gate, j, x);

            if (peeps && gate == OUT) { /* of the new cell */
                gates[gate * hidden + j] = (int16_t)sum;
                continue;
            }
            if (peeps && gate != CELL)
                sum = peep(s, gate, j, (int16_t)sum);
            sum *= 3;
            gates[gate * hidden + j] =
                (int16_t)(gate == CELL ? mur_tanh_q15(layer->sigmoid, sum)
                                       : mur_sigmoid_q15(layer->sigmoid, sum));
        }
    for (uint32_t j = 0; j < hidden; j++) {
        const int32_t kept = to_i16(mur_scale_q31(gates[FORGET * hidden + j] * c[j], 1 << 30, -14));
        const int32_t added = to_i16(
            mur_scale_q31(gates[j] * gates[CELL * hidden + j], layer->in_mul, layer->in_shift));

        c[j] = (int16_t)mur_clamp(to_i16(kept + added), -layer->clip, layer->clip);
        if (peeps)
            gates[OUT * hidden + j] = (int16_t)mur_sigmoid_q15(
                layer->sigmoid, 3 * peep(s, OUT, j, gates[OUT * hidden + j]));
        s->h[j] = to_byte(layer, gates[OUT * hidden + j] * tanh_of(layer, c[j]));
    }
}

/* x y / 2^15, halves up */
static inline int32_t mur_times_q15(int32_t x, int32_t y)
{
    return mur_asr(x * y + (1 << 14), 15);
}

static inline void mur_gru_int_step(const mur_sequence *s, const int8_t *x)
{
    const mur_recurrent_s8 *layer = s->layer;
    const uint32_t hidden = layer->hidden;
    int16_t *z = s->gates, *reset = z + hidden, *again = reset + hidden, *c = s->c;
    int8_t *left = (int8_t *)(again + hidden);

    for (uint32_t j = 0; j < hidden; j++) {
        z[j] = (int16_t)mur_sigmoid_q15(layer->sigmoid, 3 * open_gate(s, UPDATE, j, x));
        reset[j] = (int16_t)mur_sigmoid_q15(layer->sigmoid, 3 * open_gate(s, RESET, j, x));
        left[j] = to_byte(layer, mur_times_q15(reset[j], c[j]));
    }
    for (uint32_t j = 0; j < hidden; j++)
        again[j] = (int16_t)(layer->linear_before_reset
                                 ? mur_times_q15(reset[j], part_of_h(s, NEW, j, s->h))
                                 : part_of_h(s, NEW, j, left));
    for (uint32_t j = 0; j < hidden; j++) {
        const int32_t sum = to_i16(part_of_x(s, NEW, j, x) + again[j]);
        const int32_t fresh = mur_tanh_q15(layer->sigmoid, 3 * sum);

        c[j] = (int16_t)(fresh + mur_times_q15(z[j], c[j] - fresh));
        s->h[j] = to_byte(layer, c[j]);
    }
}

static inline void mur_rnn_int_step(const mur_sequence *s, const int8_t *x)
{
    const mur_recurrent_s8 *layer = s->layer;
    const uint32_t hidden = layer->hidden;

    for (uint32_t j = 0; j < hidden; j++)
        s->gates[j] = open_gate(s, 0, j, x);
    for (uint32_t j = 0; j < hidden; j++) {
        const int32_t sum = s->gates[j];

        s->h[j] = to_byte(layer, layer->sigmoid ? mur_tanh_q15(layer->sigmoid, 3 * sum)
                                 : sum < 0      ? 0
                                                : sum);
    }
}

/* sequence n of the batch in a direction, with the direction's operands in *s */
static inline void mur_run_sequence(const mur_sequence *s, const mur_recurrent_s8_operands *o,
                                    uint32_t gates, int peeps, uint32_t direction, uint32_t n)
{
    const mur_recurrent_s8 *layer = s->layer;
    const uint32_t hidden = layer->hidden, steps = layer->steps, directions = layer->directions;
    const int backwards = direction == 1 || layer->backwards;
    uint32_t length = steps;

    if (o->lengths)
        length = (uint32_t)mur_clamp(o->lengths[n], 0, (int32_t)steps);
    for (uint32_t j = 0; gates == MUR_GRU && j < hidden; j++)
        s->h[j] = to_byte(layer, s->c[j]);
    for (uint32_t i = 0; i < steps; i++) {
        const uint32_t t = i < length && backwards ? length - 1 - i : i;
        const uint32_t row = layer->batch_first ? n * steps + t : t * layer->batch + n;
        const uint32_t out = layer->batch_first ? row * directions + direction
                                                : (t * directions + direction) * layer->batch + n;

        if (i >= length)
            memset(o->y + out * hidden, layer->zero, hidden);
        else if (gates == MUR_GRU)
            mur_gru_int_step(s, o->x + row * layer->inputs);
        else if (gates == MUR_RNN)
            mur_rnn_int_step(s, o->x + row * layer->inputs);
        else
            mur_lstm_int_step(s, o->x + row * layer->inputs, peeps);
        if (i < length)
            memcpy(o->y + out * hidden, s->h, hidden);
    }
}

/* peepholes: of an LSTM, or NULL */
static inline void mur_recurrent_int_run(const mur_recurrent_s8 *layer,
                                         const mur_peepholes_s8 *peepholes,
                                         const mur_recurrent_s8_operands *operands, uint32_t gates,
                                         void *scratch)
{
    const uint32_t hidden = layer->hidden, rows = gates * hidden;
    const size_t states = (size_t)layer->directions * layer->batch * hidden;
    mur_sequence s = { .layer = layer, .peepholes = peepholes, .gates = scratch };

    if (gates != MUR_GRU)
        memcpy(operands->last_h, operands->h, states);
    if (gates != MUR_RNN)
        memcpy(operands->last_c, operands->c, states * sizeof(int16_t));
    for (uint32_t d = 0; d < layer->directions; d++) {
        s.w = operands->w + d * rows * layer->inputs;
        s.r = operands->r + d * rows * hidden;
        s.x_bias = layer->x_bias + d * rows;
        s.h_bias = layer->h_bias + d * rows;
        if (peepholes)
            s.p = peepholes->weights + d * 3 * hidden;
        for (uint32_t n = 0; n < layer->batch; n++) {
            const uint32_t state =
                (layer->batch_first ? n * layer->directions + d : d * layer->batch + n) * hidden;

            s.c = gates == MUR_RNN ? NULL : operands->last_c + state;
            s.h = gates != MUR_GRU ? operands->last_h + state : (int8_t *)(s.gates + rows) + hidden;
            mur_run_sequence(&s, operands, gates, peepholes != NULL, d, n);
        }
    }
}
