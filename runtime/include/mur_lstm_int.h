/* mur_lstm_int.h - the LSTM of integers, see mur_recurrent.h: sequence by sequence, so that one
 * state is at work. Its includer defines dot(a, b, count, sum): the sum and count products, modulo
 * 2^32. */
#include "mur_recurrent.h"

#include <string.h>

#include "mur_nn_arith.h"
#include "mur_sigmoid.h"

enum { IN, OUT, FORGET, CELL, GATES };

static inline int32_t to_i16(int32_t x)
{
    return mur_clamp(x, INT16_MIN, INT16_MAX);
}

/* tanh of c in units of 2^(shift - 12) */
static inline int32_t tanh_of(const mur_lstm_s8 *layer, int32_t c)
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

/* all gates from x and the state h */
static inline void open_gates(const mur_lstm_s8 *layer, const mur_lstm_s8_operands *o,
                              const int8_t *x, const int8_t *h, int16_t *gates)
{
    const uint32_t hidden = layer->hidden;
    const int8_t *w = o->w, *r = o->r;
    uint32_t row = 0;

    for (int gate = 0; gate < GATES; gate++)
        for (uint32_t j = 0; j < hidden; j++, row++) {
            const int32_t sum =
                to_i16(part_of(w + row * layer->inputs, x, layer->inputs, layer->x_bias[row],
                               layer->x_mul[gate], layer->x_shift[gate]) +
                       part_of(r + row * hidden, h, hidden, layer->h_bias[row], layer->h_mul[gate],
                               layer->h_shift[gate]));

            gates[row] = (int16_t)(gate == CELL ? mur_tanh_q15(layer->sigmoid, 3 * sum)
                                                : mur_sigmoid_q15(layer->sigmoid, 3 * sum));
        }
}

static inline void move_states(const mur_lstm_s8 *layer, const int16_t *gates, int8_t *h,
                               int16_t *c)
{
    const uint32_t hidden = layer->hidden;

    for (uint32_t j = 0; j < hidden; j++) {
        const int32_t kept = to_i16(mur_scale_q31(gates[FORGET * hidden + j] * c[j], 1 << 30, -14));
        const int32_t added = to_i16(
            mur_scale_q31(gates[j] * gates[CELL * hidden + j], layer->in_mul, layer->in_shift));
        int32_t out;

        c[j] = (int16_t)mur_clamp(to_i16(kept + added), -layer->clip, layer->clip);
        out = gates[OUT * hidden + j] * tanh_of(layer, c[j]);
        out = mur_scale_q31(out, layer->out_mul, layer->out_shift);
        h[j] =
            (int8_t)(mur_clamp(out, INT8_MIN - layer->zero, INT8_MAX - layer->zero) + layer->zero);
    }
}

static inline void mur_lstm_int_run(const mur_lstm_s8 *layer, const mur_lstm_s8_operands *operands,
                                    void *scratch)
{
    const uint32_t hidden = layer->hidden;
    int16_t *gates = scratch;

    memcpy(operands->last_h, operands->h, (size_t)layer->batch * hidden);
    memcpy(operands->last_c, operands->c, (size_t)layer->batch * hidden * sizeof(int16_t));
    for (uint32_t n = 0; n < layer->batch; n++) {
        int8_t *h = operands->last_h + n * hidden;
        int16_t *c = operands->last_c + n * hidden;

        for (uint32_t t = 0; t < layer->steps; t++) {
            const uint32_t row = layer->batch_first ? n * layer->steps + t : t * layer->batch + n;

            open_gates(layer, operands, operands->x + row * layer->inputs, h, gates);
            move_states(layer, gates, h, c);
            memcpy(operands->y + row * hidden, h, hidden);
        }
    }
}
