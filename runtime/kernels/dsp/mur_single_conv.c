/* mur_single_conv.c - convolutions and pointwise layers in TensorFlow Lite's arithmetic, for cores
 * that issue one instruction at a time: Cortex-M4 and M33. */
#include "mur_dsp_quad.h"
#include "mur_dsp_window.h"

#include "mur_nn_arith.h"

static void clamp(int8_t *out, int32_t count, const mur_output_s8 *to)
{
    for (; count > 0; count--, out++)
        *out = (int8_t)mur_clamp(*out, to->min, to->max);
}

/* the channels behind the last whole four, by way of a pair of pixels with room for all four */
static void multiply_last(const mur_dsp_quad *quad, int32_t channels)
{
    int8_t last[8];
    mur_dsp_quad one = *quad;

    one.out = last;
    one.out_step = quad->out_step ? 4 : 0;
    mur_dsp_run_quads(&one);
    for (int32_t i = 0; i < channels; i++) {
        quad->out[quad->out_step + i] = last[one.out_step + i];
        quad->out[i] = last[i];
    }
}

/* two pixels, or the first alone if there is no step to the second: all channels of a group */
static void multiply_two(mur_dsp_quad *quad, const uint32_t *w, int32_t channels)
{
    int32_t words = channels / 4 * (MUR_DSP_QUAD_WORDS + 4 * quad->words);

    quad->w = w;
    quad->w_end = w + words;
    if (words > 0)
        mur_dsp_run_quads(quad);
    if (channels & 3) {
        quad->w = quad->w_end;
        quad->w_end += MUR_DSP_QUAD_WORDS + 4 * quad->words;
        quad->out += channels & ~3;
        multiply_last(quad, channels & 3);
    }
}

static void multiply(const mur_dsp_window *window, int32_t pixels, int8_t *out)
{
    const mur_conv_s8 *layer = window->layer;
    int32_t out_c = layer->shape.out_c, channels = out_c / layer->shape.groups;
    const uint32_t *x = window->x, *w = layer->packed;
    mur_dsp_quad quad;

    quad.zero = 2 * layer->output.zero + 1;
    quad.words = window->runs.words;
    for (int32_t group = 0; group < layer->shape.groups; group++) {
        for (int32_t i = 0; i < pixels; i += 2) {
            quad.x = x + i;
            quad.x_end = quad.x + quad.words * 8;
            quad.out = out + i * out_c + group * channels;
            quad.out_step = i + 1 < pixels ? out_c : 0;
            multiply_two(&quad, w, channels);
        }
        x += quad.words * 8;
        w = quad.w_end;
    }
    if (layer->output.min != INT8_MIN || layer->output.max != INT8_MAX)
        clamp(out, pixels * out_c, &layer->output);
}

void mur_single_conv_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    mur_dsp_run_rows(layer, in, out, scratch, 3, multiply);
}
