/* pack_ref.c - weights for the kernels of mur_ref_conv.c, and what holds for all instruction sets.
 */
#include "mur_ref.h"

#include <string.h>

static int32_t weights_of_channel(const mur_conv_s8 *layer)
{
    return layer->shape.kernel_h * layer->shape.kernel_w *
           (layer->shape.in_c / layer->shape.groups);
}

int mur_ref_conv_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    (void)layer;
    (void)plain;
    return 1;
}

size_t mur_ref_conv_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return (size_t)layer->shape.out_c *
           (sizeof(mur_ref_channel) + (size_t)weights_of_channel(layer));
}

void mur_ref_conv_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    mur_ref_channel *channel = packed;
    int32_t count = weights_of_channel(layer);
    const int8_t *w = plain->weights;

    for (int32_t c = 0; c < layer->shape.out_c; c++, channel++) {
        int32_t sum = 0;

        for (int32_t k = 0; k < count; k++)
            sum += *w++ - layer->weight_zero;
        channel->bias = (plain->bias ? plain->bias[c] : 0) - layer->in_zero * sum;
        channel->mul = plain->mul[c];
        channel->shift = plain->shift[c];
    }
    memcpy(channel, plain->weights, (size_t)layer->shape.out_c * (size_t)count);
}

size_t mur_ref_conv_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return (size_t)layer->shape.out_c;
}

int mur_ref_depthwise_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    (void)plain;
    return layer->shape.groups == layer->shape.in_c && layer->shape.out_c % layer->shape.in_c == 0;
}

size_t mur_ref_depthwise_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return mur_ref_conv_s8_packed_bytes(layer);
}

void mur_ref_depthwise_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    mur_ref_conv_s8_pack(layer, plain, packed);
}

size_t mur_ref_depthwise_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return (size_t)layer->shape.out_h * (size_t)layer->shape.out_w;
}

/* where the window of output (y, x) begins to read */
static int32_t first_read(const mur_conv_shape *layer, int32_t y, int32_t x)
{
    int32_t row = y * layer->stride_h - layer->pad_top;
    int32_t column = x * layer->stride_w - layer->pad_left;

    return (row < 0 ? 0 : row) * layer->in_pitch + (column < 0 ? 0 : column) * layer->in_c;
}

/* What is written up to a pixel must lie below all that is read after it. */
int32_t mur_conv_s8_lead(const mur_conv_shape *layer)
{
    int32_t lead = INT32_MIN;

    for (int32_t y = 0; y < layer->out_h; y++)
        for (int32_t x = 0; x < layer->out_w; x++) {
            int32_t written = y * layer->out_pitch + (x + 1) * layer->out_c, read = INT32_MAX;

            if (x + 1 < layer->out_w)
                read = first_read(layer, y, x + 1);
            if (y + 1 < layer->out_h && first_read(layer, y + 1, 0) < read)
                read = first_read(layer, y + 1, 0);
            if (read != INT32_MAX && written - read > lead)
                lead = written - read;
        }
    return lead;
}

size_t mur_ref_matmul_s8_scratch_bytes(const mur_matmul_s8 *layer)
{
    (void)layer;
    return 0;
}
