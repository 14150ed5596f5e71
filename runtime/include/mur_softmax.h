/* mur_softmax.h - TensorFlow Lite's softmax of int8 in plain C: gemmlowp's fixed point, Qi.f with f
 * = 31 - i. The exponential is a polynomial on (-1/4, 0] times one factor for each higher bit; the
 * reciprocal is three steps of Newton's. */
#ifndef MUR_SOFTMAX_H
#define MUR_SOFTMAX_H

#include "mur_nn_arith.h"

enum { MUR_SOFTMAX_SUM = 12 }; /* bits by which exponentials are shifted before they are added */

/* x * 2^by, saturated */
static inline int32_t mur_shift_saturated(int32_t x, int32_t by)
{
    int32_t y = mur_shift_left(x, by);

    return mur_asr(y, by) == x ? y : x < 0 ? INT32_MIN : INT32_MAX;
}

/* e^a for a in (-1/4, 0], Q0.31 to Q0.31 */
static inline int32_t mur_exp_of_fraction(int32_t a)
{
    const int32_t exp_eighth = 1895147668, third = 715827883;
    int32_t x = a + (1 << 28), x2 = mur_high_doubled(2 * x, x); /* about -1/8 */
    int32_t x3 = mur_high_doubled(2 * x2, x), x4 = mur_high_doubled(2 * x2, x2);
    int32_t rest = mur_high_doubled(2 * (mur_divide_pot(x4, 2) + x3), third) + x2;

    return exp_eighth + mur_high_doubled(2 * (x + mur_divide_pot(rest, 1)), exp_eighth);
}

enum { MUR_EXP_FACTORS = 7 };

/* e^-(1/4), e^-(1/2), e^-1 .. e^-16 */
static const int32_t mur_exp_factors[MUR_EXP_FACTORS] = { 1672461947, 1302514674, 790015084,
                                                          290630308,  39332535,   720401,
                                                          242 };

/* e^a for a <= 0, Q5.26 to Q0.31 */
static inline int32_t mur_exp_of(int32_t a)
{
    const int32_t quarter = 1 << 24;
    int32_t fraction = (a & (quarter - 1)) - quarter, result;
    const int32_t *factor = mur_exp_factors;

    if (a == 0)
        return INT32_MAX;
    result = mur_exp_of_fraction(fraction * 32);
    for (uint32_t rest = (uint32_t)(fraction - a) >> 24; rest != 0; rest >>= 1, factor++)
        if (rest & 1)
            result = mur_high_positive(result, *factor);
    return result;
}

/* 1 / (1 + a) for a in [0, 1), Q0.31 to Q0.31 */
static inline int32_t mur_reciprocal_of_one_plus(int32_t a)
{
    const int32_t one = 1 << 29; /* of Q2.29 */
    int32_t half = (int32_t)(((uint32_t)a + (1u << 31)) >> 1);
    int32_t x = 1515870810 + mur_high_q31(half, -1010580540); /* (48 - 32 half) / 17 */

#pragma GCC unroll 1
    for (int32_t i = 0; i < 3; i++)
        x += mur_shift_saturated(mur_high_q31(x, one - mur_high_q31(half, x)), 2);
    return mur_shift_saturated(x, 1);
}

/* of other numbers than 0 */
static inline int32_t mur_leading_zeros(uint32_t x)
{
#if defined(__ARM_FEATURE_CLZ)
    return __builtin_clz(x);
#else
    int32_t count = 0;

#pragma GCC unroll 1
    for (int32_t bits = 16; bits > 0; bits >>= 1)
        if (x >> (32 - bits) == 0) {
            x <<= bits;
            count += bits;
        }
    return count;
#endif
}

/* e^(below * scale), Q0.31: one copy, for it is long */
static __attribute__((noinline, cold)) int32_t mur_exp_scaled(const mur_softmax_s8 *layer,
                                                              int32_t below)
{
    return mur_exp_of(mur_scale_q31(below, layer->mul, layer->shift));
}

/* A row at work: e^(q - greatest) times scale is its share, in 2^-shift. */
typedef struct mur_softmax_row {
    int32_t greatest, scale, shift;
} mur_softmax_row;

/* what shares of `bits` bits are multiplied by; sum: of the row's exponentials in 2^-19ths */
static __attribute__((noinline, cold)) void mur_softmax_scale(mur_softmax_row *r, int32_t sum,
                                                              int32_t bits)
{
    int32_t zeros = mur_leading_zeros((uint32_t)sum);

    r->scale = mur_reciprocal_of_one_plus((int32_t)(((uint32_t)sum << zeros) - (1u << 31)));
    r->shift = MUR_SOFTMAX_SUM - zeros + 31 - bits;
    if (r->shift > 31) /* shares below a half */
        r->scale = 0, r->shift = 31;
}

