/* mur_softmax.h - TensorFlow Lite's softmax of int8 in plain C: gemmlowp's fixed point, Qi.f with f
 * = 31 - i. The exponential is a polynomial on (-1/4, 0] times one factor for each higher bit; the
 * reciprocal is three steps of Newton's. */
#ifndef MUR_SOFTMAX_H
#define MUR_SOFTMAX_H

#include "mur_nn_arith.h"

enum { MUR_SOFTMAX_SUM = 12 }; /* bits by which exponentials are shifted before they are added */

/* e^a for a in (-1/4, 0], Q0.31 to Q0.31 */
static inline int32_t mur_exp_of_fraction(int32_t a)
{
    const int32_t exp_eighth = 1895147668, third = 715827883;
    int32_t x = a + (1 << 28), x2 = mur_high_doubled(2 * x, x); /* about -1/8 */
    int32_t x3 = mur_high_doubled(2 * x2, x), x4 = mur_high_doubled(2 * x2, x2);
    int32_t rest = mur_high_doubled(2 * (mur_asr(x4 + 2, 2) + x3), third) + x2; /* 0 or more */

    return exp_eighth + mur_high_doubled(2 * (x + mur_asr(rest + 1, 1)), exp_eighth);
}

enum { MUR_EXP_FACTORS = 7 };

/* e^-(1/4), e^-(1/2), e^-1 .. e^-16 */
static const int32_t mur_exp_factors[MUR_EXP_FACTORS] = { 1672461947, 1302514674, 790015084,
                                                          290630308,  39332535,   720401,
                                                          242 };

/* result times the factors of rest's bits */
static inline int32_t mur_exp_of_bits(int32_t result, uint32_t rest)
{
    const int32_t *factor = mur_exp_factors;

#if defined(__ARM_FEATURE_DSP)
    /* the first two factors are 1/2 and more: twice them less 2^32 */
    int32_t twice;

    for (int32_t i = 0; i < 2; i++, rest >>= 1, factor++)
        if (rest & 1)
            result = mur_high_positive(result, *factor);
    __asm__("1: ldr %3, [%2], #4\n"
            "lsrs %1, %1, #1\n"
            "lsl %3, %3, #1\n"
            "it cs\n"
            "smmulrcs %0, %0, %3\n"
            "bne 1b\n"
            : "+r"(result), "+r"(rest), "+r"(factor), "=&r"(twice)::"cc");
#else
    for (; rest != 0; rest >>= 1, factor++)
        if (rest & 1)
            result = mur_high_positive(result, *factor);
#endif
    return result;
}

/* e^a for a <= 0, Q5.26 to Q0.31 */
static inline int32_t mur_exp_of(int32_t a)
{
    const int32_t quarter = 1 << 24, fraction = (a & (quarter - 1)) - quarter;

    if (a == 0)
        return INT32_MAX;
    return mur_exp_of_bits(mur_exp_of_fraction(fraction * 32), (uint32_t)(fraction - a) >> 24);
}

