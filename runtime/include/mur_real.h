/* mur_real.h - elementary functions of binary32 from IEEE operations alone.
 *
 * A C library's last bit differs from one machine to the next, and a freestanding one has no such
 * functions; these have the same bits everywhere, NaN's sign and payload aside (compile with
 * -ffp-contract=off). The reference and generated code both call them. Errors in units of the last
 * place of the true result, over all numbers, as tests/test_real.c measures them, stand with each.
 * NaN gives NaN; infinities and signed zeros give what C's functions give.
 */
#ifndef MUR_REAL_H
#define MUR_REAL_H

#include "mur_real_soft.h"

/* 1.5 * 2^23: added to a number below 2^22, the sum's last place is 1 and its low bits are the
 * number rounded to an integer, halves to even. */
#define MUR_SNAP 12582912.0f
#define MUR_SNAP_BITS 0x4b400000u
#define MUR_INFINITY_BITS 0x7f800000u
#define MUR_SIGN_BIT 0x80000000u

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

/* ---- exact ---- */

static inline float mur_abs(float x)
{
    return mur_float_of(mur_float_bits(x) & ~MUR_SIGN_BIT);
}

/* |x| with y's sign */
static inline float mur_with_sign(float x, float y)
{
    return mur_float_of((mur_float_bits(x) & ~MUR_SIGN_BIT) | (mur_float_bits(y) & MUR_SIGN_BIT));
}

/* the greater, NaN if either is one */
static inline float mur_max(float x, float y)
{
    return x > y || x != x ? x : y;
}

static inline float mur_min(float x, float y)
{
    return x < y || x != x ? x : y;
}

/* whether x is above y; NaN is above all others */
static inline int mur_above(float x, float y)
{
    return x > y || (x != x && y == y);
}

/* to nearest, halves to even */
static inline float mur_round_even(float x)
{
    float size = mur_abs(x);

    /* larger numbers are whole, or none */
    return size < 8388608.0f ? mur_with_sign((size + 8388608.0f) - 8388608.0f, x) : x;
}

static inline float mur_floor(float x)
{
    float n = mur_round_even(x);

    return n > x ? n - 1.0f : n;
}

static inline float mur_ceil(float x)
{
    float n = mur_round_even(x);

    return n < x ? mur_with_sign(n + 1.0f, x) : n;
}

/* The square root digit by digit, of what is positive and finite. 25 digits decide the rounding,
 * as no root lies halfway. */
static inline float mur_sqrt_by_digits(float x)
{
    uint32_t bits = mur_float_bits(x), below = 0, exponent, rest = 0, root = 0, square;

    if (bits < 0x800000u) { /* subnormal */
        bits = mur_float_bits(x * 16777216.0f);
        below = 12u << 23;
    }
    exponent = bits >> 23;
    square = (bits & 0x7fffffu) | 0x800000u; /* times 2^(exponent - 150) */
    if (exponent % 2 == 0)
        square <<= 1;
    square <<= 7; /* 2^30..2^32: two digits at a time from the top */
    for (uint32_t i = 0; i < 25; i++) {
        uint32_t trial = root << 2 | 1;

        rest = rest << 2 | square >> 30;
        square <<= 2;
        root <<= 1;
        if (rest >= trial) {
            rest -= trial;
            root |= 1;
        }
    }
    /* 2^24 <= root < 2^25: the lowest digit is the first that is rounded off */
    root = (root + 1) >> 1;
    return mur_float_of(root + ((exponent - 1) / 2 + 63) * 0x800000u - below);
}

/* Rounded correctly: an instruction where there is one. */
static inline float mur_sqrt(float x)
{
#if defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__aarch64__)
    __asm__("vsqrt.f32 %0, %1" : "=t"(x) : "t"(x));
    return x;
#elif defined(__aarch64__)
    __asm__("fsqrt %s0, %s1" : "=w"(x) : "w"(x));
    return x;
#elif defined(__SSE__)
    __asm__("sqrtss %1, %0" : "=x"(x) : "x"(x));
    return x;
#elif defined(__riscv_flen)
    __asm__("fsqrt.s %0, %1" : "=f"(x) : "f"(x));
    return x;
#else
    if (!(x > 0.0f) || mur_float_bits(x) == MUR_INFINITY_BITS)
        return x < 0.0f ? (x - x) / (x - x) : x;
    return mur_sqrt_by_digits(x);
#endif
}

