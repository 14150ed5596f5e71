/* mur_dsp_depthwise.h - how mur_dsp_depthwise_s8 and mur_dsp_depthwise_wide_s8 want their
 * weights, and their scratch. */
#ifndef MUR_DSP_DEPTHWISE_H
#define MUR_DSP_DEPTHWISE_H

#include "mur_nn.h"

/* a channel of the packed weights: this, then the kernel row by row, filled up to whole words */
typedef struct mur_dsp_plane_channel {
    int32_t bias;       /* with -in_zero * the sum of the weights */
    int32_t mul, shift; /* twice the multiplier modulo 2^32; to the right, at least 1.
                         * wide: as in mur_conv_plain */
} mur_dsp_plane_channel;

/* words of a channel; `size` is the kernel's height and width */
static inline int32_t mur_dsp_plane_channel_words(int32_t size)
{
    return 3 + (size * size + 3) / 4;
}

/* The int16 plane of a channel: what the windows of an even number of output columns touch. */
static inline int32_t mur_dsp_plane_columns(const mur_conv_s8 *layer)
{
    int32_t last = ((layer->out_w + 1) & ~1) - 2; /* the last pair of outputs */

    return last * layer->stride_w + layer->kernel_w + 2 * layer->stride_w - 1;
}

static inline int32_t mur_dsp_plane_rows(const mur_conv_s8 *layer)
{
    return (layer->out_h - 1) * layer->stride_h + layer->kernel_h;
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
