/* mur_real_soft.h - products with scales and mur_real.h's e^x in whole numbers, for cores that
 * compute floats by calls: the same bits in a fraction of the instructions, as much is known of the
 * numbers beforehand.
 *
 * Every operation is done and rounded as with floats, which are their bits here. Digits are a whole
 * number of 2^23..2^24: those of a number with exponent e are times 2^(e - 150).
 */
#ifndef MUR_REAL_SOFT_H
#define MUR_REAL_SOFT_H

#include <stdint.h>

/* whether the compiler calls functions for floats */
#if (defined(__arm__) && !(defined(__ARM_FP) && (__ARM_FP & 4))) || \
    (defined(__riscv) && !defined(__riscv_flen))
#define MUR_SOFT_FLOAT 1
#else
#define MUR_SOFT_FLOAT 0
#endif

/* of a float's bits */
static inline uint32_t mur_soft_exponent(uint32_t x)
{
    return x << 1 >> 24;
}

static inline uint32_t mur_soft_digits(uint32_t x)
{
    return (x & 0x7fffff) | 0x800000;
}

/* m / 2^6 to the nearest, halves to even; bit 0 may stand for all that was below */
static inline uint32_t mur_soft_round(uint32_t m)
{
    m += 32;
    return m & 63 ? m >> 6 : m >> 7 << 1;
}

/* The digits of a * b, whose last place is 2^24, or half of it where *places grows by 1. */
static inline uint32_t mur_soft_product(uint32_t a, uint32_t b, uint32_t *places)
{
    uint64_t product = (uint64_t)(a << 7) * (b << 7);
    uint32_t m = (uint32_t)(product >> 32) | ((uint32_t)product != 0);

    if (m < 1u << 29) {
        m <<= 1;
        ++*places;
    }
    return mur_soft_round(m);
}

/* c + t / 2^places to the nearest, halves to even; places 1..30 */
static inline uint32_t mur_soft_sum(uint32_t c, int32_t t, uint32_t places)
{
    uint32_t odd = (c + (uint32_t)(t >> places)) & 1;

    return c + (uint32_t)((t + (int32_t)((1u << (places - 1)) - 1 + odd)) >> places);
}

/* ---- products ---- */

/* Whether mur_soft_scaled may be asked: no number on the way is too large or too small. */
static inline int mur_soft_can_scale(int32_t sum, uint32_t a, uint32_t b)
{
    uint32_t e = a >> 23, f = b >> 23;

    return e - 1 < 254 && f - 1 < 254 && e + f - 129 < 200 && (uint32_t)sum + 0xffffff < 0x1ffffff;
}

/* (float)sum * (a * b) */
static inline uint32_t mur_soft_scaled(int32_t sum, uint32_t a, uint32_t b)
{
    uint32_t size = sum < 0 ? 0u - (uint32_t)sum : (uint32_t)sum, less = 0, scale;

    if (size == 0)
        return 0;
    if (size < 1u << 12) {
        size <<= 12;
        less = 12;
    }
    if (size < 1u << 18) {
        size <<= 6;
        less += 6;
    }
    for (; size < 1u << 23; size <<= 1)
        less++;
    scale = mur_soft_product(mur_soft_digits(a), mur_soft_digits(b), &less);
    size = mur_soft_product(size, scale, &less);
    /* the uppermost digit adds 1 to the exponent */
    return ((uint32_t)sum & 0x80000000u) +
           ((mur_soft_exponent(a) + mur_soft_exponent(b) - 103 - less) << 23) + size;
}

/* x * by to the nearest whole number, halves to even, of |x * by| <= 2^15 and a normal by below
 * 2^125; 0 for any other by */
static inline int32_t mur_soft_quantized(uint32_t x, uint32_t by)
{
    uint32_t places = 276 - mur_soft_exponent(x) - mur_soft_exponent(by), size;

    if (mur_soft_exponent(by) - 1 >= 254)
        return 0;
    size = mur_soft_product(mur_soft_digits(x), mur_soft_digits(by), &places);
    size = places - 1 > 24 ? 0 : mur_soft_sum(0, (int32_t)size, places);
    return x >> 31 ? -(int32_t)size : (int32_t)size;
}

/* ---- e^x ---- */