/* the rest of x / y with x's sign, exact; NaN of an infinite x and of y = 0 */
static inline float mur_fmod(float x, float y)
{
    float rest = mur_abs(x), by = mur_abs(y);

    if (!(rest < mur_float_of(MUR_INFINITY_BITS)) || !(by > 0.0f))
        return (x * y) / (x * y);
    while (rest >= by) {
        /* by times the power of two that brings it just below rest, or by itself */
        uint32_t places = (mur_float_bits(rest) >> 23) - (mur_float_bits(by) >> 23);
        float most = by;

        for (; places > 0; places--)
            most += most;
        rest -= most > rest ? most * 0.5f : most;
    }
    return mur_with_sign(rest, x);
}

/* the same with y's sign */
static inline float mur_real_mod(float x, float y)
{
    float rest = mur_fmod(x, y);

    return rest != 0.0f && (rest < 0.0f) != (y < 0.0f) ? rest + y : rest;
}

/* ---- exponentials ---- */

/* 1 + r + .. + r^7 / 5040 where x = n ln 2 + r; n is left in the low bits of *shifted */
static inline float mur_exp_rest(float x, float *shifted)
{
    float n, r, p;

    *shifted = x * 1.44269504f + MUR_SNAP;
    n = *shifted - MUR_SNAP;
    r = x - n * 0.693359375f + n * 2.12194440e-4f;
    p = r * (1 / 5040.0f) + 1 / 720.0f;
    p = p * r + 1 / 120.0f;
    p = p * r + 1 / 24.0f;
    p = p * r + 1 / 6.0f;
    p = p * r + 0.5f;
    return p * r * r + r + 1;
}

/* 2^n, -126 <= n <= 127 */
static inline float mur_power_of_two(int32_t n)
{
    return mur_float_of((uint32_t)(n + 127) << 23);
}

/* e^x, x first brought into -87..88. 1 unit. */
static inline float mur_exp(float x)
{
#if MUR_SOFT_FLOAT
    return mur_float_of(mur_soft_exp(mur_float_bits(x)));
#else
    float shifted, p;

    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    p = mur_exp_rest(x, &shifted);
    return p * mur_float_of((mur_float_bits(shifted) - MUR_SNAP_BITS + 127) << 23);
#endif
}

/* e^x of any x. 1 unit. */
static inline float mur_real_exp(float x)
{
    float shifted, p;
    int32_t n;

    if (x >= -87.0f && x <= 88.0f)
        return mur_exp(x);
    if (!(x > -104.0f))
        return x != x ? x : 0.0f;
    if (x > 89.0f)
        return mur_float_of(MUR_INFINITY_BITS);
    p = mur_exp_rest(x, &shifted);
    n = (int32_t)(mur_float_bits(shifted) - MUR_SNAP_BITS);
    return p * mur_power_of_two(n / 2) * mur_power_of_two(n - n / 2);
}

/* e^x - 1. 2 units. */
static inline float mur_real_expm1(float x)
{
    float p;

    if (!(x > -0.5f && x < 0.5f))
        return mur_real_exp(x) - 1.0f;
    p = x * (1 / 40320.0f) + 1 / 5040.0f;
    p = p * x + 1 / 720.0f;
    p = p * x + 1 / 120.0f;
    p = p * x + 1 / 24.0f;
    p = p * x + 1 / 6.0f;
    p = p * x + 0.5f;
    return p * x * x + x;
}

/* ---- logarithms ---- */

