/* mur_dsp_conv.h - in which order mur_dsp_conv_s8, mur_single_conv_s8 and mur_dsp_conv_wide_s8 take
 * a window's inputs.
 */
#ifndef MUR_DSP_CONV_H
#define MUR_DSP_CONV_H

#include "mur_nn.h"

/* Runs of neighbouring bytes. First the whole words of all runs in order, then what is left of
 * each. */
typedef struct mur_dsp_runs {
    int32_t a_row;       /* runs in a row of the kernel: 1, or one a tap */
    int32_t bytes;       /* of a run */
    int32_t whole_words; /* of all runs */
    int32_t words;       /* with the rest: inputs of a group / 4, rounded up */
} mur_dsp_runs;

static inline mur_dsp_runs mur_dsp_runs_of(const mur_conv_s8 *layer)
{
    int32_t whole = layer->shape.groups == 1 && layer->shape.dilation_w == 1, depth, runs;
    mur_dsp_runs r;

    depth = layer->shape.in_c / layer->shape.groups;
    r.a_row = whole ? 1 : layer->shape.kernel_w;
    r.bytes = whole ? layer->shape.kernel_w * depth : depth;
    runs = layer->shape.kernel_h * r.a_row;
    r.whole_words = runs * (r.bytes >> 2);
    r.words = r.whole_words + ((runs * (r.bytes & 3) + 3) >> 2);
    return r;
}

/* A single vector takes the scratch of one pixel, with no border beside it. */
static inline int mur_dsp_is_vector(const mur_conv_s8 *layer)
{
    const mur_conv_shape *s = &layer->shape;

    return s->in_h == 1 && s->out_h == 1 && s->out_w == 1 && s->kernel_h == 1 && s->kernel_w == 1 &&
           s->pad_top == 0 && s->pad_left == 0;
}

/* bytes of the widened inputs of a tile's pixels: four, or of a vector one if it may be alone */
static inline size_t mur_dsp_widened_bytes(const mur_conv_s8 *layer, const mur_dsp_runs *runs,
                                           int alone)
{
    return (size_t)layer->shape.groups * (size_t)runs->words *
           (alone && mur_dsp_is_vector(layer) ? 8 : 32);
}

/* words of two channels' weights, with biases, multipliers and shifts */
static inline int32_t mur_dsp_pair_words(const mur_dsp_runs *runs)
{
    return 2 + 2 * runs->words + 3;
}

/* the same of four channels, for mur_single_conv_s8 */
static inline int32_t mur_dsp_quad_words(int32_t words)
{
    return 9 + 4 * words;
}

/* mur_dsp_conv_wide_s8: these for all channels, then for each pair a word for two inputs: bytes 0
 * and 2 weights of the first channel, 1 and 3 of the second. */
typedef struct mur_dsp_wide_channel {
    int32_t bias, mul,
        shift; /* as in mur_conv_plain; bias with -in_zero * the sum of the weights */
} mur_dsp_wide_channel;

#endif
