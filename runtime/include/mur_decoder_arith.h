/* mur_decoder_arith.h - the arithmetic of mur_decoder.h, one value at a time. */
#ifndef MUR_DECODER_ARITH_H
#define MUR_DECODER_ARITH_H

#include "mur_real.h"

#define MUR_LEAST 7.88860905e-31f /* 2^-100: a vector without larger elements is zero */

/* The nearest integer of |x| <= 2^15, modulo 2^16. */
static inline int16_t mur_round(float x)
{
    return (int16_t)mur_float_bits(x + MUR_SNAP);
}

/* mur_round(x * by) */
static inline int16_t mur_round_product(float x, float by)
{
#if MUR_SOFT_FLOAT
    return (int16_t)mur_soft_quantized(mur_float_bits(x), mur_float_bits(by));
#else
    return mur_round(x * by);
#endif
}

/* what a sum of products is of scales */
static inline float mur_scaled(int32_t sum, float scale, float by)
{
#if MUR_SOFT_FLOAT
    uint32_t a = mur_float_bits(scale), b = mur_float_bits(by);

    if (mur_soft_can_scale(sum, a, b))
        return mur_float_of(mur_soft_scaled(sum, a, b));
#endif
    return (float)sum * (scale * by);
}

static inline uint32_t mur_greater(uint32_t most, float x)
{
    uint32_t bits = mur_float_bits(x) << 1;

    return bits > most ? bits : most;
}

/* max |x[i]|: magnitudes are ordered as their bits are */
static inline float mur_most(const float *x, uint32_t count)
{
    uint32_t most = 0;

    for (; count >= 4; count -= 4, x += 4) {
        most = mur_greater(most, x[0]);
        most = mur_greater(most, x[1]);
        most = mur_greater(most, x[2]);
        most = mur_greater(most, x[3]);
    }
    for (; count != 0; count--, x++)
        most = mur_greater(most, *x);
    return mur_float_of(most >> 1);
}

/* The first position that a query at pos sees, `seen` of them or all (0). */
static inline uint32_t mur_first_seen(uint32_t seen, uint32_t pos)
{
    return seen != 0 && seen <= pos ? pos + 1 - seen : 0;
}

#endif