/* log(2^n (1 + f)), sqrt(1/2) <= 1 + f < sqrt 2: with s = f / (2 + f) it is 2 atanh s */
static inline float mur_log_of(float n, float f)
{
    float s = f / (2.0f + f), z = s * s, half = 0.5f * f * f, p;

    p = z * (2 / 9.0f) + 2 / 7.0f;
    p = p * z + 2 / 5.0f;
    p = (p * z + 2 / 3.0f) * z;
    return n * 0.693359375f + (f - (half - (s * (half + p) - n * 2.12194440e-4f)));
}

/* 1 unit */
static inline float mur_real_log(float x)
{
    uint32_t bits = mur_float_bits(x);
    int32_t n = 0;

    if (bits - 1u >= MUR_INFINITY_BITS - 1u) { /* not positive, not finite */
        if (bits == MUR_INFINITY_BITS || x != x)
            return x;
        return x == 0.0f ? -mur_float_of(MUR_INFINITY_BITS) : (x - x) / (x - x);
    }
    if (bits < 0x800000u) { /* subnormal */
        bits = mur_float_bits(x * 16777216.0f);
        n = -24;
    }
    bits -= 0x3f3504f3u; /* sqrt(1/2) */
    n += (int32_t)bits >> 23;
    return mur_log_of((float)n, mur_float_of((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f);
}

/* log(1 + x). 2 units. */
static inline float mur_real_log1p(float x)
{
    float sum = 1.0f + x;

    if (x > -0.29f && x < 0.41f)
        return mur_log_of(0.0f, x);
    if (!(x > -1.0f) || !(x < 16777216.0f))
        return mur_real_log(sum);
    /* what the sum has lost */
    return mur_real_log(sum) + (x < 1.0f ? x - (sum - 1.0f) : 1.0f - (sum - x)) / sum;
}

/* ---- functions of networks ---- */

/* 1.5 units */
static inline float mur_real_tanh(float x)
{
    float size = mur_abs(x), z = x * x, p;

    if (size < 0.625f) {
        p = z * -0.0055286340f + 0.020483317f;
        p = p * z - 0.053692968f;
        p = p * z + 0.13330900f;
        p = p * z - 0.33333263f;
        return p * z * x + x;
    }
    if (!(size < 9.1f))
        return x != x ? x : mur_with_sign(1.0f, x);
    return mur_with_sign(1.0f - 2.0f / (mur_exp(size + size) + 1.0f), x);
}

/* 1.5 units; from 1 on as 1 - e^P(|x|), P of log(1 - erf) */
static inline float mur_real_erf(float x)
{
    float size = mur_abs(x), z = x * x, p;

    if (size < 1.0f) {
        p = z * 7.8891232e-5f - 8.0208424e-4f;
        p = p * z + 0.0051895355f;
        p = p * z - 0.026854445f;
        p = p * z + 0.11283600f;
        p = p * z - 0.37612627f;
        p = p * z + 0.12837917f;
        return p * x + x;
    }
    if (!(size < 3.95f))
        return x != x ? x : mur_with_sign(1.0f, x);
    p = size * 1.86378985e-4f - 0.0029476562f;
    p = p * size + 0.021838056f;
    p = p * size - 0.10310674f;
    p = p * size - 0.63814485f;
    p = p * size - 1.12708918f;
    p = p * size - 3.41526260e-4f;
    return mur_with_sign(1.0f - mur_exp(p), x);
}

/* 1 / (1 + e^-x). 2.5 units; 0 below -88.8, where it is subnormal. */
static inline float mur_real_sigmoid(float x)
{
    return 1.0f / (1.0f + mur_real_exp(-x));
}

/* x / (1 + e^-(alpha x)), the exponent first brought into -87..88 */
static inline float mur_real_silu(float x, float alpha)
{
    return x / (1.0f + mur_exp(-(alpha * x)));
}

/* log(1 + e^x). 2 units. */
static inline float mur_real_softplus(float x)
{
    return mur_max(x, 0.0f) + mur_real_log1p(mur_real_exp(-mur_abs(x)));
}

static inline float mur_real_hard_sigmoid(float x, float alpha, float beta)
{
    float line = alpha * x + beta;

    return line < 0.0f ? 0.0f : line > 1.0f ? 1.0f : line;
}

#endif
