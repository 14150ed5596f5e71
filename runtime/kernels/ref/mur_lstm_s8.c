/* mur_lstm_s8.c - see mur_recurrent.h: sequence by sequence, so that one state is at work. */
#include "mur_recurrent.h"

#include <string.h>

#include "mur_nn_arith.h"

enum { IN, OUT, FORGET, CELL, GATES };

static int32_t to_i16(int32_t x)
{
    return mur_clamp(x, INT16_MIN, INT16_MAX);
}

/* of x in Q3.12: between two entries of the table, which stand for 1/24 */
static int32_t sigmoid(const uint16_t *table, int32_t x)
{
    const int32_t wide = 3 * x;
    const uint32_t size = (uint32_t)(wide < 0 ? -wide : wide), i = size >> 9;
    uint32_t result = (uint32_t)0x7fff << 10;

    if (i < 255)
        result = ((uint32_t)table[i] << 9) + (size & 0x1ff) * (uint32_t)(table[i + 1] - table[i]);
    result = wide < 0 ? ((uint32_t)1 << 25) - result + 511 : result + 512;
    return (int32_t)(result >> 10);
}

/* 2 sigmoid(2 x) - 1 of x in units of 2^(shift - 12) */
static int32_t hyperbolic(const uint16_t *table, int32_t x, int32_t shift)
{
    const int32_t wide =
        shift < 0 ? mur_asr(3 * x + (1 << (-shift - 1)), -shift) : 3 * x * (1 << shift);
    const uint32_t size = (uint32_t)(wide < 0 ? -wide : wide), i = size >> 8;
    int32_t result = 0xffff << 8;

    if (i < 255)
        result = (int32_t)(((uint32_t)table[i] << 8) +
                           (size & 0xff) * (uint32_t)(table[i + 1] - table[i]));
    result -= 1 << 23;
    return mur_asr(wide < 0 ? 127 - result : 128 + result, 8);
}

static int32_t dot(const int8_t *a, const int8_t *b, uint32_t count, int32_t sum)
{
    uint32_t s0 = (uint32_t)sum, s1 = 0;
    uint32_t i = 0;

    for (; i + 2 <= count; i += 2) {
        s0 += (uint32_t)(a[i] * b[i]);
        s1 += (uint32_t)(a[i + 1] * b[i + 1]);
    }
    if (i < count)
        s0 += (uint32_t)(a[i] * b[i]);
    return (int32_t)(s0 + s1);
}

/* all gates from x and the state h */
static void open_gates(const mur_lstm_s8 *layer, const mur_lstm_s8_operands *o, const int8_t *x,
                       const int8_t *h, int16_t *gates)
{
    const uint32_t hidden = layer->hidden;
    const int8_t *w = o->w, *r = o->r;
    uint32_t row = 0;

    for (int gate = 0; gate < GATES; gate++)
        for (uint32_t j = 0; j < hidden; j++, row++) {
            const int32_t a = dot(w + row * layer->inputs, x, layer->inputs, layer->x_bias[row]);
            const int32_t b = dot(r + row * hidden, h, hidden, layer->h_bias[row]);
            const int32_t sum =
                to_i16(to_i16(mur_scale_q31(a, layer->x_mul[gate], layer->x_shift[gate])) +
                       to_i16(mur_scale_q31(b, layer->h_mul[gate], layer->h_shift[gate])));

            gates[row] = (int16_t)(gate == CELL ? hyperbolic(layer->sigmoid, sum, 0)
                                                : sigmoid(layer->sigmoid, sum));
        }
}

static void move_states(const mur_lstm_s8 *layer, const int16_t *gates, int8_t *h, int16_t *c)
{
    const uint32_t hidden = layer->hidden;

    for (uint32_t j = 0; j < hidden; j++) {
        const int32_t kept = to_i16(mur_scale_q31(gates[FORGET * hidden + j] * c[j], 1 << 30, -14));
        const int32_t added = to_i16(
            mur_scale_q31(gates[j] * gates[CELL * hidden + j], layer->in_mul, layer->in_shift));
        int32_t out;

        c[j] = (int16_t)mur_clamp(to_i16(kept + added), -layer->clip, layer->clip);
        out = gates[OUT * hidden + j] * hyperbolic(layer->sigmoid, c[j], layer->cell_shift);
        out = mur_scale_q31(out, layer->out_mul, layer->out_shift);
        h[j] =
            (int8_t)(mur_clamp(out, INT8_MIN - layer->zero, INT8_MAX - layer->zero) + layer->zero);
    }
}

void mur_lstm_s8_run(const mur_lstm_s8 *layer, const mur_lstm_s8_operands *operands, void *scratch)
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
