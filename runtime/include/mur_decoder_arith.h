/* mur_decoder_arith.h - the arithmetic of mur_decoder.h, one value at a time. */
#ifndef MUR_DECODER_ARITH_H
#define MUR_DECODER_ARITH_H

#include <stdint.h>

/* 1.5 * 2^23: added to a number below 2^22, the sum's last place is 1 and its low bits are the
 * number rounded to an integer, halves to even. */
#define MUR_SNAP 12582912.0f
#define MUR_SNAP_BITS 0x4b400000u
#define MUR_LEAST 7.88860905e-31f /* 2^-100: a vector without larger elements is zero */

/* a union, not memcpy, which a freestanding compiler would call */
typedef union mur_float {
    float value;
    uint32_t bits;
} mur_float;

static inline uint32_t mur_float_bits(float x)
{
    mur_float both = { x };

    return both.bits;
}

static inline float mur_float_of(uint32_t bits)
{
    mur_float both;

    both.bits = bits;
    return both.value;
}

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

/* e^x, x first brought into -87..88: 2^n (1 + r + .. + r^7 / 5040), n the nearest of x / ln 2. */
static inline float mur_exp(float x)
{
    float shifted, n, r, p;

    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    shifted = x * 1.44269504f + MUR_SNAP;
    n = shifted - MUR_SNAP;
    r = x - n * 0.693359375f + n * 2.12194440e-4f;
    p = r * (1 / 5040.0f) + 1 / 720.0f;
    p = p * r + 1 / 120.0f;
    p = p * r + 1 / 24.0f;
    p = p * r + 1 / 6.0f;
    p = p * r + 0.5f;
    p = p * r * r + r + 1;
    return p * mur_float_of((mur_float_bits(shifted) - MUR_SNAP_BITS + 127) << 23);
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

#endif
