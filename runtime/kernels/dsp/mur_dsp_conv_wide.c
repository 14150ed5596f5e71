/* mur_dsp_conv_wide.c - convolutions whose sums or requantization mur_dsp_conv_s8 does not hold.
 * Sums take both unpacking instructions and leave the inner loop as int32; any requantization
 * follows. */
#include "mur_dsp_four.h"
#include "mur_dsp_window.h"

/* the sum of a pixel's inputs, whose words are `step` apart */
static int32_t sum_of_inputs(const uint32_t *x, int32_t step, int32_t words)
{
    int32_t sum = 0;

    for (; words > 0; words--, x += step)
        sum = mur_smlad(x[0], 0x10001, sum);
    return sum;
}

/* What the weights' zero point takes from the sums of a group's pixels; it is what places without
 * an input meet. */
static void find_offsets(const mur_dsp_window *window, int32_t pixels, int32_t *offsets)
{
    for (int32_t i = 0; i < pixels; i++)
        offsets[i] = window->layer->weight_zero *
                     sum_of_inputs(window->x + i, pixels, window->runs.words * 2);
}

static __attribute__((noinline)) void subtract(const int32_t *offsets, int32_t pixels,
                                               int32_t *sums)
{
    for (int32_t i = 0; i < pixels; i++) {
        sums[i] -= offsets[i];
        sums[4 + i] -= offsets[i];
    }
}

static void multiply(const mur_dsp_window *window, int32_t group, int32_t pixels, int8_t *out)
{
    const mur_conv_s8 *layer = window->layer;
    const mur_dsp_wide_channel *channel = layer->packed;
    int32_t channels = layer->shape.out_c / layer->shape.groups, words = window->runs.words * 2;
    const uint32_t *w = (const uint32_t *)(const void *)(channel + layer->shape.out_c);
    const uint32_t *x_end = window->x + words * pixels;
    int32_t offsets[4] = { 0, 0, 0, 0 };

    w += group * ((channels + 1) >> 1) * words;
    channel += group * channels;
    out += group * channels;
    if (layer->weight_zero != 0)
        find_offsets(window, pixels, offsets);
    for (int32_t c = 0; c < channels; w += words) {
        int32_t count = c + 1 < channels ? 2 : 1, sums[8];

        if (pixels == 4) {
            const mur_dsp_four run = { window->x, x_end, w, sums };

            mur_dsp_sum4(&run);
        } else {
            mur_dsp_sum1(window->x, x_end, w, sums);
        }
        if (layer->weight_zero != 0)
            subtract(offsets, pixels, sums);
        for (int32_t j = 0; j < count; j++, channel++, c++)
            for (int32_t i = 0; i < pixels; i++)
                out[i * layer->shape.out_c + c] = mur_requant(
                    sums[4 * j + i] + channel->bias, channel->mul, channel->shift, &layer->output);
    }
}

void mur_dsp_conv_wide_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    mur_dsp_run_rows(layer, in, out, scratch, 1, 0, multiply, NULL);
}
