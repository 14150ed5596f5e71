/* mur_nn_arith.h - the integer arithmetic of mur_nn.h, one value at a time. */
#ifndef MUR_NN_ARITH_H
#define MUR_NN_ARITH_H

#include "mur_nn.h"

/* a shift of a negative number that is arithmetic in every C implementation we build with */
static inline int32_t mur_asr(int32_t x, int32_t by)
{
    return x >> by;
}

static inline __attribute__((always_inline)) int32_t mur_clamp(int32_t x, int32_t min, int32_t max)
{
#if defined(__ARM_FEATURE_SAT)
    if (__builtin_constant_p(min == INT8_MIN && max == INT8_MAX) && min == INT8_MIN &&
        max == INT8_MAX) {
        __asm__("ssat %0, #8, %1" : "=r"(x) : "r"(x));
        return x;
    }
#endif
    return x < min ? min : x > max ? max : x;
}

/* mur_clamp of mur_asr(x, by) */
static inline __attribute__((always_inline)) int32_t mur_clamp_asr(int32_t x, int32_t by,
                                                                   int32_t min, int32_t max)
{
#if defined(__ARM_FEATURE_SAT) && defined(__OPTIMIZE__)
    if (__builtin_constant_p(by > 0 && min == INT8_MIN && max == INT8_MAX) && by > 0 &&
        min == INT8_MIN && max == INT8_MAX) {
        __asm__("ssat %0, #8, %1, asr %2" : "=r"(x) : "r"(x), "i"(by));
        return x;
    }
#endif
    return mur_clamp(mur_asr(x, by), min, max);
}

static inline int32_t mur_shift_left(int32_t x, int32_t by)
{
    return (int32_t)((uint32_t)x << by);
}

/* n bytes, each the same */
static inline void mur_fill(int8_t *to, int8_t byte, uint32_t n)
{
    const uint32_t four = (uint8_t)byte * 0x01010101u;

    for (; n >= sizeof(four); n -= (uint32_t)sizeof(four), to += sizeof(four))
        __builtin_memcpy(to, &four, sizeof(four));
    while (n-- != 0)
        *to++ = byte;
}

/* memcpy of few bytes, without a call even where the compiler is told to know no library */
#ifdef __GNUC__
#define MUR_COPY_FEW __builtin_memcpy
#else
#define MUR_COPY_FEW memcpy
#endif

/* Does the core's multiplier give 32 bits alone? */
#if defined(__ARM_ARCH_6M__) || defined(__ARM_ARCH_8M_BASE__)
#define MUR_SHORT_PRODUCTS 1
#else
#define MUR_SHORT_PRODUCTS 0
#endif

/* round(a * b / 2^31), halves up, modulo 2^32 */
static inline int32_t mur_high_q31(int32_t a, int32_t b)
{
#if MUR_SHORT_PRODUCTS
    /* by halves, of the product's upper 48 bits */
    int32_t a_high = mur_asr(a, 16), b_high = mur_asr(b, 16);
    uint32_t a_low = (uint32_t)a & 0xffff, b_low = (uint32_t)b & 0xffff;
    int32_t middle = a_high * (int32_t)b_low + (int32_t)(a_low * b_low >> 16);
    int32_t low = (int32_t)a_low * b_high + (middle & 0xffff);
    int32_t high = a_high * b_high + mur_asr(middle, 16) + mur_asr(low, 16);

    return mur_shift_left(high, 1) + (((low & 0xffff) + 0x4000) >> 15);
#else
    return (int32_t)(((int64_t)a * b + (1 << 30)) >> 31);
#endif
}

/* sum + floor(a * b / 2^16) of an a of 15 bits */
static inline int32_t mur_add_product(int32_t sum, int32_t a, int32_t b)
{
#if defined(__ARM_FEATURE_DSP)
    int32_t out;

    __asm__("smlawb %0, %1, %2, %3" : "=r"(out) : "r"(b), "r"(a), "r"(sum));
    return out;
#elif MUR_SHORT_PRODUCTS
    return sum + a * mur_asr(b, 16) + mur_asr(a * (b & 0xffff), 16);
#else
    return sum + (int32_t)(((int64_t)mur_shift_left(a, 16) * b) >> 32);
#endif
}

