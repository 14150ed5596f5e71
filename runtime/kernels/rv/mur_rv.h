/* mur_rv.h - kernels for RV32IM: many registers, a multiplier, no packed arithmetic. How the
 * kernels of this folder want a layer's weights, and how they requantize. */
#ifndef MUR_RV_H
#define MUR_RV_H

#include "mur_nn_arith.h"

enum { MUR_RV_CHANNELS = 4, MUR_RV_PIXELS = 4 }; /* of a tile of sums, in registers */
enum { MUR_RV_ONES = 49 }; /* most taps of a depthwise kernel whose weights have a zero point */

/* One output channel. */
typedef struct mur_rv_channel {
    int32_t bias;       /* with -in_zero * the sum of the weights in it */
    int32_t mul, shift; /* as in mur_conv_plain */
} mur_rv_channel;

/* Packed weights begin with this, at a multiple of 16 bytes. Of mur_rv_conv_s8 follow, for each
 * group, its channels by fours, the last four filled up with channels of zeros: mur_rv_channel [4],
 * then int8 [inputs][4],
 * the inputs filled up to an even number. Of fc kernels int8 [inputs][4] of each four. Of
 * mur_rv_depthwise_s8, for each channel: mur_rv_channel, then the kernel row by row, filled up to
 * whole words. */
typedef struct mur_rv_head {
    uint32_t simple; /* MUR_REQUANT_Q31, shifts -21..-1, every sum has 31 bits */
} mur_rv_head;

static inline int32_t mur_rv_inputs(const mur_conv_s8 *layer)
{
    return layer->shape.kernel_h * layer->shape.kernel_w *
           (layer->shape.in_c / layer->shape.groups);
}

/* mur_rv_conv_s8 gathers an input of four pixels as two words, of one as a byte */
static inline int32_t mur_rv_gathered_bytes(const mur_conv_s8 *layer)
{
    return layer->shape.out_w < MUR_RV_PIXELS ? 1 : 8;
}

static inline int32_t mur_rv_depthwise_bytes(const mur_conv_s8 *layer)
{
    return (int32_t)sizeof(mur_rv_channel) +
           ((layer->shape.kernel_h * layer->shape.kernel_w + 3) & ~3);
}

/* The plane of a channel: all that its windows touch, for outputs by fours. */
static inline int32_t mur_rv_plane_columns(const mur_conv_s8 *layer)
{
    return (((layer->shape.out_w + 3) & ~3) - 1) * layer->shape.stride_w +
           (layer->shape.kernel_w - 1) * layer->shape.dilation_w + 1;
}

static inline int32_t mur_rv_plane_rows(const mur_conv_s8 *layer)
{
    return (layer->shape.out_h - 1) * layer->shape.stride_h +
           (layer->shape.kernel_h - 1) * layer->shape.dilation_h + 1;
}

/* A layer's way from sums to bytes. */
typedef struct mur_rv_output {
    const mur_output_s8 *to;
    int32_t simple; /* see mur_rv_head */
} mur_rv_output;

/* sums of one channel to every `step`th byte */
static inline __attribute__((always_inline)) void mur_rv_finish(const mur_rv_output *output,
                                                                const mur_rv_channel *channel,
                                                                const int32_t *sums, int32_t count,
                                                                int8_t *out, int32_t step)
{
    const int32_t *end = sums + count;
    int32_t mul = channel->mul, shift = channel->shift, offset;
    int32_t min = output->to->min, max = output->to->max;

    if (!output->simple) {
        for (; sums != end; sums++, out += step)
            *out = mur_requant(*sums, mul, shift, output->to);
        return;
    }
    shift = -shift;
    offset =
        mur_asr(mur_shift_left(2 * output->to->zero + 1, shift), 1); /* the zero point and a half */
    for (; sums != end; sums++, out += step) {
        int64_t product = (int64_t)mur_shift_left(*sums, 1) * mul;
        int32_t x = (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31); /* halves up */

        x = mur_asr(x + mur_asr(x, 31) + offset, shift); /* halves away from zero */
        if (x < min)
            x = min;
        if (x > max)
            x = max;
        *out = (int8_t)x;
    }
}

#endif
