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

/* 2^(i / 32), rounded */
extern const uint32_t mur_exp_table[32];

/* e^x for x <= 0, 0 below -80: with n = rne(x * 32 / ln 2) and r = x - n * (ln 2 / 32) it is
 * (1 + r * (1 + r / 2)) * 2^(n / 32), the power from the table. Within 1e-6 near 0, 1e-5 at -80. */
static inline float mur_exp_fast(float x)
{
    float shifted, r, p;
    uint32_t n;

    if (x < -80.0f)
        return 0;
    shifted = x * 46.1662413f + MUR_SNAP;
    r = x - (shifted - MUR_SNAP) * 0.0216608494f;
    p = (r * 0.5f + 1.0f) * r + 1.0f;
    n = mur_float_bits(shifted); /* MUR_SNAP's own bits are gone after the shifts */
    return p * mur_float_of(mur_exp_table[n & 31u] + ((n & ~31u) << 18));
}

/* The first position that a query at pos sees, `seen` of them or all (0). */
static inline uint32_t mur_first_seen(uint32_t seen, uint32_t pos)
{
    return seen != 0 && seen <= pos ? pos + 1 - seen : 0;
}

#endif
