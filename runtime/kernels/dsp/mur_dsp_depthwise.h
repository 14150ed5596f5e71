/* mur_dsp_depthwise.h - how mur_dsp_depthwise_3_s8, mur_dsp_depthwise_s8 and
 * mur_dsp_depthwise_wide_s8 want their weights, and their scratch. */
#ifndef MUR_DSP_DEPTHWISE_H
#define MUR_DSP_DEPTHWISE_H

#include "mur_nn.h"

/* Packed weights: for each channel MUR_DSP_PLANE_WORDS words, its bias (with -in_zero * the sum of
 * the weights) and twice the multiplier modulo 2^32; then for each channel a byte, the shift to the
 * right, at least 1, and the kernel row by row, without gaps. Wide: MUR_DSP_PLANE_WIDE_WORDS words,
 * bias, multiplier and shift as in mur_conv_plain, then kernels alone. */
enum { MUR_DSP_PLANE_WORDS = 2, MUR_DSP_PLANE_WIDE_WORDS = 3 };

/* bytes ahead of a channel's kernel */
static inline int32_t mur_dsp_plane_lead(int32_t words)
{
    return words == MUR_DSP_PLANE_WORDS;
}

/* The int16 plane of a channel: what the windows of an even number of output columns touch. */
static inline int32_t mur_dsp_plane_columns(const mur_conv_s8 *layer)
{
    int32_t last = ((layer->shape.out_w + 1) & ~1) - 2; /* the last pair of outputs */

    return last * layer->shape.stride_w + layer->shape.kernel_w + 2 * layer->shape.stride_w - 1;
}

static inline int32_t mur_dsp_plane_rows(const mur_conv_s8 *layer)
{
    return (layer->shape.out_h - 1) * layer->shape.stride_h + layer->shape.kernel_h;
}

/* words of the weights as pairs of int16, ahead of the plane in scratch */
enum { MUR_DSP_PLANE_WEIGHTS = 48 };

/* behind the plane: a row of sums, of mur_dsp_depthwise_wide_s8 */
static inline int32_t *mur_dsp_plane_sums(const mur_conv_s8 *layer, uint32_t *scratch)
{
    return (int32_t *)(scratch + MUR_DSP_PLANE_WEIGHTS +
                       mur_dsp_plane_rows(layer) * mur_dsp_plane_columns(layer) / 2);
}

#endif
