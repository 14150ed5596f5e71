/* mur_rv.h - kernels for RV32IM: many registers, a multiplier, no packed arithmetic. How the
 * kernels of this folder want a layer's weights, and how they requantize. */
#ifndef MUR_RV_H
#define MUR_RV_H

#include "mur_ref.h"

enum { MUR_RV_CHANNELS = 4, MUR_RV_PIXELS = 4 }; /* of a tile of sums, in registers */

/* Packed weights begin with mur_ref_head, at a multiple of 16 bytes. Of mur_rv_conv_s8 follow, for
 * each group, its channels by fours, the last four filled up with channels of zeros:
 * mur_ref_channel [4], then int8 [inputs][4], the inputs filled up to an even number. */

/* mur_rv_conv_s8 gathers an input of four pixels as two words, of one as a byte */
static inline int32_t mur_rv_gathered_bytes(const mur_conv_s8 *layer)
{
    return layer->shape.out_w < MUR_RV_PIXELS ? 1 : 8;
}

#endif
