/* mur_dsp_sums.h - sums of products by pairs of channels, and from sums to int8.
 *
 * Weights are packed by pairs of output channels, a and b. One word holds two inputs' weights of
 * both: as halfwords h = 256 * b + a. With x two inputs as int16, SMLAD(x, h) sums 256 x b + x a,
 * SMLAD(x, SXTB16(h)) sums x a, and the difference is 256 times b's sum: one instruction to unpack
 * four weights. b's sum has 24 bits then; mur_dsp_*_fits sees to it. */
#ifndef MUR_DSP_SUMS_H
#define MUR_DSP_SUMS_H

#include "mur_dsp.h"
#include "mur_nn_arith.h"

#if MUR_HAVE_DSP

/* A sum in register r to an int8, with twice the multiplier (modulo 2^32) in m, the right shift (at
 * least 1) in s and the zero point in z. SMMLAR adds the 2^32 that m lacks, and rounds halves up;
 * ASRS and ADC round x + (x < 0 ? -1 : 0) halves up, which is x's halves away from zero. */
#define MUR_DSP_REQUANT(r, m, s, z) \
    "smmlar " #r ", " #r ", " #m ", " #r "\n" \
    "add " #r ", " #r ", " #r ", asr #31\n" \
    "asrs " #r ", " #r ", " #s "\n" \
    "adc " #r ", " #r ", " #z "\n" \
    "ssat " #r ", #8, " #r "\n"

/* two inputs of one pixel and two channels */
#define MUR_DSP_MAC2(x, w) \
    "sxtb16 r10, " #w "\n" \
    "smlad r1, " #x ", " #w ", r1\n" \
    "smlad r0, " #x ", r10, r0\n"

#else

static inline int8_t mur_dsp_output(int32_t sum, uint32_t mul, uint32_t shift, int32_t zero)
{
    int32_t x = mur_scale_q31(sum, (int32_t)(mul >> 1), -(int32_t)shift);

    return (int8_t)mur_clamp(x + zero, INT8_MIN, INT8_MAX);
}

#endif

#endif
