/* mur_real_wide.h - elementary functions of binary32 that networks rarely hold, by way of binary64:
 * within 1 unit in the last place, the same bits everywhere. See mur_real.h.
 */
#ifndef MUR_REAL_WIDE_H
#define MUR_REAL_WIDE_H

#include "mur_real.h"

#define MUR_WIDE_HALF_PI 1.57079632679489661923
#define MUR_WIDE_LN2 0.69314718055994530942

typedef union mur_double {
    double value;
    uint64_t bits;
} mur_double;

static inline double mur_wide_power_of_two(int32_t n) /* -1022..1023 */
{
    mur_double both;

    both.bits = (uint64_t)(n + 1023) << 52;
    return both.value;
}

/* the nearest integer of |x| < 2^31 */
static inline int32_t mur_wide_round(double x)
{
    return (int32_t)(x + (x < 0 ? -0.5 : 0.5));
}

/* |x| <= 700 */
static inline double mur_wide_exp(double x)
{
    int32_t n = mur_wide_round(x * (1 / MUR_WIDE_LN2));
    double r = x - n * 6.93147180369123816490e-01 - n * 1.90821492927058770002e-10;
    double p = r * (1 / 39916800.0) + 1 / 3628800.0;

    p = p * r + 1 / 362880.0;
    p = p * r + 1 / 40320.0;
    p = p * r + 1 / 5040.0;
    p = p * r + 1 / 720.0;
    p = p * r + 1 / 120.0;
    p = p * r + 1 / 24.0;
    p = p * r + 1 / 6.0;
    p = p * r + 0.5;
    return ((p * r + 1) * r + 1) * mur_wide_power_of_two(n);
}

/* x > 0, normal */
static inline double mur_wide_log(double x)
{
    mur_double both = { x };
    int32_t n = (int32_t)(both.bits >> 52) - 1023;
    double s, z, p = 0;

    both.bits = (both.bits & UINT64_C(0xfffffffffffff)) | UINT64_C(0x3ff0000000000000);
    if (both.value > 1.41421356237309504880) {
        both.value *= 0.5;
        n++;
    }
    s = (both.value - 1) / (both.value + 1);
    z = s * s;
    for (int32_t i = 21; i > 0; i -= 2)
        p = p * z + 2.0 / i;
    return n * MUR_WIDE_LN2 + s * p;
}

/* x > 0; within 2^-40 of the root */
static inline double mur_wide_sqrt(double x)
{
    double root = (double)mur_sqrt((float)x);

    return 0.5 * (root + x / root);
}

/* x >= 0, infinity included */
static inline double mur_wide_atan(double x)
{
    double a = x > 1 ? 1 / x : x, offset = 0, z, p;

    if (a > 0.41421356237309504880) { /* atan a = pi/4 + atan((a - 1) / (a + 1)) */
        a = (a - 1) / (a + 1);
        offset = MUR_WIDE_HALF_PI / 2;
    }
    z = a * a;
    p = z * 0.030701170894180188 - 0.058818334019059906;
    p = p * z + 0.07567256264088158;
    p = p * z - 0.09079165049264903;
    p = p * z + 0.11110471832893751;
    p = p * z - 0.1428569551566117;
    p = p * z + 0.19999999748586975;
    p = p * z - 0.3333333333233466;
    a = offset + (a + a * z * p);
    return x > 1 ? MUR_WIDE_HALF_PI - a : a;
}

/* x - n times half pi, whose first part has 33 bits: |n| < 2^20 */
static inline double mur_wide_less(double x, int32_t n, double times)
{
    return x - n * (times * 1.57079632673412561417e+00) - n * (times * 6.07710050650619224932e-11);
}

/* quarter 0: sin |x|, 1: cos x; an angle beyond 2^30 is first reduced by a rounded 2 pi */
static inline double mur_wide_circular(float x, uint32_t quarter)
{
    double r, z, sum = 1;
    int32_t n;

    x = mur_abs(x);
    if (x >= 1073741824.0f)
        x = mur_fmod(x, 6.28318531f);
    r = (double)x;
    if (r >= 1048576) /* by 4096 quarters at a time */
        r = mur_wide_less(r, mur_wide_round(r * (1 / (MUR_WIDE_HALF_PI * 4096))), 4096);
    n = mur_wide_round(r * (1 / MUR_WIDE_HALF_PI));
    r = mur_wide_less(r, n, 1);
    z = r * r;
    quarter += (uint32_t)n;
    /* Taylor's series from its end */
    for (int32_t k = 16; k > 0; k -= 2)
        sum = 1 - sum * z / (quarter & 1u ? (k - 1) * k : k * (k + 1));
    sum = quarter & 1u ? sum : sum * r;
    return quarter & 2u ? -sum : sum;
}

static inline float mur_real_sin(float x)
{
    double y;

    if (!(mur_abs(x) > 1e-4f && mur_abs(x) < mur_float_of(MUR_INFINITY_BITS)))
        return mur_abs(x) <= 1e-4f ? x : x - x;
    y = mur_wide_circular(x, 0);
    return (float)(x < 0.0f ? -y : y);
}

static inline float mur_real_cos(float x)
{
    return mur_abs(x) < mur_float_of(MUR_INFINITY_BITS) ? (float)mur_wide_circular(x, 1) : x - x;
}

static inline float mur_real_tan(float x)
{
    double y;

    if (!(mur_abs(x) > 1e-4f && mur_abs(x) < mur_float_of(MUR_INFINITY_BITS)))
        return mur_abs(x) <= 1e-4f ? x : x - x;
    y = mur_wide_circular(x, 0) / mur_wide_circular(x, 1);
    return (float)(x < 0.0f ? -y : y);
}