/* what an exponential counts in its row's sum */
static inline int32_t mur_softmax_part(int32_t e)
{
    return (int32_t)(((uint32_t)e + (1u << (MUR_SOFTMAX_SUM - 1))) >> MUR_SOFTMAX_SUM);
}

/* what it is of the row */
static inline int32_t mur_softmax_share(const mur_softmax_row *r, int32_t e)
{
    uint32_t half = (1u << r->shift) >> 1;

    return (int32_t)(((uint32_t)mur_high_positive(r->scale, e) + half) >> r->shift);
}

static inline int8_t mur_softmax_byte(const mur_softmax_row *r, int32_t e)
{
    int32_t share = mur_softmax_share(r, e);

    share = share < 255 ? share : 255;
    return (int8_t)(uint8_t)(share ^ 128); /* less 128 */
}

static inline int32_t mur_greatest_of(const int8_t *in, int32_t count)
{
    int32_t greatest = INT8_MIN;

    for (const int8_t *end = in + count; in != end; in++)
        greatest = *in > greatest ? *in : greatest;
    return greatest;
}

enum { MUR_SOFTMAX_HELD = 32 }; /* exponentials of a row's first elements, computed only once */

/* e^(q - greatest), 0 where it is too small to count */
static inline int32_t mur_exp_at(const mur_softmax_s8 *layer, const mur_softmax_row *r, int32_t q)
{
    int32_t below = q - r->greatest;

    return below < layer->diff_min ? 0 : mur_exp_scaled(layer, below);
}

/* shares of `bits` bits */
static inline mur_softmax_row mur_softmax_begin(const mur_softmax_s8 *layer, const int8_t *in,
                                                int32_t bits, int32_t held[MUR_SOFTMAX_HELD])
{
    mur_softmax_row r = { mur_greatest_of(in, layer->columns), 0, 0 };
    int32_t sum = 0;

    for (int32_t i = 0; i < layer->columns; i++) {
        int32_t e = mur_exp_at(layer, &r, in[i]);

        if (i < MUR_SOFTMAX_HELD)
            held[i] = e;
        sum += mur_softmax_part(e);
    }
    mur_softmax_scale(&r, sum, bits);
    return r;
}

/* of element i, which is q */
static inline int32_t mur_softmax_exp(const mur_softmax_s8 *layer, const mur_softmax_row *r,
                                      const int32_t held[MUR_SOFTMAX_HELD], int32_t i, int32_t q)
{
    return i < MUR_SOFTMAX_HELD ? held[i] : mur_exp_at(layer, r, q);
}

/* without a table */
static inline void mur_softmax_computed(const mur_softmax_s8 *layer, const int8_t *in, int8_t *out)
{
    int32_t held[MUR_SOFTMAX_HELD];

    for (int32_t y = 0; y < layer->rows; y++, in += layer->columns, out += layer->columns) {
        const mur_softmax_row r = mur_softmax_begin(layer, in, 8, held);

        for (int32_t i = 0; i < layer->columns; i++)
            out[i] = mur_softmax_byte(&r, mur_softmax_exp(layer, &r, held, i, in[i]));
    }
}

/* a row with one */
static __attribute__((noinline)) void mur_softmax_row_of_exps(const int32_t *exps, int32_t columns,
                                                              const int8_t *in, int8_t *out)
{
    mur_softmax_row r = { mur_greatest_of(in, columns), 0, 0 };
    const int8_t *const end = in + columns;
    int32_t sum = 0;

    exps += r.greatest;
    for (const int8_t *p = in; p != end; p++)
        sum += mur_softmax_part(exps[-*p]);
    mur_softmax_scale(&r, sum, 8);
    for (; in != end; in++)
        *out++ = mur_softmax_byte(&r, exps[-*in]);
}

static inline void mur_softmax_of_exps(const mur_softmax_s8 *layer, const int8_t *in, int8_t *out)
{
    const int32_t columns = layer->columns;

    for (int32_t y = 0; y < layer->rows; y++, in += columns, out += columns)
        mur_softmax_row_of_exps(layer->exps, columns, in, out);
}

static inline void mur_softmax_plain(const mur_softmax_s8 *layer, const int8_t *in, int8_t *out)
{
    if (layer->exps)
        mur_softmax_of_exps(layer, in, out);
    else
        mur_softmax_computed(layer, in, out);
}

#endif
