/* mur_dsp_fc.h - how mur_dsp_fc_s8 wants its weights: this, then for each pair of channels, the
 * last perhaps alone, bias a, 256 * bias b + bias a, and mur_dsp_fc_words words of weights. */
#ifndef MUR_DSP_FC_H
#define MUR_DSP_FC_H

#include "mur_nn.h"

typedef struct mur_dsp_fc {
    int32_t mul, shift; /* twice the multiplier, modulo 2^32; to the right, at least 1 */
} mur_dsp_fc;

/* pairs of inputs, a multiple of 4 */
static inline int32_t mur_dsp_fc_words(const mur_conv_s8 *layer)
{
    return (layer->shape.in_c + 7) / 8 * 4;
}

#endif
