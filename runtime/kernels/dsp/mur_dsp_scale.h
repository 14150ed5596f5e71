/* mur_dsp_scale.h - doubled sums to outputs, two of a channel at a time. */
#ifndef MUR_DSP_SCALE_H
#define MUR_DSP_SCALE_H

#include "mur_dsp.h"

/* What makes an output of a doubled sum: the multiplier, what is added ahead of the shift, and the
 * shift to the right less 1, or in kernels of few inputs the whole of it. */
typedef struct mur_dsp_tap_scale {
    int32_t mul;
    uint32_t add;
    int32_t shift;
} mur_dsp_tap_scale;

/* two sums of a channel to int8, halves away from zero; x and y are changed */
#define MUR_DSP_SCALE_TWO(a, b, mul, plus, shift, x, y) \
    "add " #x ", " #plus ", " #a ", asr #31\n" \
    "add " #y ", " #plus ", " #b ", asr #31\n" \
    "smmlar " #a ", " #a ", " #mul ", " #x "\n" \
    "smmlar " #b ", " #b ", " #mul ", " #y "\n" \
    "asr " #a ", " #a ", " #shift "\n" \
    "asr " #b ", " #b ", " #shift "\n" \
    "ssat " #a ", #8, " #a ", asr #1\n" \
    "ssat " #b ", #8, " #b ", asr #1\n"

/* the same; r12 is behind the channel's scale */
#define MUR_DSP_TAPS_OUT(a, b) \
    "ldmdb r12!, {r9, r10, r11}\n" MUR_DSP_SCALE_TWO(a, b, r9, r10, r11, r8, lr)

/* four channels of both outputs to r0 and r4 */
#define MUR_DSP_TAPS_JOIN \
    "bfi r0, r1, #8, #8\n" \
    "bfi r4, r5, #8, #8\n" \
    "bfi r2, r3, #8, #8\n" \
    "bfi r6, r7, #8, #8\n" \
    "pkhbt r0, r0, r2, lsl #16\n" \
    "pkhbt r4, r4, r6, lsl #16\n"

#if !MUR_HAVE_DSP
#include "mur_nn_arith.h"

static inline int8_t mur_dsp_scale_sum(int32_t sum, const mur_dsp_tap_scale *scale)
{
    sum = mur_scale_q31(mur_asr(sum, 1), scale->mul, -scale->shift - 1);
    sum += mur_asr((int32_t)scale->add, scale->shift + 1); /* the zero point */
    return (int8_t)mur_clamp(sum, INT8_MIN, INT8_MAX);
}

/* of kernels of few inputs: the whole shift, and a zero point 128 more */
static inline int8_t mur_dsp_scale_few(int32_t sum, const mur_dsp_tap_scale *scale)
{
    sum = mur_scale_q31(mur_asr(sum, 1), scale->mul, -scale->shift);
    sum += mur_asr((int32_t)scale->add, scale->shift);
    return (int8_t)(mur_clamp(sum, 0, UINT8_MAX) - 128);
}
#endif

#endif
