/* mur_ref_conv.c - convolutions in plain C: what every faster version must equal. */
#include "mur_nn_arith.h"
#include "mur_ref.h"

#include <string.h>

static int32_t sum_of(const int8_t *x, int32_t count)
{
    int32_t sum = 0;

    for (int32_t k = 0; k < count; k++)
        sum += x[k];
    return sum;
}

/* Sum of the taps of output (y, x, channel) inside the image; the bias has the input's zero point
 * in it for all taps, so those outside count as in_zero. */
static int32_t sum_of_taps(const mur_conv_s8 *layer, const int8_t *in, int32_t y, int32_t x,
                           int32_t channel)
{
    const int8_t *w = mur_ref_weights(layer);
    int32_t depth = layer->shape.in_c / layer->shape.groups;
    int32_t first = channel / (layer->shape.out_c / layer->shape.groups) * depth;
    int32_t sum = mur_ref_channels(layer)[channel].bias;

    w += channel * layer->shape.kernel_h * layer->shape.kernel_w * depth;
    for (int32_t i = 0; i < layer->shape.kernel_h; i++) {
        int32_t row =
            y * layer->shape.stride_h - layer->shape.pad_top + i * layer->shape.dilation_h;

        for (int32_t j = 0; j < layer->shape.kernel_w; j++, w += depth) {
            int32_t column =
                x * layer->shape.stride_w - layer->shape.pad_left + j * layer->shape.dilation_w;
            int inside =
                row >= 0 && row < layer->shape.in_h && column >= 0 && column < layer->shape.in_w;
            const int8_t *from =
                inside ? in + row * layer->shape.in_pitch + column * layer->shape.in_c + first : w;

            if (inside)
                for (int32_t k = 0; k < depth; k++)
                    sum += from[k] * w[k];
            else
                for (int32_t k = 0; k < depth; k++)
                    sum += layer->in_zero * w[k];
            if (layer->weight_zero)
                sum -= layer->weight_zero * (inside ? sum_of(from, depth) : depth * layer->in_zero);
        }
    }
    return sum;
}

static int8_t output(const mur_conv_s8 *layer, const int8_t *in, int32_t y, int32_t x, int32_t c)
{
    const mur_ref_channel *channel = &mur_ref_channels(layer)[c];

    return mur_requant(sum_of_taps(layer, in, y, x, c), channel->mul, channel->shift,
                       &layer->output);
}

void mur_ref_conv_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    int8_t *pixel = scratch; /* int8 [out_c]: a pixel's inputs are read before it is written */

    for (int32_t y = 0; y < layer->shape.out_h; y++) {
        int8_t *to = out + y * layer->shape.out_pitch;

        for (int32_t x = 0; x < layer->shape.out_w; x++, to += layer->shape.out_c) {
            for (int32_t c = 0; c < layer->shape.out_c; c++)
                pixel[c] = output(layer, in, y, x, c);
            memcpy(to, pixel, (size_t)layer->shape.out_c);
        }
    }
}

void mur_ref_depthwise_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    int8_t *plane = scratch; /* int8 [out_h][out_w]: a channel is read before it is written */

    for (int32_t c = 0; c < layer->shape.out_c; c++) {
        int8_t *from = plane;

        for (int32_t y = 0; y < layer->shape.out_h; y++)
            for (int32_t x = 0; x < layer->shape.out_w; x++)
                *from++ = output(layer, in, y, x, c);
        from = plane;
        for (int32_t y = 0; y < layer->shape.out_h; y++)
            for (int32_t x = 0; x < layer->shape.out_w; x++)
                out[y * layer->shape.out_pitch + x * layer->shape.out_c + c] = *from++;
    }
}
