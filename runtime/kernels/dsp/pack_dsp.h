/* pack_dsp.h - what pack_dsp*.c have in common: an output channel as the kernels shall see it. On
 * the host. */
#ifndef PACK_DSP_H
#define PACK_DSP_H

#include "mur_dsp_conv.h"

typedef struct mur_dsp_view {
    const int8_t *weights; /* NULL: all zeros */
    int32_t count;
    int32_t bias; /* with -in_zero * the sum of the weights */
    int32_t mul, shift;
    int64_t least, most; /* the sum, bias included, over all inputs */
} mur_dsp_view;

typedef mur_dsp_view mur_dsp_viewer(const mur_conv_s8 *, const mur_conv_plain *, int32_t channel);

/* a channel as it is */
mur_dsp_viewer mur_dsp_plain_view;
/* or, if it says the same whatever it sees, as that bias */
mur_dsp_viewer mur_dsp_view_of;

/* are all channels' sums within `bits` of two's complement, and their shifts at most `shift`? */
int mur_dsp_are_simple(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t bits,
                       int32_t shift);

/* ---- windows ---- */

static inline size_t window_bytes(const mur_conv_s8 *layer, int alone)
{
    mur_dsp_runs runs = mur_dsp_runs_of(layer);
    int has_border = !mur_dsp_is_vector(layer) || runs.run_words * 4 > runs.bytes;

    return mur_dsp_widened_bytes(layer, &runs, alone, mur_dsp_fours(layer, &runs, alone)) +
           (has_border ? ((size_t)runs.bytes + 15) & ~(size_t)15 : 0);
}

/* The input at place `at` of the kernels' order, as an index of a channel's weights; -1 for none.
 */
static inline int32_t input_at(const mur_dsp_runs *runs, int32_t at, int32_t count)
{
    int32_t of_words = 4 * runs->run_words, run, index;

    if (at < runs->whole_words * 4)
        return at % of_words < runs->bytes ? at / of_words * runs->bytes + at % of_words : -1;
    if (runs->rest == 0)
        return -1;
    at -= runs->whole_words * 4;
    at = (at & ~3) + (at & 1) * 2 + (at >> 1 & 1); /* left bytes lie two by two */
    run = at / runs->rest;
    index = run * runs->bytes + of_words + at % runs->rest;
    return index < count ? index : -1;
}

/* or `none` where there is no input */
static inline int32_t weight_at(const mur_dsp_view *v, const mur_dsp_runs *runs, int32_t at,
                                int32_t none)
{
    int32_t index = v->weights ? input_at(runs, at, v->count) : -1;

    return index < 0 ? none : v->weights[index];
}

/* a vector as one run, whose last word has what is left */
static inline mur_dsp_runs run_of_vector(const mur_conv_s8 *layer)
{
    int32_t words = (layer->shape.in_c + 3) >> 2;

    return (mur_dsp_runs){ 1, layer->shape.in_c, words, 0, words, words };
}

/* ---- fours of channels ---- */

static inline int32_t quads_of(const mur_conv_s8 *layer)
{
    return (layer->shape.out_c / layer->shape.groups + 3) / 4 * layer->shape.groups;
}

/* where the four of a group that begins at channel c does, if not all of it is there */
static inline int32_t four_at(const mur_conv_s8 *layer, int32_t c)
{
    int32_t channels = layer->shape.out_c / layer->shape.groups, left = channels - c % channels;

    return left < 4 ? c + left - 4 : c;
}

#endif
