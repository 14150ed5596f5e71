/* mur_ref_conv.c - convolutions in plain C, of any form: what every faster version must equal.
 *
 * A pixel's inputs are gathered in scratch, borders and all: so no tap is tested, and outputs may
 * overwrite inputs that no later pixel reads. */
#include "mur_ref.h"

#include <string.h>

/* the inputs of a pixel whose window begins at (top, left), group by group */
static void gather(const mur_conv_s8 *layer, const int8_t *in, int32_t top, int32_t left, int8_t *x)
{
    const mur_conv_shape *s = &layer->shape;
    size_t depth = (size_t)(s->in_c / s->groups);

    for (int32_t group = 0; group < s->groups; group++, in += depth)
        for (int32_t i = 0; i < s->kernel_h; i++)
            for (int32_t j = 0; j < s->kernel_w; j++, x += depth) {
                int32_t row = top + i * s->dilation_h, column = left + j * s->dilation_w;

                if (row >= 0 && row < s->in_h && column >= 0 && column < s->in_w)
                    memcpy(x, in + row * s->in_pitch + column * s->in_c, depth);
                else
                    memset(x, layer->in_zero, depth);
            }
}

static int32_t sum_of(const int8_t *x, int32_t count)
{
    int32_t sum = 0;

    for (int32_t k = 0; k < count; k++)
        sum += x[k];
    return sum;
}

/* a pixel whose inputs are gathered, to all channels */
static void run_pixel(const mur_conv_s8 *layer, const int8_t *x, int8_t *out)
{
    const mur_ref_channel *channel = layer->packed;
    const int8_t *w = (const int8_t *)(channel + layer->shape.out_c);
    int32_t inputs = mur_ref_inputs(layer), channels = layer->shape.out_c / layer->shape.groups;

    for (int32_t group = 0; group < layer->shape.groups; group++, x += inputs) {
        int32_t offset = layer->weight_zero ? layer->weight_zero * sum_of(x, inputs) : 0;

        for (int32_t c = 0; c < channels; c++, channel++) {
            int32_t sum = channel->bias - offset;

            for (const int8_t *p = x, *end = x + inputs; p != end; p++)
                sum += *p * *w++;
            *out++ = mur_requant(sum, channel->mul, channel->shift, &layer->output);
        }
    }
}

void mur_ref_conv_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    const mur_conv_shape *s = &layer->shape;

    for (int32_t y = 0; y < s->out_h; y++) {
        int8_t *to = out + y * s->out_pitch;

        for (int32_t x = 0; x < s->out_w; x++, to += s->out_c) {
            gather(layer, in, y * s->stride_h - s->pad_top, x * s->stride_w - s->pad_left, scratch);
            run_pixel(layer, scratch, to);
        }
    }
}
