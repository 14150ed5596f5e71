/* mur_dsp_one.h - what mur_dsp_conv_one_s8 has behind its lines. */
#ifndef MUR_DSP_ONE_H
#define MUR_DSP_ONE_H

#include "mur_dsp.h"
#include "mur_dsp_conv.h"
#include "mur_nn_arith.h"

/* an input byte whose output, ahead of the clamp to the layer's range, is the line's plus `add` */
typedef struct mur_dsp_one_miss {
    uint16_t channel;
    uint8_t x;
    int8_t add; /* 0: there is no more */
} mur_dsp_one_miss;

/* how many there are at most, of all channels */
static inline int32_t mur_dsp_one_misses(int32_t channels)
{
    return (channels + 1) / 2;
}

#endif