/* mur_high_q31 of two that are not negative */
static inline int32_t mur_high_positive(int32_t a, int32_t b)
{
#if defined(__ARM_FEATURE_DSP)
    const int32_t twice = mur_shift_left(b, 1); /* 2^32 less if it is negative */

    __asm__("smmlar %0, %1, %2, %3" : "=r"(a) : "r"(a), "r"(twice), "r"(a & mur_asr(twice, 31)));
    return a;
#elif MUR_SHORT_PRODUCTS
    return mur_high_q31(a, b);
#else
    return (int32_t)(((uint64_t)(2 * (uint32_t)a) * (uint32_t)b + (1u << 31)) >> 32);
#endif
}

/* round(a * b / 2^31), halves up, saturated: gemmlowp's SaturatingRoundingDoublingHighMul */
static inline int32_t mur_mul_q31(int32_t a, int32_t b)
{
    if (a == INT32_MIN && b == INT32_MIN)
        return INT32_MAX;
    return mur_high_q31(a, b);
}

/* round(x / 2^by), halves away from zero; by 0..31: gemmlowp's RoundingDivideByPOT */
static inline int32_t mur_divide_pot(int32_t x, int32_t by)
{
    uint32_t mask = (1u << by) - 1u, rest = (uint32_t)x & mask;
    uint32_t threshold = (mask >> 1) + (x < 0);

    return mur_asr(x, by) + (rest > threshold);
}

/* MUR_REQUANT_Q31 before its zero point and clamp; shift -31..30 */
static inline int32_t mur_scale_q31(int32_t x, int32_t mul, int32_t shift)
{
    if (shift > 0)
        return mur_mul_q31(mur_shift_left(x, shift), mul);
    return mur_divide_pot(mur_mul_q31(x, mul), -shift);
}

/* the same of a sum of 64 bits, by the multiplier's first 16 bits, halves up: for int16; shift
 * -31..14 */
static inline int32_t mur_scale_wide_q31(int64_t x, int32_t mul, int32_t shift)
{
    int32_t high = mul < 0x7FFF0000 ? (mul + (1 << 15)) >> 16 : 0x7FFF;

    return (int32_t)((x * high + ((int64_t)1 << (14 - shift))) >> (15 - shift));
}

/* round(x / scale) + zero within least..most, of at most 16 bits, halves away from zero; what is no
 * number is 0 */
static inline int32_t mur_stored_real(float x, float scale, int32_t zero, int32_t least,
                                      int32_t most)
{
    int32_t whole;

    x = x / scale;
    x = x > 131072.0f ? 131072.0f : x < -131072.0f ? -131072.0f : x == x ? x : 0.0f;
    whole = (int32_t)x;
    x -= (float)whole; /* exact */
    whole += x >= 0.5f ? 1 : x <= -0.5f ? -1 : 0;
    return mur_clamp(whole + zero, least, most);
}

/* a sum to an int8; `shift` is the channel's: see mur_conv_plain */
static inline int8_t mur_requant(int32_t sum, int32_t mul, int32_t shift, const mur_output_s8 *to)
{
    int64_t wide;

    if (to->kind == MUR_REQUANT_Q31) {
        int32_t x = mur_scale_q31(sum, mul, shift);

        return (int8_t)(mur_clamp(x, to->min - to->zero, to->max - to->zero) + to->zero);
    }
    wide = ((int64_t)sum * mul + shift) >> to->shift;
    return (int8_t)(wide < to->min ? to->min : wide > to->max ? to->max : wide);
}

/* x >> by within 32 bits, saturated; in words, since few cores shift 64 bits */
static inline int32_t mur_shift_wide(int64_t x, uint32_t by)
{
    int32_t high = (int32_t)(x >> 32);

    if (by - 1 < 31) {
        if (mur_asr(high, (int32_t)by - 1) == mur_asr(high, 31))
            return (int32_t)((uint32_t)x >> by | (uint32_t)high << (32 - by));
        return high < 0 ? INT32_MIN : INT32_MAX;
    }
    x >>= by;
    return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x;
}

