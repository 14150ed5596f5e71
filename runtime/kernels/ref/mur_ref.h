/* mur_ref.h - how mur_ref_conv_s8 and mur_ref_depthwise_s8 want a layer's weights:
 * mur_ref_channel [out_c], then the plain weights. */
#ifndef MUR_REF_H
#define MUR_REF_H

#include "mur_nn.h"

typedef struct mur_ref_channel {
    int32_t bias; /* with -in_zero * the sum of its weights */
    int32_t mul, shift;
} mur_ref_channel;

static inline const mur_ref_channel *mur_ref_channels(const mur_conv_s8 *layer)
{
    return layer->packed;
}

static inline const int8_t *mur_ref_weights(const mur_conv_s8 *layer)
{
    return (const int8_t *)(mur_ref_channels(layer) + layer->shape.out_c);
}

#endif
