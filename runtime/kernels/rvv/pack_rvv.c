/* pack_rvv.c - weights for the kernels of this folder: mur_rvv.h says how. On the host. */
#include "mur_fc.h"
#include "mur_rvv.h"

#include <string.h>

/* shifts to the right alone, and weights of zero point 0 */
static int is_plain(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    if (layer->output.kind != MUR_REQUANT_Q31 || layer->weight_zero != 0)
        return 0;
    for (int32_t c = 0; c < layer->shape.out_c; c++)
        if (plain->shift[c] > 0)
            return 0;
    return 1;
}

static size_t packed_bytes(const mur_conv_s8 *layer)
{
    return (size_t)layer->shape.out_c *
           (MUR_RVV_CHANNEL_BYTES + (size_t)mur_rvv_inputs(&layer->shape));
}

/* the numbers of all channels, and weights of `together` of them side by side; channel c is
 * written as place[c] would say, were it an array: of `turns` channels that share inputs the first
 * of all come first */
static void pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t together,
                 int32_t turns, void *packed)
{
    int32_t inputs = mur_rvv_inputs(&layer->shape), channels = layer->shape.out_c;
    int32_t *bias = packed, *mul = bias + channels;
    uint8_t *right = (uint8_t *)(mul + channels), *weights = right + channels;
    const int8_t *w = plain->weights;

    for (int32_t c = 0; c < channels; c++) {
        int32_t at = c % turns * (channels / turns) + c / turns;
        uint8_t *to = weights + at / together * together * inputs + at % together;

        bias[at] = plain->bias ? plain->bias[c] : 0;
        mul[at] = plain->mul[c];
        right[at] = (uint8_t)-plain->shift[c];
        for (int32_t k = 0; k < inputs; k++, w++) {
            bias[at] -= layer->in_zero * *w;
            to[k * together] = (uint8_t)*w;
        }
    }
}

/* ---- conv ---- */

int mur_rvv_conv_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    return is_plain(layer, plain);
}

size_t mur_rvv_conv_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return packed_bytes(layer);
}

void mur_rvv_conv_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    pack(layer, plain, layer->shape.out_c / layer->shape.groups, 1, packed);
}

size_t mur_rvv_conv_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    int32_t pixels = layer->shape.out_w < MUR_RVV_PIXELS ? layer->shape.out_w : MUR_RVV_PIXELS;

    return (size_t)pixels * (size_t)layer->shape.groups * (size_t)mur_rvv_inputs(&layer->shape);
}

/* ---- fully connected ---- */

static int fc_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    (void)layer;
    (void)plain;
    return 1;
}

static size_t fc_weight_bytes(const mur_conv_s8 *layer)
{
    return (size_t)layer->shape.out_c * (size_t)layer->shape.in_c;
}

static void fc_pack_weights(const mur_conv_s8 *layer, const mur_conv_plain *plain, uint8_t *to)
{
    int32_t inputs = layer->shape.in_c, channels = layer->shape.out_c;

    for (int32_t k = 0; k < inputs; k++)
        for (int32_t c = 0; c < channels; c++)
            *to++ = (uint8_t)plain->weights[c * inputs + k];
}

MUR_FC_KERNEL(rvv, fc_s8, MUR_FC_ONE)
MUR_FC_KERNEL(rvv, fc_coded_s8, MUR_FC_CODED)

/* ---- depthwise ---- */

/* in place a row must be in the ring before outputs overwrite it */
int mur_rvv_depthwise_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    return layer->shape.groups == layer->shape.in_c &&
           layer->shape.pad_top < mur_rvv_rows(&layer->shape) && is_plain(layer, plain);
}

size_t mur_rvv_depthwise_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return packed_bytes(layer);
}

void mur_rvv_depthwise_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    pack(layer, plain, layer->shape.in_c, layer->shape.out_c / layer->shape.in_c, packed);
}

size_t mur_rvv_depthwise_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    const mur_conv_shape *s = &layer->shape;

    return sizeof(int32_t) * s->kernel_h +
           (size_t)mur_rvv_rows(s) * (size_t)mur_rvv_width(s) * (size_t)mur_rvv_planes(s);
}
