/* mur_single_conv.c - convolutions and pointwise layers in TensorFlow Lite's arithmetic, for cores
 * that issue one instruction at a time: Cortex-M4 and M33. */
#include "mur_dsp_quad.h"
#include "mur_dsp_window.h"

/* the channels behind the last whole four, by way of pixels with room for all four */
static void multiply_last(mur_dsp_quad *quad, int32_t channels, int8_t *out, int32_t out_step)
{
    int8_t last[16];

    quad->out = last;
    quad->out_step = 4;
    mur_dsp_run_quads(quad);
    quad->out_step = out_step;
    for (int32_t i = 0; i < quad->pixels; i++, out += out_step)
        for (int32_t c = 0; c < channels; c++)
            out[c] = last[4 * i + c];
}

/* a group of up to four pixels */
static void multiply(const mur_dsp_window *window, int32_t group, int32_t pixels, int8_t *out)
{
    const mur_conv_shape *shape = &window->layer->shape;
    int32_t channels = shape->groups == 1 ? shape->out_c : shape->out_c / shape->groups;
    int32_t words = mur_dsp_quad_words(window->runs.words);
    mur_dsp_quad quad;

    out += group * channels;
    quad.words = window->runs.words;
    quad.x = window->x;
    quad.x_end = quad.x + quad.words * 8;
    quad.w = (const uint32_t *)window->layer->packed + group * ((channels + 3) >> 2) * words;
    quad.w_end = quad.w + (channels >> 2) * words;
    quad.out = out;
    quad.out_step = shape->out_c;
    quad.zero = 2 * window->layer->output.zero + 1;
    quad.pixels = pixels;
    if (channels > 3)
        mur_dsp_run_quads(&quad);
    if (channels & 3) {
        quad.w = quad.w_end;
        quad.w_end += words;
        multiply_last(&quad, channels & 3, out + (channels & ~3), shape->out_c);
    }
    mur_dsp_clamp_pixels(window->layer, pixels, channels, out);
}

void mur_single_conv_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    mur_dsp_run_rows(layer, in, out, scratch, 3, multiply);
}
