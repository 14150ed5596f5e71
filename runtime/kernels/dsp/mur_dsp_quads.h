/* mur_dsp_quads.h - convolutions and pointwise layers in TensorFlow Lite's arithmetic, by
 * mur_dsp_quad.h: for mur_single_conv_s8 and mur_single_conv_narrow_s8. */
#ifndef MUR_DSP_QUADS_H
#define MUR_DSP_QUADS_H

#include "mur_dsp_quad.h"
#include "mur_dsp_window.h"

/* All output channels of a group of inputs; what changes from group to group is set by
 * mur_dsp_multiply_quads. */
typedef struct mur_dsp_quads {
    mur_dsp_twos quad; /* of some fours of channels */
    const uint32_t *w;
    int32_t channels, quad_words, group_words;
} mur_dsp_quads;

/* some fours of channels */
static void mur_dsp_multiply_fours(mur_dsp_quads *all, const uint32_t *w, int32_t fours,
                                   int8_t *out)
{
    all->quad.w = w;
    all->quad.w_end = w + fours * all->quad_words;
    all->quad.out = out;
    mur_dsp_run_quads(&all->quad);
}

/* a group of up to four pixels, or of fours */
static void mur_dsp_multiply_quads(const mur_dsp_window *window, int32_t group, int32_t pixels,
                                   int8_t *out)
{
    mur_dsp_quads *all = window->kernel;
    int32_t channels = all->channels;

    out += group * channels;
    all->quad.pixels = pixels;
    mur_dsp_multiply_fours(all, all->w + group * all->group_words, channels >> 2, out);
    if (channels & 3)
        mur_dsp_multiply_fours(all, all->quad.w_end, 1, out + channels - 4);
    mur_dsp_clamp_pixels(window->layer, pixels, channels, out);
}

/* the whole layer; narrow: see mur_dsp_run_rows */
static inline __attribute__((always_inline)) void mur_dsp_run_quad_layer(const mur_conv_s8 *layer,
                                                                         const int8_t *in,
                                                                         int8_t *out, void *scratch,
                                                                         int narrow)
{
    int32_t words = mur_dsp_runs_of(layer).words;
    mur_dsp_quads all;

    all.quad.words = words;
    all.quad.x = scratch;
    all.quad.x_end = all.quad.x + words * 8;
    all.quad.out_step = layer->shape.out_c;
    all.quad.zero = 2 * layer->output.zero + 1;
    all.w = layer->packed;
    all.channels = layer->shape.out_c / layer->shape.groups;
    all.quad_words = mur_dsp_quad_words(words);
    all.group_words = ((all.channels + 3) >> 2) * all.quad_words;
    mur_dsp_run_rows(layer, in, out, scratch, 3, narrow, mur_dsp_multiply_quads, &all);
}

#endif
