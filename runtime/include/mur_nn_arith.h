/* mur_nn_arith.h - the integer arithmetic of mur_nn.h, one value at a time. */
#ifndef MUR_NN_ARITH_H
#define MUR_NN_ARITH_H

#include "mur_nn.h"

/* a shift of a negative number that is arithmetic in every C implementation we build with */
static inline int32_t mur_asr(int32_t x, int32_t by)
{
    return x >> by;
}

static inline int32_t mur_clamp(int32_t x, int32_t min, int32_t max)
{
    return x < min ? min : x > max ? max : x;
}

/* round(a * b / 2^31), halves up, saturated: gemmlowp's SaturatingRoundingDoublingHighMul */
static inline int32_t mur_mul_q31(int32_t a, int32_t b)
{
    if (a == INT32_MIN && b == INT32_MIN)
        return INT32_MAX;
    return (int32_t)(((int64_t)a * b + (1 << 30)) >> 31);
}

/* round(x / 2^by), halves away from zero; by 0..31: gemmlowp's RoundingDivideByPOT */
static inline int32_t mur_divide_pot(int32_t x, int32_t by)
{
    uint32_t mask = (1u << by) - 1u, rest = (uint32_t)x & mask;
    uint32_t threshold = (mask >> 1) + (x < 0);

    return mur_asr(x, by) + (rest > threshold);
}

static inline int32_t mur_shift_left(int32_t x, int32_t by)
{
    return (int32_t)((uint32_t)x << by);
}

/* MUR_REQUANT_Q31 before its zero point and clamp; shift -31..30 */
static inline int32_t mur_scale_q31(int32_t x, int32_t mul, int32_t shift)
{
    if (shift > 0)
        return mur_mul_q31(mur_shift_left(x, shift), mul);
    return mur_divide_pot(mur_mul_q31(x, mul), -shift);
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

#endif
