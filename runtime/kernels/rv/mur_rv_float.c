/* mur_rv_float.c - binary32 for RISC-V cores without an FPU, in integer instructions.
 *
 * Between unpacking and rounding a magnitude is a number m of 2^30..2^31 whose low 7 bits are to be
 * rounded off, bit 0 standing for all that was below it too; with a biased exponent e it is
 * m / 2^30 * 2^(e - 127). What is not a normal number leaves the short road at one comparison.
 */
#include "mur_rv_float.h"

#define SIGN 0x80000000u
#define INFINITE 0x7f800000u
#define NOT_A_NUMBER 0x7fc00000u
#define TOP 0x40000000u /* of magnitudes */

static inline uint32_t exponent_of(uint32_t a)
{
    return a << 1 >> 24;
}

/* 2^31..2^32 of a normal number */
static inline uint32_t digits_of(uint32_t a)
{
    return a << 8 | SIGN;
}

/* not a normal number: infinite, NaN, subnormal or zero */
static inline int is_special(uint32_t exponent)
{
    return exponent - 1 >= 254;
}

static inline int is_nan(uint32_t a)
{
    return a << 1 > INFINITE << 1;
}

static inline uint32_t round_off(uint32_t m)
{
    m += 64;
    if (m & 127)
        return m >> 7;
    return m >> 8 << 1; /* halfway: to even */
}

/* m / 2^places, bit 0 standing for what is lost */
static inline uint32_t lower(uint32_t m, uint32_t places)
{
    if (places > 30)
        return m != 0;
    return m >> places | ((m << (31 - places) << 1) != 0);
}

/* beyond the range of normal numbers */
static uint32_t pack_special(uint32_t sign, int32_t e, uint32_t m)
{
    if (e > 254)
        return sign | INFINITE;
    return sign | round_off(lower(m, (uint32_t)(1 - e)));
}

static inline uint32_t pack(uint32_t sign, int32_t e, uint32_t m)
{
    if (is_special((uint32_t)e))
        return pack_special(sign, e, m);
    /* the uppermost digit adds 1 to the exponent */
    return sign | (((uint32_t)(e - 1) << 23) + round_off(m));
}

/* Digits as digits_of, and the exponent, of a number other than 0 that may be subnormal. */
static uint32_t normalize(uint32_t a, int32_t *e)
{
    uint32_t digits = a << 8;

    *e = (int32_t)exponent_of(a);
    if (*e != 0)
        return digits | SIGN;
    for (*e = 1; !(digits & SIGN); digits <<= 1)
        --*e;
    return digits;
}

static inline uint32_t multiply(uint32_t sign, int32_t e, uint32_t a, uint32_t b)
{
    uint64_t product = (uint64_t)a * (b >> 1);
    uint32_t m = (uint32_t)(product >> 32) | ((uint32_t)product != 0);

    if (m < TOP)
        return pack(sign, e, m << 1);
    return pack(sign, e + 1, m);
}

static uint32_t multiply_special(uint32_t a, uint32_t b)
{
    uint32_t sign = (a ^ b) & SIGN, first, second;
    int32_t e, f;

    a &= ~SIGN;
    b &= ~SIGN;
    if (a > INFINITE || b > INFINITE)
        return NOT_A_NUMBER;
    if (a == INFINITE || b == INFINITE)
        return a == 0 || b == 0 ? NOT_A_NUMBER : sign | INFINITE;
    if (a == 0 || b == 0)
        return sign;
    first = normalize(a, &e);
    second = normalize(b, &f);
    return multiply(sign, e + f - 127, first, second);
}

uint32_t mur_rv_float_mul(uint32_t a, uint32_t b)
{
    uint32_t e = exponent_of(a), f = exponent_of(b);

    if (is_special(e) || is_special(f))
        return multiply_special(a, b);
    return multiply((a ^ b) & SIGN, (int32_t)(e + f) - 127, digits_of(a), digits_of(b));
}

/* a and b of 2^30..2^31 with exponents e and e - places, |a| >= |b|; the sign is a's */
static inline uint32_t combine(uint32_t sign, int opposite, int32_t e, uint32_t places, uint32_t a,
                               uint32_t b)
{
    uint32_t m;

    b = lower(b, places);
    if (!opposite) {
        m = a + b;
        if (m < SIGN)
            return pack(sign, e, m);
        return pack(sign, e + 1, m >> 1 | (m & 1));
    }
    m = a - b;
    if (m == 0)
        return 0;
    for (; m < TOP >> 7; m <<= 8)
        e -= 8;
    for (; m < TOP; m <<= 1)
        e--;
    return pack(sign, e, m);
}

