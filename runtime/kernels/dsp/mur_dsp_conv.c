/* mur_dsp_conv.c - convolutions and pointwise layers in TensorFlow Lite's arithmetic. */
#include "mur_dsp_tile.h"
#include "mur_dsp_window.h"

/* All output channels of a group of inputs; what changes from group to group is set by multiply. */
typedef struct pairs {
    mur_dsp_tile tile; /* of whole pairs of channels */
    const uint32_t *w;
    int32_t channels, pair_words, group_words;
} pairs;

static void run_tile(const mur_dsp_tile *tile, int32_t pixels)
{
    if (pixels == 4)
        mur_dsp_tile4(tile);
    else
        mur_dsp_tile1(tile);
}

/* the channel behind the last whole pair */
static __attribute__((noinline, cold)) void multiply_last(const pairs *all, int32_t pixels,
                                                          int8_t *out)
{
    mur_dsp_tile tile = all->tile;
    int8_t last[8];

    tile.w = tile.w_end;
    tile.w_end += all->pair_words;
    tile.out = last;
    tile.out_step = 2;
    run_tile(&tile, pixels);
    for (int32_t i = 0; i < pixels; i++, out += all->tile.out_step)
        *out = last[2 * i];
}

/* a group of one or four pixels */
static void multiply(const mur_dsp_window *window, int32_t group, int32_t pixels, int8_t *out)
{
    pairs *all = window->kernel;
    int32_t channels = all->channels;

    out += group * channels;
    all->tile.x_end = all->tile.x + window->runs.words * 2 * pixels;
    all->tile.w = all->w + group * all->group_words;
    all->tile.w_end = all->tile.w + (channels >> 1) * all->pair_words;
    all->tile.out = out;
    if (channels > 1)
        run_tile(&all->tile, pixels);
    if (channels & 1)
        multiply_last(all, pixels, out + channels - 1);
    mur_dsp_clamp_pixels(window->layer, pixels, channels, out);
}

void mur_dsp_conv_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    mur_dsp_runs runs = mur_dsp_runs_of(layer);
    pairs all;

    all.tile.x = scratch;
    all.tile.out_step = layer->shape.out_c;
    all.tile.zero = layer->output.zero;
    all.tile.odd = runs.words & 1;
    all.w = layer->packed;
    all.channels = layer->shape.out_c / layer->shape.groups;
    all.pair_words = mur_dsp_pair_words(&runs);
    all.group_words = ((all.channels + 1) >> 1) * all.pair_words;
    mur_dsp_run_rows(layer, in, out, scratch, 1, 0, multiply, &all);
}
