/* fixed.c - fixed-point multipliers, exp and reciprocal as TFLite's reference kernels have them.
 *
 * e^x and 1/x follow gemmlowp's fixed-point functions operation by operation, since their last bit
 * shows in a softmax: a Taylor series of degree 4 around -1/8 and factors e^-(2^k), Newton's
 * iteration from 48/17 - 32/17 d.
 */
#include "base/fixed.h"

#include <math.h>

muc_multiplier muc_multiplier_of(double factor)
{
    muc_multiplier out = { 0, 0 };
    int exponent;
    int64_t mantissa = (int64_t)round(frexp(factor, &exponent) * 2147483648.0);

    if (mantissa == INT64_C(1) << 31) {
        mantissa /= 2;
        exponent++;
    }
    if (mantissa == 0 || exponent < -31)
        return out;
    out.mantissa = (int32_t)mantissa;
    out.shift = exponent;
    return out;
}

int32_t muc_fixed_high_mul(int32_t a, int32_t b)
{
    int64_t product = (int64_t)a * b;

    if (a == INT32_MIN && b == INT32_MIN)
        return INT32_MAX;
    /* gemmlowp adds 2^30, or 1 - 2^30 to a negative product, and truncates: halves go up */
    return (int32_t)((product + (product >= 0 ? INT64_C(1) << 30 : 1 - (INT64_C(1) << 30))) /
                     (INT64_C(1) << 31));
}

int32_t muc_fixed_divide_pot(int32_t x, int n)
{
    int64_t half = n ? INT64_C(1) << (n - 1) : 0;
    int64_t magnitude = x < 0 ? -(int64_t)x : x, rounded = (magnitude + half) >> n;

    return (int32_t)(x < 0 ? -rounded : rounded);
}

/* x * 2^n modulo 2^32; n comes from files, too */
static int32_t shift_left(int32_t x, int n)
{
    return n < 32 ? (int32_t)((uint32_t)x << n) : 0;
}

static int32_t saturate(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

int32_t muc_multiply(int32_t x, muc_multiplier multiplier)
{
    int left = multiplier.shift > 0 ? multiplier.shift : 0;
    int right = multiplier.shift > 0 ? 0 : -multiplier.shift;

    return muc_fixed_divide_pot(muc_fixed_high_mul(shift_left(x, left), multiplier.mantissa),
                                right);
}

int32_t muc_multiply_wide(int64_t x, muc_multiplier multiplier)
{
    int32_t mantissa =
        multiplier.mantissa < 0x7FFF0000 ? (multiplier.mantissa + (1 << 15)) >> 16 : 0x7FFF;
    int shift = 15 - multiplier.shift;

    return (int32_t)((x * mantissa + (INT64_C(1) << (shift - 1))) >> shift);
}

/* e^x of -1/4 <= x < 0, all in Q0.31 */
static int32_t exp_of_quarter(int32_t x)
{
    const int32_t third = 715827883, exp_of_minus_eighth = 1895147668;
    int32_t y = x + (1 << 28); /* around -1/8 */
    int32_t y2 = muc_fixed_high_mul(y, y), y3 = muc_fixed_high_mul(y2, y);
    int32_t y4 = muc_fixed_high_mul(y2, y2), tail;

    tail = muc_fixed_high_mul(muc_fixed_divide_pot(y4, 2) + y3, third) + y2;
    return exp_of_minus_eighth +
           muc_fixed_high_mul(exp_of_minus_eighth, y + muc_fixed_divide_pot(tail, 1));
}

int32_t muc_fixed_exp(int32_t x)
{
    /* e^-(2^(i - 2)) in Q0.31 */
    static const int32_t factors[] = { 1672461947, 1302514674, 790015084, 290630308,
                                       39332535,   720401,     242 };
    const int32_t quarter = 1 << 24;
    int32_t part = (int32_t)((uint32_t)x & (uint32_t)(quarter - 1)) - quarter;
    int32_t result = exp_of_quarter(shift_left(part, 5)), rest = part - x;

    if (x == 0)
        return INT32_MAX;
    for (size_t i = 0; i < MUC_COUNT(factors); i++)
        if (rest >> (24 + i) & 1)
            result = muc_fixed_high_mul(result, factors[i]);
    return result;
}

/* 1 / (1 + x) of x in 0..1, in Q0.31 */
static int32_t reciprocal_of_one_plus(int32_t x)
{
    const int32_t a = 1515870810, b = -1010580540, one = 1 << 29; /* 48/17, -32/17, 1 in Q2.29 */
    int32_t half = (int32_t)(((int64_t)x + INT32_MAX + 1) / 2);
    int32_t guess = a + muc_fixed_high_mul(half, b);

    for (int i = 0; i < 3; i++) {
        int32_t error = one - muc_fixed_high_mul(half, guess);

        guess += saturate((int64_t)muc_fixed_high_mul(guess, error) * 4);
    }
    return saturate((int64_t)guess * 2); /* half of Q2.29 in Q0.31 */
}

int32_t muc_fixed_reciprocal(int32_t x, int integer_bits, int *shift)
{
    uint32_t bits = (uint32_t)x;
    int zeros = 0;

    while (!(bits >> 31)) {
        bits <<= 1;
        zeros++;
    }
    *shift = integer_bits - zeros;
    return reciprocal_of_one_plus((int32_t)(bits - (UINT32_C(1) << 31)));
}
