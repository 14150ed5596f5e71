/* mur_dsp_conv.c - convolutions and pointwise layers in TensorFlow Lite's arithmetic. */
#include "mur_dsp_tile.h"
#include "mur_dsp_window.h"

/* a group of one or four pixels */
static void multiply(const mur_dsp_window *window, int32_t group, int32_t pixels, int8_t *out)
{
    const mur_conv_s8 *layer = window->layer;
    void (*run)(const mur_dsp_tile *) = pixels == 4 ? mur_dsp_tile4 : mur_dsp_tile1;
    int32_t channels =
        layer->shape.groups == 1 ? layer->shape.out_c : layer->shape.out_c / layer->shape.groups;
    int32_t pair_words = mur_dsp_pair_words(&window->runs);
    mur_dsp_tile tile;

    tile.x = window->x;
    tile.x_end = tile.x + window->runs.words * 2 * pixels;
    tile.w = (const uint32_t *)layer->packed + group * ((channels + 1) >> 1) * pair_words;
    tile.w_end = tile.w + (channels >> 1) * pair_words;
    tile.out = out + group * channels;
    tile.out_step = layer->shape.out_c;
    tile.zero = layer->output.zero;
    tile.odd = window->runs.words & 1;
    if (channels > 1)
        run(&tile);
    if (channels & 1) {
        int8_t last[8];
        mur_dsp_tile one = tile;

        one.w = tile.w_end;
        one.w_end = one.w + pair_words;
        one.out = last;
        one.out_step = 2;
        run(&one);
        for (int32_t i = 0; i < pixels; i++)
            tile.out[i * layer->shape.out_c + channels - 1] = last[2 * i];
    }
    mur_dsp_clamp_pixels(layer, pixels, channels, tile.out);
}

void mur_dsp_conv_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    mur_dsp_run_rows(layer, in, out, scratch, 1, multiply);
}