/* a sum of mur_matmul_s8 to its byte */
static inline uint8_t mur_matmul_output(const mur_matmul_s8 *layer, int32_t sum)
{
    const mur_output_s8 *to = &layer->output;
    int32_t y;

    if (to->kind == MUR_REQUANT_Q31) {
        y = mur_scale_q31(sum, layer->mul, layer->shift);
        y = mur_clamp(y, to->min - to->zero, to->max - to->zero) + to->zero;
    } else {
        y = mur_shift_wide((int64_t)sum * layer->mul + layer->add, to->shift);
        y = mur_clamp(y, to->min, to->max);
    }
    return (uint8_t)y ^ layer->out_flip;
}

/* one sum of a product of two matrices; the flips are the layer's, told apart so that none costs
 * nothing */
static inline __attribute__((always_inline)) int32_t mur_matmul_sum(const mur_matmul_s8 *layer,
                                                                    const uint8_t *a,
                                                                    const uint8_t *b,
                                                                    uint8_t a_flip, uint8_t b_flip)
{
    const int32_t a_zero = layer->a_zero, b_zero = layer->b_zero, step = layer->b_row;
    int32_t sum = 0;

    for (const uint8_t *end = a + layer->depth; a != end; a++, b += step)
        sum += ((int8_t)(*a ^ a_flip) - a_zero) * ((int8_t)(*b ^ b_flip) - b_zero);
    return sum;
}

/* a layer of mur_matmul_s8 */
static inline void mur_matmul_plain(const mur_matmul_s8 *layer, const uint8_t *a, const uint8_t *b,
                                    uint8_t *out)
{
    const uint8_t flips = layer->a_flip | layer->b_flip;

    for (int32_t i = 0; i < layer->rows; i++, a += layer->a_pitch, out += layer->out_pitch)
        for (int32_t j = 0; j < layer->columns; j++) {
            const uint8_t *column = b + j * layer->b_column;
            int32_t sum = flips ? mur_matmul_sum(layer, a, column, layer->a_flip, layer->b_flip)
                                : mur_matmul_sum(layer, a, column, 0, 0);

            out[j] = mur_matmul_output(layer, sum);
        }
}

/* mur_high_q31 of x / 2; x even */
static inline int32_t mur_high_doubled(int32_t x, int32_t mul)
{
#if defined(__ARM_FEATURE_DSP)
    __asm__("smmulr %0, %1, %2" : "=r"(x) : "r"(x), "r"(mul));
    return x;
#elif MUR_SHORT_PRODUCTS
    return mur_high_q31(mur_asr(x, 1), mul);
#else
    int64_t product = (int64_t)x * mul;

    return (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31); /* halves up */
#endif
}

/* MUR_REQUANT_Q31 of x / 2, at most 2^30 in size, shifted to the right; x even; half: 2^right / 2
 */
static inline int32_t mur_scale_doubled(int32_t x, int32_t mul, int32_t right, int32_t half)
{
    int32_t y = mur_high_doubled(x, mul);

    if (right == 0)
        return y;
    return mur_asr(y + mur_asr(y, 31) + half, right); /* halves away from zero */
}

static inline int32_t mur_half_of(int32_t right)
{
    return (int32_t)((1u << right) >> 1);
}

/* mur_scale_q31 of x of less than 2^30 in size */
static inline int32_t mur_scale_small(int32_t x, int32_t mul, int32_t shift)
{
    if (shift > 0)
        return mur_scale_q31(x, mul, shift);
    return mur_scale_doubled(2 * x, mul, -shift, mur_half_of(-shift));
}

/* mur_scale_q31 of x of less than 2^17 in size, such as a product of bytes; by constants two
 * instructions of DSP, of which the second adds 2^-32 x, so that halves go away from zero */