/* |a| >= |b| */
static uint32_t add_special(uint32_t a, uint32_t b)
{
    uint32_t first, second;
    int32_t e, f;

    if (is_nan(a) || ((a ^ b) == SIGN && a << 1 == INFINITE << 1))
        return NOT_A_NUMBER;
    if (b << 1 == 0)
        return a << 1 == 0 ? a & b : a;
    if (a << 1 == INFINITE << 1)
        return a;
    first = normalize(a & ~SIGN, &e) >> 1;
    second = normalize(b & ~SIGN, &f) >> 1;
    return combine(a & SIGN, ((a ^ b) & SIGN) != 0, e, (uint32_t)(e - f), first, second);
}

uint32_t mur_rv_float_add(uint32_t a, uint32_t b)
{
    uint32_t e, f;

    if (a << 1 < b << 1) {
        uint32_t other = a;

        a = b;
        b = other;
    }
    e = exponent_of(a);
    f = exponent_of(b);
    if (e == 255 || f == 0)
        return add_special(a, b);
    return combine(a & SIGN, (int32_t)(a ^ b) < 0, (int32_t)e, e - f, digits_of(a) >> 1,
                   digits_of(b) >> 1);
}

uint32_t mur_rv_float_sub(uint32_t a, uint32_t b)
{
    return mur_rv_float_add(a, b ^ SIGN);
}

/* of digits as digits_of: 8 binary digits at a time */
static inline uint32_t divide(uint32_t sign, int32_t e, uint32_t a, uint32_t b)
{
    uint32_t q, m;

    a >>= 8;
    b >>= 8;
    if (a < b) {
        a <<= 1;
        e--;
    }
    a <<= 7;
    m = a / b;
    a = (a - m * b) << 8;
    q = a / b;
    m = m << 8 | q;
    a = (a - q * b) << 8;
    q = a / b;
    m = m << 8 | q;
    a -= q * b;
    /* no quotient lies halfway between two numbers */
    return pack(sign, e, m << 7 | (2 * a > b ? 65u : a != 0));
}

static uint32_t divide_special(uint32_t a, uint32_t b)
{
    uint32_t sign = (a ^ b) & SIGN, first, second;
    int32_t e, f;

    a &= ~SIGN;
    b &= ~SIGN;
    if (a > INFINITE || b > INFINITE || (a == b && (a == 0 || a == INFINITE)))
        return NOT_A_NUMBER;
    if (a == INFINITE || b == 0)
        return sign | INFINITE;
    if (a == 0 || b == INFINITE)
        return sign;
    first = normalize(a, &e);
    second = normalize(b, &f);
    return divide(sign, e - f + 127, first, second);
}

uint32_t mur_rv_float_div(uint32_t a, uint32_t b)
{
    uint32_t e = exponent_of(a), f = exponent_of(b);

    if (is_special(e) || is_special(f))
        return divide_special(a, b);
    return divide((a ^ b) & SIGN, (int32_t)(e - f) + 127, digits_of(a), digits_of(b));
}

uint32_t mur_rv_float_of(int32_t x)
{
    uint32_t sign = (uint32_t)x & SIGN, m = sign ? 0u - (uint32_t)x : (uint32_t)x;
    int32_t e = 127 + 30;

    if (m == 0 || m == SIGN)
        return m == 0 ? 0 : SIGN | (127 + 31) << 23;
    if (m < TOP >> 15) {
        m <<= 16;
        e -= 16;
    }
    if (m < TOP >> 7) {
        m <<= 8;
        e -= 8;
    }
    if (m < TOP >> 3) {
        m <<= 4;
        e -= 4;
    }
    if (m < TOP >> 1) {
        m <<= 2;
        e -= 2;
    }
    if (m < TOP) {
        m <<= 1;
        e -= 1;
    }
    return sign | (((uint32_t)(e - 1) << 23) + round_off(m));
}

/* as whole numbers of the same order */
static inline int32_t order_of(uint32_t a)
{
    return (int32_t)a < 0 ? (int32_t)(0u - (a & ~SIGN)) : (int32_t)a;
}

static inline int32_t compare(uint32_t a, uint32_t b, int32_t unordered)
{
    int32_t x = order_of(a), y = order_of(b);

    if (is_nan(a) || is_nan(b))
        return unordered;
    return (x > y) - (x < y);
}

int32_t mur_rv_float_lt(uint32_t a, uint32_t b)
{
    return compare(a, b, 1);
}

int32_t mur_rv_float_le(uint32_t a, uint32_t b)
{
    return compare(a, b, 1);
}

int32_t mur_rv_float_gt(uint32_t a, uint32_t b)
{
    return compare(a, b, -1);
}

int32_t mur_rv_float_ge(uint32_t a, uint32_t b)
{
    return compare(a, b, -1);
}

int32_t mur_rv_float_eq(uint32_t a, uint32_t b)
{
    return compare(a, b, 1);
}

int32_t mur_rv_float_ne(uint32_t a, uint32_t b)
{
    return compare(a, b, 1);
}