/* 1 / (1 + a) for a in [0, 1), Q0.31 to Q0.31 */
static inline int32_t mur_reciprocal_of_one_plus(int32_t a)
{
    const int32_t one = 1 << 29; /* of Q2.29 */
    int32_t half = (int32_t)(((uint32_t)a + (1u << 31)) >> 1);
    int32_t x = 1515870810 + mur_high_doubled(2 * -1010580540, half); /* (48 - 32 half) / 17 */

#pragma GCC unroll 1
    for (int32_t i = 0; i < 3; i++)
        x += mur_shift_left(mur_high_doubled(2 * (one - mur_high_positive(x, half)), x), 2);
    return x < 1 << 30 ? 2 * x : INT32_MAX;
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

/* A row at work: e^(q - greatest) times scale is its share, in 2^-shift. */
typedef struct mur_softmax_row {
    int32_t greatest, scale, shift, half; /* half: of 2^shift, or 0 if all shares are below it */
} mur_softmax_row;

/* what shares of `bits` bits are multiplied by; sum: of the row's exponentials in 2^-19ths */
static __attribute__((noinline, cold)) void mur_softmax_scale(mur_softmax_row *r, int32_t sum,
                                                              int32_t bits)
{
    int32_t zeros = mur_leading_zeros((uint32_t)sum);

    r->scale = mur_reciprocal_of_one_plus((int32_t)(((uint32_t)sum << zeros) - (1u << 31)));
    r->shift = MUR_SOFTMAX_SUM - zeros + 31 - bits;
    r->half = mur_half_of(r->shift);
    if (r->shift > 31)
        r->half = 0, r->shift = 31;
}

/* what an exponential counts in its row's sum */
static inline int32_t mur_softmax_part(int32_t e)
{
    return (int32_t)(((uint32_t)e + (1u << (MUR_SOFTMAX_SUM - 1))) >> MUR_SOFTMAX_SUM);
}

/* what it is of the row */
static inline int32_t mur_softmax_share(const mur_softmax_row *r, int32_t e)
{
    return (int32_t)((uint32_t)(mur_high_positive(e, r->scale) + r->half) >> r->shift);
}

static inline int8_t mur_softmax_byte(const mur_softmax_row *r, int32_t e)
{
    int32_t share = mur_softmax_share(r, e);

#if defined(__ARM_FEATURE_SAT)
    __asm__("usat %0, #8, %0" : "+r"(share));
#else
    share = share < 255 ? share : 255;
#endif
    return (int8_t)(uint8_t)(share ^ 128); /* less 128 */
}

static inline int32_t mur_greatest_of(const int8_t *in, int32_t count)
{
    int32_t greatest = INT8_MIN;

    for (const int8_t *end = in + count; in != end; in++)
        greatest = *in > greatest ? *in : greatest;
    return greatest;
}

enum { MUR_SOFTMAX_HELD = 32 }; /* exponentials at a time */

/* Of a row's elements from `from` on, e^(q - greatest), Q0.31, 0 where it is too small to count;
 * how many of them: one copy, for it is long. */
static __attribute__((noinline)) int32_t mur_softmax_hold(const mur_softmax_s8 *layer,
                                                          int32_t greatest, const int8_t *in,
                                                          int32_t from, int32_t *held)
{
    const int32_t left = layer->columns - from, mul = layer->mul, shift = layer->shift;
    const int32_t count = left < MUR_SOFTMAX_HELD ? left : MUR_SOFTMAX_HELD;

    in += from;
    for (const int32_t *end = held + count; held != end;) {
        const int32_t below = *in++ - greatest;

        *held++ = below < layer->diff_min
                      ? 0
                      : mur_exp_of(mur_high_q31(mur_shift_left(below, shift), mul));
    }
    return count;
}

/* shares of `bits` bits; held: the exponentials of the row's first elements */
static inline mur_softmax_row mur_softmax_begin(const mur_softmax_s8 *layer, const int8_t *in,
                                                int32_t bits, int32_t held[MUR_SOFTMAX_HELD])
{
    mur_softmax_row r = { .greatest = mur_greatest_of(in, layer->columns) };
    int32_t from = (layer->columns - 1) / MUR_SOFTMAX_HELD * MUR_SOFTMAX_HELD, sum = 0;

    for (; from >= 0; from -= MUR_SOFTMAX_HELD) {
        const int32_t count = mur_softmax_hold(layer, r.greatest, in, from, held);

        for (int32_t i = 0; i < count; i++)
            sum += mur_softmax_part(held[i]);
    }
    mur_softmax_scale(&r, sum, bits);
    return r;
}

/* of element i, the next one */
static inline int32_t mur_softmax_exp(const mur_softmax_s8 *layer, const mur_softmax_row *r,
                                      int32_t held[MUR_SOFTMAX_HELD], int32_t i, const int8_t *in)
{
    const int32_t at = i % MUR_SOFTMAX_HELD;

    if (i > 0 && at == 0)
        (void)mur_softmax_hold(layer, r->greatest, in, i, held);
    return held[at];
}

/* without a table */
static inline void mur_softmax_computed(const mur_softmax_s8 *layer, const int8_t *in, int8_t *out)
{
    int32_t held[MUR_SOFTMAX_HELD];

    for (int32_t y = 0; y < layer->rows; y++, in += layer->columns, out += layer->columns) {
        const mur_softmax_row r = mur_softmax_begin(layer, in, 8, held);

        for (int32_t i = 0; i < layer->columns; i++)
            out[i] = mur_softmax_byte(&r, mur_softmax_exp(layer, &r, held, i, in));
    }
}

/* a row with one */
static __attribute__((noinline)) void mur_softmax_row_of_exps(const int32_t *exps, int32_t columns,
                                                              const int8_t *in, int8_t *out)
{
    mur_softmax_row r = { .greatest = mur_greatest_of(in, columns) };
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