static inline __attribute__((always_inline)) int32_t mur_scale_product(int32_t x, int32_t mul,
                                                                       int32_t shift)
{
#if defined(__ARM_FEATURE_DSP)
    if (__builtin_constant_p(mul >= 1 << 30 && shift < -1 && shift > -16) && mul >= 1 << 30 &&
        shift < -1 && shift > -16) {
        __asm__("smmlar %0, %1, %2, %1" : "=r"(x) : "r"(x), "r"((uint32_t)mul << 1));
        __asm__("smmulr %0, %1, %2" : "=r"(x) : "r"(x), "r"((1u << (32 + shift)) + 1));
        return x;
    }
#endif
    return mur_scale_small(x, mul, shift);
}

/* mur_add_s8 for any core */
static inline void mur_add_plain(const mur_add_s8 *layer, const int8_t *a, const int8_t *b,
                                 int8_t *out)
{
    int32_t left = layer->left_shift + 1, a_right = -layer->a_shift, b_right = -layer->b_shift;
    int32_t right = -layer->shift, a_half = mur_half_of(a_right), b_half = mur_half_of(b_right);
    int32_t half = mur_half_of(right), min = layer->min, max = layer->max;
    const int8_t *b_end = b + layer->b_count;

    for (const int8_t *end = a + layer->count; a != end; a++, out++) {
        int32_t x = mur_shift_left(*a - layer->a_zero, left);
        int32_t y = mur_shift_left(*b - layer->b_zero, left);

        x = mur_scale_doubled(x, layer->a_mul, a_right, a_half);
        y = mur_scale_doubled(y, layer->b_mul, b_right, b_half);
        x = mur_shift_left(layer->subtract ? x - y : x + y, 1);
        x = mur_scale_doubled(x, layer->mul, right, half) + layer->zero;
        if (x < min)
            x = min;
        if (x > max)
            x = max;
        *out = (int8_t)x;
        if (++b == b_end)
            b -= layer->b_count;
    }
}

/* what a line_s8 makes of two, times 2^MUR_LINE_PLACES, before its bounds */
static inline int32_t mur_line(int32_t a, int32_t a_mul, int32_t b, int32_t b_mul, int32_t offset)
{
    return (int32_t)((uint32_t)(a * a_mul) + (uint32_t)(b * b_mul) + (uint32_t)offset);
}

/* mur_add_s8 of a line_s8 for any core */
static inline void mur_line_plain(const mur_add_s8 *layer, const int8_t *a, const int8_t *b,
                                  int8_t *out)
{
    const mur_add_s8 l = *layer; /* in registers: out might be anything */

    for (const int8_t *end = a + l.count; a != end;)
        for (const int8_t *q = b, *b_end = b + l.b_count; q != b_end; q++)
            *out++ = (int8_t)mur_clamp_asr(mur_line(*a++, l.a_mul, *q, l.b_mul, l.mul),
                                           MUR_LINE_PLACES, l.min, l.max);
}

/* whether products are scaled by MUR_REQUANT_Q31 with a shift to the right, as nearly all are */
static inline int mur_mul_is_short(const mur_mul_s8 *l)
{
    return l->output.kind == MUR_REQUANT_Q31 && l->shift <= 0;
}

/* mur_mul_s8 for any core; l by value, for out might be anything */
static inline void mur_mul_plain(mur_mul_s8 l, const int8_t *a, const int8_t *b, int8_t *out)
{
    int is_short = mur_mul_is_short(&l);
    int32_t right = is_short ? -l.shift : 0, half = mur_half_of(right);
    int32_t zero = l.output.zero, min = l.output.min - zero, max = l.output.max - zero;

    for (const int8_t *end = a + l.count; a != end;)
        for (int32_t j = 0; j < l.b_count; j++) {
            int32_t x = (*a++ - l.a_zero) * (b[j] - l.b_zero);

            if (is_short)
                x = mur_clamp(mur_scale_doubled(2 * x, l.mul, right, half), min, max) + zero;
            else
                x = mur_requant(x, l.mul, l.shift, &l.output);
            *out++ = (int8_t)x;
        }
}

#endif
