/* mur_quantlib.h - QuantLib's integer operators, one value at a time: what generated code calls.
 *
 * '/' truncates toward zero, '>>' is arithmetic. Defined for all arguments: results beyond 32 bits
 * wrap, coefficients out of range are brought into it. Bit for bit what Deeploy's kernels give.
 */
#ifndef MUR_QUANTLIB_H
#define MUR_QUANTLIB_H

#include <stdint.h>

static inline int32_t mur_quantlib_clip(int64_t x, int32_t lo, int32_t hi)
{
    return x < lo ? lo : x > hi ? hi : (int32_t)x;
}

/* clip((x * mul + add + 2^shift / 2) >> shift): halves go up; shift 0..31 */
static inline int32_t mur_quantlib_requant(int32_t x, int32_t mul, int32_t add, unsigned shift,
                                           int32_t lo, int32_t hi)
{
    int64_t half = (int64_t)(((uint64_t)1 << shift) >> 1);

    return mur_quantlib_clip(((int64_t)x * mul + add + half) >> shift, lo, hi);
}

/* floor(sqrt(x)), x < 2^62 */
static inline int32_t mur_quantlib_root(uint64_t x)
{
    uint32_t root = 0;

    for (uint32_t bit = (uint32_t)1 << 30; bit; bit >>= 1) {
        uint32_t trial = root | bit;

        if ((uint64_t)trial * trial <= x)
            root = trial;
    }
    return (int32_t)root;
}

/* clip8((x * weight / root) >> shift), root > 0 */
static inline int8_t mur_quantlib_norm(int32_t x, int32_t weight, int32_t root, unsigned shift)
{
    int64_t product = (int64_t)x * weight;
    int64_t scaled = product == (int32_t)product ? (int32_t)product / root : product / root;

    return (int8_t)mur_quantlib_clip(scaled >> shift, INT8_MIN, INT8_MAX);
}

/* the lowest 8 bits */
static inline int8_t mur_quantlib_wrap(int64_t x)
{
    return (int8_t)((int32_t)(x & 0x7f) - (int32_t)(x & 0x80));
}

/* softmax's parabola */
typedef struct mur_quantlib_curve {
    int32_t b, c, log2;
} mur_quantlib_curve;

static inline mur_quantlib_curve mur_quantlib_curve_of(const int32_t coefficients[3])
{
    mur_quantlib_curve curve;

    curve.b = mur_quantlib_clip(coefficients[0], -32768, 32768);
    curve.c = mur_quantlib_clip(coefficients[1], 0, ((int32_t)1 << 30) - 1);
    curve.log2 = mur_quantlib_clip(coefficients[2], 1, 32768);
    return curve;
}

/* e of a value this far below its row's greatest, below 2^33 */
static inline int64_t mur_quantlib_term(int32_t below, mur_quantlib_curve curve)
{
    int32_t z = below / curve.log2 < 31 ? below / curve.log2 : 31;
    int64_t p = (int64_t)(z * curve.log2 - below) + curve.b;

    return (p * p + curve.c) >> z;
}

/* steps by which ITAMax halves a value this far below its row's greatest */
static inline int32_t mur_quantlib_halvings(int32_t below)
{
    int32_t steps = (below + 16) >> 5;

    return steps < 31 ? steps : 31;
}

static inline int32_t mur_quantlib_hard_swish(int32_t x, const int32_t coefficients[3])
{
    int32_t most = coefficients[2] > 0 ? coefficients[2] : 0;
    int32_t gate = mur_quantlib_clip((int64_t)x + coefficients[1], 0, most);

    return (int32_t)((uint32_t)x * ((uint32_t)gate * (uint32_t)coefficients[0]));
}

static inline int32_t mur_quantlib_gelu(int32_t x, const int32_t coefficients[2])
{
    int32_t b = mur_quantlib_clip(coefficients[0], -32768, 0);
    int32_t one = mur_quantlib_clip(coefficients[1], -((int32_t)1 << 30) + 1, (1 << 30) - 1);
    int64_t size = x < 0 ? -(int64_t)x : x;
    int64_t q = (size < -b ? size : -b) + b, l = one - q * q;

    l = x == 0 ? 0 : x < 0 ? -l : l;
    return (int32_t)((uint32_t)x * (uint32_t)((one + l) >> 1));
}

/* (delta * eta * x + sign * (d >> 1)) / d of d = eta * y + eps, 0 if d is; scale is delta * eta,
 * below 2^32; x and y saturate at 30 bits and a sign */
static inline int32_t mur_quantlib_div(int32_t x, int32_t y, uint32_t scale, int32_t eta,
                                       int32_t eps)
{
    const int32_t limit = ((int32_t)1 << 30) - 1;
    int64_t d = (int64_t)eta * mur_quantlib_clip(y, -limit, limit) + eps;
    int64_t numerator = (int64_t)scale * mur_quantlib_clip(x, -limit, limit);

    if (d == 0)
        return 0;
    return (int32_t)(uint32_t)(uint64_t)((numerator + (numerator < 0 ? -(d >> 1) : d >> 1)) / d);
}

#endif