static inline float mur_real_atan(float x)
{
    if (!(mur_abs(x) > 1e-4f))
        return x;
    return mur_with_sign((float)mur_wide_atan((double)mur_abs(x)), x);
}

/* asin |x|, |x| <= 1 */
static inline double mur_wide_asin(float x)
{
    double a = (double)mur_abs(x);

    return a < 1 ? mur_wide_atan(a / mur_wide_sqrt((1 - a) * (1 + a))) : MUR_WIDE_HALF_PI;
}

static inline float mur_real_asin(float x)
{
    if (!(mur_abs(x) > 1e-4f && mur_abs(x) <= 1.0f))
        return mur_abs(x) <= 1e-4f ? x : (x - x) / (x - x);
    return mur_with_sign((float)mur_wide_asin(x), x);
}

static inline float mur_real_acos(float x)
{
    if (!(mur_abs(x) <= 1.0f))
        return (x - x) / (x - x);
    return (float)(MUR_WIDE_HALF_PI - (x < 0.0f ? -mur_wide_asin(x) : mur_wide_asin(x)));
}

/* e^x rounded once, for results that stand alone and may be of any size */
static inline float mur_real_exp_nearest(float x)
{
    if (x > -104.0f && x < 89.0f)
        return (float)mur_wide_exp((double)x);
    return x != x ? x : x < 0.0f ? 0.0f : mur_float_of(MUR_INFINITY_BITS);
}

static inline float mur_real_sinh(float x)
{
    double e;

    if (!(mur_abs(x) > 1e-4f && mur_abs(x) < 100.0f))
        return mur_abs(x) <= 1e-4f ? x : x * mur_float_of(MUR_INFINITY_BITS);
    e = mur_wide_exp((double)x);
    return (float)((e - 1 / e) * 0.5);
}

static inline float mur_real_cosh(float x)
{
    double e;

    if (!(mur_abs(x) < 100.0f))
        return mur_abs(x) * mur_float_of(MUR_INFINITY_BITS);
    e = mur_wide_exp((double)x);
    return (float)((e + 1 / e) * 0.5);
}

static inline float mur_real_asinh(float x)
{
    double a = (double)mur_abs(x);

    if (!(mur_abs(x) > 1e-4f && mur_abs(x) < mur_float_of(MUR_INFINITY_BITS)))
        return x;
    a = a > 65536 ? mur_wide_log(a) + MUR_WIDE_LN2 : mur_wide_log(a + mur_wide_sqrt(a * a + 1));
    return mur_with_sign((float)a, x);
}

static inline float mur_real_acosh(float x)
{
    double a = (double)x;

    if (!(x > 1.0f && x < mur_float_of(MUR_INFINITY_BITS)))
        return x == 1.0f ? 0.0f : x > 1.0f ? x : (x - x) / (x - x);
    return (float)(a > 65536 ? mur_wide_log(a) + MUR_WIDE_LN2
                             : mur_wide_log(a + mur_wide_sqrt((a - 1) * (a + 1))));
}

static inline float mur_real_atanh(float x)
{
    double a = (double)x;

    if (!(mur_abs(x) > 1e-4f && mur_abs(x) < 1.0f))
        return mur_abs(x) <= 1e-4f  ? x
               : mur_abs(x) == 1.0f ? mur_with_sign(mur_float_of(MUR_INFINITY_BITS), x)
                                    : (x - x) / (x - x);
    return (float)(0.5 * mur_wide_log((1 + a) / (1 - a)));
}

/* whether a number is whole: 1 odd, 2 even, 0 not whole */
static inline uint32_t mur_wholeness(float y)
{
    float size = mur_abs(y);

    if (size >= 16777216.0f)
        return 2;
    if (mur_round_even(size) != size)
        return 0;
    return (uint32_t)size & 1u ? 1 : 2;
}

/* x^y, as C has it. Whole powers up to 64 are products in binary64. */
static inline float mur_real_pow(float x, float y)
{
    const float infinity = mur_float_of(MUR_INFINITY_BITS);
    uint32_t whole = mur_wholeness(y);
    float size = mur_abs(x), sign = x < 0.0f && whole == 1 ? -1.0f : 1.0f;
    double log;

    if (y == 2.0f)
        return x * x;
    if (y == 0.0f || x == 1.0f)
        return 1.0f;
    if (x != x || y != y)
        return x + y;
    if (size == 0.0f || size == infinity || mur_abs(y) == infinity) {
        if (size == 1.0f)
            return 1.0f;
        sign = mur_float_bits(x) >> 31 && whole == 1 ? -1.0f : 1.0f;
        return (size > 1.0f) == (y > 0.0f) ? sign * infinity : sign * 0.0f;
    }
    if (x < 0.0f && !whole)
        return (x - x) / (x - x);
    if (whole && mur_abs(y) <= 64.0f) {
        double product = 1, power = (double)x;

        for (uint32_t n = (uint32_t)mur_abs(y); n > 0; n >>= 1, power *= power)
            if (n & 1u)
                product *= power;
        /* else the logarithm tells which way it leaves the range */
        if ((product > 1e-290 && product < 1e290) || (product < -1e-290 && product > -1e290))
            return (float)(y < 0.0f ? 1 / product : product);
    }
    log = (double)y * mur_wide_log((double)size);
    if (log > 700 || log < -700)
        return log > 0 ? sign * infinity : sign * 0.0f;
    return sign * (float)mur_wide_exp(log);
}

#endif
