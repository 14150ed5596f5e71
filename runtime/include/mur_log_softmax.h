/* mur_log_softmax.h - the logarithm of softmax of int8 rows (mur_log_softmax_s8 of mur_nn.h) in
 * plain C. */
#ifndef MUR_LOG_SOFTMAX_H
#define MUR_LOG_SOFTMAX_H

#include "mur_nn_arith.h"

/* log2(x) in 2^-16ths, x at least 2^20 */
static inline int32_t mur_logarithm_of(uint32_t x)
{
    int32_t log = 31;

    for (; x < 1u << 31; x <<= 1)
        log--;
    for (int bit = 0; bit < 16; bit++) {
        const uint64_t square = (uint64_t)x * x >> 31;

        log = (log << 1) + (int32_t)(square >> 32);
        x = square >> 32 ? (uint32_t)(square >> 1) : (uint32_t)square;
    }
    return log;
}

/* what the row's greatest element gives, in 2^-16ths; sum: of the row's exponentials */
static inline int32_t mur_log_softmax_top(const mur_log_softmax_s8 *layer, uint32_t sum)
{
    const int32_t log = mur_logarithm_of(sum) - (20 << 16);

    return (layer->zero * (1 << 16)) + (1 << 15) -
           (int32_t)(((int64_t)log * layer->log_step) >> 16);
}

static inline void mur_log_softmax_plain(const mur_log_softmax_s8 *layer, const int8_t *in,
                                         int8_t *out)
{
    const int32_t n = layer->columns;

    for (int32_t row = 0; row < layer->rows; row++, in += n, out += n) {
        int32_t greatest = INT8_MIN, top;
        uint32_t sum = 0;

        for (int32_t i = 0; i < n; i++)
            greatest = in[i] > greatest ? in[i] : greatest;
        for (int32_t i = 0; i < n; i++)
            sum += layer->exps[greatest - in[i]];
        top = mur_log_softmax_top(layer, sum);
        for (int32_t i = 0; i < n; i++)
            out[i] = (int8_t)mur_clamp(mur_asr(top - (greatest - in[i]) * layer->step, 16),
                                       layer->min, layer->max);
    }
}

#endif
