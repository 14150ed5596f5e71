/* mur_dsp_conv.c - convolutions and pointwise layers in TensorFlow Lite's arithmetic. */
#include "mur_dsp_tile.h"
#include "mur_dsp_window.h"

static void clamp(int8_t *out, int32_t count, const mur_output_s8 *to)
{
    for (; count > 0; count--, out++)
        *out = *out < to->min ? to->min : *out > to->max ? to->max : *out;
}

/* one or four pixels whose inputs lie in window->x */
static void multiply(const mur_dsp_window *window, int32_t pixels, int8_t *out)
{
    const mur_conv_s8 *layer = window->layer;
    void (*run)(const mur_dsp_tile *) = pixels == 4 ? mur_dsp_tile4 : mur_dsp_tile1;
    int32_t x_words = window->runs.words * 2 * pixels,
            channels = layer->shape.out_c / layer->shape.groups;
    int32_t pair_words = mur_dsp_pair_words(&window->runs);
    mur_dsp_tile tile;

    tile.x_end = window->x;
    tile.w_end = layer->packed;
    tile.out_step = layer->shape.out_c;
    tile.zero = layer->output.zero;
    tile.odd = window->runs.words & 1;
    for (int32_t group = 0; group < layer->shape.groups; group++) {
        tile.x = tile.x_end;
        tile.x_end = tile.x + x_words;
        tile.w = tile.w_end;
        tile.w_end = tile.w + (channels >> 1) * pair_words;
        tile.out = out + group * channels;
        if (channels > 1)
            run(&tile);
        if (channels & 1) {
            int8_t last[8];
            mur_dsp_tile one = tile;

            one.w = tile.w_end;
            tile.w_end = one.w_end = one.w + pair_words;
            one.out = last;
            one.out_step = 2;
            run(&one);
            for (int32_t i = 0; i < pixels; i++)
                tile.out[i * layer->shape.out_c + channels - 1] = last[2 * i];
        }
    }
    if (layer->output.min != INT8_MIN || layer->output.max != INT8_MAX)
        clamp(out, pixels * layer->shape.out_c, &layer->output);
}

void mur_dsp_conv_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    mur_dsp_run_rows(layer, in, out, scratch, 1, multiply);
}