/* r of the series: its last place is 2^-(25 + d) */
typedef struct mur_soft_rest {
    uint32_t digits, d, negative;
} mur_soft_rest;

/* r of x = digits * 2^(exponent - 150) = n ln 2 + r, 1 <= n <= 127 */
static inline mur_soft_rest mur_soft_rest_of(uint32_t digits, uint32_t exponent, uint32_t n)
{
    /* n ln 2 in two parts, of units of 2^-25 and 2^-36 */
    int32_t high = (int32_t)((digits << (exponent - 125)) - n * (355u << 16));
    uint32_t low = n * 0xde8083u, places = 0;
    int64_t sum;
    uint64_t size;
    mur_soft_rest r = { 0, 0, 0 };

    while (low >> places >= 1u << 24)
        places++;
    if (places != 0)
        low = mur_soft_sum(0, (int32_t)low, places) << places;
    sum = (int64_t)high * 2048 + (int64_t)low;
    r.negative = sum < 0;
    for (size = (uint64_t)(sum < 0 ? -sum : sum); r.d < 24 && size >> 34 == 0; size <<= 1)
        r.d++;
    r.digits = mur_soft_round((uint32_t)(size >> 5) | ((size & 31) != 0));
    return r;
}

/* c + p * r; the product's last place is that many places, and d, below c's */
static inline uint32_t mur_soft_step(uint32_t p, mur_soft_rest r, uint32_t c, uint32_t places)
{
    int32_t t;

    places += r.d;
    t = (int32_t)mur_soft_product(p, r.digits, &places);
    return mur_soft_sum(c, r.negative ? -t : t, places);
}

/* the bits of 1 + (r + p r r) */
static inline uint32_t mur_soft_end(uint32_t p, mur_soft_rest r)
{
    uint32_t places = r.d + 1 + r.negative, m = r.digits << 6;
    uint32_t square = mur_soft_product(p, r.digits, &places);

    square = mur_soft_product(square, r.digits, &places) << 6;
    square = square >> places | ((square & ((1u << places) - 1)) != 0);
    if (r.negative) {
        m -= square;
        places = r.d + 1;
        if (m < 1u << 29) {
            m <<= 1;
            places++;
        }
        return (125u << 23) + mur_soft_sum(1u << 24, -(int32_t)mur_soft_round(m), places);
    }
    m += square;
    places = r.d + 2;
    if (m >> 30) {
        m = m >> 1 | (m & 1);
        places--;
    }
    return (126u << 23) + mur_soft_sum(1u << 23, (int32_t)mur_soft_round(m), places);
}

/* the bits of 1 + r + .. + r^7 / 5040, |r| < 0.4 */
static inline uint32_t mur_soft_series(mur_soft_rest r)
{
    /* 1 / 720 .. 1 / 6 */
    static const uint32_t digits[] = { 0xb60b61, 0x888889, 0xaaaaab, 0xaaaaab };
    uint32_t p = 0xd00d01;

    for (uint32_t i = 0; i < 4; i++)
        p = mur_soft_step(p, r, digits[i], i < 2 ? 4 : 3);
    /* 1 / 2: what is below it has a place more */
    p = mur_soft_step(p, r, 1u << 23 << r.negative, 3 - r.negative);
    return mur_soft_end(p, r);
}

/* mur_exp of bits */
static inline uint32_t mur_soft_exp(uint32_t x)
{
    uint32_t most = x >> 31 ? 0x42ae0000 : 0x42b00000, size = x & 0x7fffffff, exponent, n = 0;
    mur_soft_rest r;

    if (size > 0x7f800000) /* NaN */
        return x;
    size = size < most ? size : most;
    exponent = size >> 23;
    r.digits = mur_soft_digits(size);
    r.d = 125 - exponent;
    r.negative = 0;
    if (exponent >= 125) {
        uint32_t places = 149 - exponent;

        n = mur_soft_product(r.digits, 0xb8aa3b, &places);
        n = mur_soft_sum(0, (int32_t)n, places);
    }
    if (n != 0)
        r = mur_soft_rest_of(r.digits, exponent, n);
    r.negative ^= x >> 31;
    /* of less than 2^-25 nothing is left beside 1 */
    x = (x >> 31 ? 0 - n : n) << 23;
    return x + (r.d < 24 ? mur_soft_series(r) : 127u << 23);
}

#endif
