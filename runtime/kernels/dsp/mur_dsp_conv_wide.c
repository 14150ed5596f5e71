/* mur_dsp_conv_wide.c - convolutions whose sums or requantization mur_dsp_conv_s8 does not hold.
 * Sums take both unpacking instructions and leave the inner loop as int32; any requantization
 * follows. */
#include "mur_dsp_four.h"
#include "mur_dsp_window.h"
#include "mur_nn_arith.h"

/* the sum of a pixel's inputs, whose words are `step` apart */
static int32_t sum_of_inputs(const uint32_t *x, int32_t step, int32_t inputs)
{
    int32_t sum = 0;

    for (; inputs >= 4; inputs -= 4, x += 2 * step) {
        sum = mur_smlad(x[0], 0x10001, sum);
        sum = mur_smlad(x[step], 0x10001, sum);
    }
    if (inputs > 0) /* bytes 0 and 2, then 1 */
        sum = mur_smlad(x[0], inputs > 2 ? 0x10001 : 1, sum);
    if (inputs > 1)
        sum = mur_smlad(x[step], 1, sum);
    return sum;
}

/* what the weights' zero point takes from the sums of a group's pixels */
static void find_offsets(const mur_dsp_window *window, const uint32_t *x, int32_t pixels,
                         int32_t *offsets)
{
    const mur_conv_s8 *layer = window->layer;
    int32_t inputs = layer->shape.kernel_h * window->runs.a_row * window->runs.bytes;

    for (int32_t i = 0; i < pixels; i++)
        offsets[i] = layer->weight_zero * sum_of_inputs(x + i, pixels, inputs);
}

static __attribute__((noinline)) void subtract(const int32_t *offsets, int32_t pixels,
                                               int32_t *sums)
{
    for (int32_t i = 0; i < pixels; i++) {
        sums[i] -= offsets[i];
        sums[4 + i] -= offsets[i];
    }
}

static void multiply(const mur_dsp_window *window, int32_t pixels, int8_t *out)
{
    const mur_conv_s8 *layer = window->layer;
    const mur_dsp_wide_channel *channel = layer->packed;
    int32_t channels = layer->shape.out_c / layer->shape.groups, words = window->runs.words * 2;
    const uint32_t *w = (const uint32_t *)(const void *)(channel + layer->shape.out_c);
    const uint32_t *x = window->x;
    int32_t offsets[4];

    for (int32_t c = 0; c < layer->shape.out_c;) {
        int32_t count = c % channels + 1 < channels ? 2 : 1, sums[8];

        if (pixels == 4) {
            const mur_dsp_four run = { x, x + words * 4, w, sums };

            mur_dsp_sum4(&run);
        } else {
            mur_dsp_sum1(x, x + words, w, sums);
        }
        if (layer->weight_zero != 0) {
            if (c % channels == 0)
                find_offsets(window, x, pixels, offsets);
            subtract(offsets, pixels, sums);
        }
        for (int32_t j = 0; j < count; j++, channel++, c++)
            for (int32_t i = 0; i < pixels; i++)
                out[i * layer->shape.out_c + c] = mur_requant(
                    sums[4 * j + i] + channel->bias, channel->mul, channel->shift, &layer->output);
        w += words;
        if (c % channels == 0)
            x += words * pixels; /* the next group's inputs */
    }
}

void mur_dsp_conv_wide_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    mur_dsp_run_rows(layer, in, out, scratch, 1, multiply);
}
