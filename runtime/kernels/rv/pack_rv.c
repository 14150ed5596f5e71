/* pack_rv.c - weights for the kernels of this folder: mur_rv.h says how. On the host. */
#include "mur_fc.h"
#include "mur_rv.h"
#include "mur_rv_matmul.h"

#include <string.h>

/* can every sum of the channel be doubled? */
static int is_simple(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t channel)
{
    int32_t inputs = mur_rv_inputs(layer);
    const int8_t *w = plain->weights + channel * inputs;
    int64_t least = plain->bias ? plain->bias[channel] : 0, most = least;

    for (int32_t k = 0; k < inputs; k++) {
        int32_t weight = w[k] - layer->weight_zero;
        int32_t low = (-128 - layer->in_zero) * weight, high = (127 - layer->in_zero) * weight;

        least += low < high ? low : high;
        most += low < high ? high : low;
    }
    return layer->output.kind == MUR_REQUANT_Q31 && plain->shift[channel] < 0 &&
           plain->shift[channel] >= -21 && least >= -(1 << 30) && most < 1 << 30;
}

static void pack_head(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    mur_rv_head head = { 1 };

    for (int32_t c = 0; c < layer->shape.out_c; c++)
        head.simple &= (uint32_t)is_simple(layer, plain, c);
    memcpy(packed, &head, sizeof(head));
}

static mur_rv_channel channel_of(const mur_conv_s8 *layer, const mur_conv_plain *plain,
                                 int32_t channel)
{
    int32_t inputs = mur_rv_inputs(layer);
    const int8_t *w = plain->weights + channel * inputs;
    mur_rv_channel c = { plain->bias ? plain->bias[channel] : 0, plain->mul[channel],
                         plain->shift[channel] };

    for (int32_t k = 0; k < inputs; k++)
        c.bias -= layer->in_zero * (w[k] - layer->weight_zero);
    return c;
}

/* ---- conv ---- */

/* Two products of neighbouring inputs must not leave 16 bits. */
int mur_rv_conv_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    int32_t inputs = mur_rv_inputs(layer);

    if (layer->weight_zero != 0)
        return 0;
    for (int32_t c = 0; c < layer->shape.out_c; c++)
        for (int32_t k = 0; k + 1 < inputs; k += 2)
            if (plain->weights[c * inputs + k] == -128 &&
                plain->weights[c * inputs + k + 1] == -128)
                return 0;
    return 1;
}

static size_t even_inputs(const mur_conv_s8 *layer)
{
    return ((size_t)mur_rv_inputs(layer) + 1) & ~(size_t)1;
}

size_t mur_rv_conv_s8_packed_bytes(const mur_conv_s8 *layer)
{
    int32_t channels = layer->shape.out_c / layer->shape.groups;
    size_t fours =
        (size_t)((channels + MUR_RV_CHANNELS - 1) / MUR_RV_CHANNELS * layer->shape.groups);

    return sizeof(mur_rv_head) +
           fours * MUR_RV_CHANNELS * (sizeof(mur_rv_channel) + even_inputs(layer));
}

void mur_rv_conv_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    int32_t inputs = mur_rv_inputs(layer), channels = layer->shape.out_c / layer->shape.groups;
    uint8_t *to = (uint8_t *)packed + sizeof(mur_rv_head);

    memset(packed, 0, mur_rv_conv_s8_packed_bytes(layer));
    pack_head(layer, plain, packed);
    for (int32_t group = 0; group < layer->shape.groups; group++)
        for (int32_t first = 0; first < channels; first += MUR_RV_CHANNELS) {
            uint8_t *w = to + MUR_RV_CHANNELS * sizeof(mur_rv_channel);

            for (int32_t i = 0; i < MUR_RV_CHANNELS && first + i < channels; i++) {
                int32_t channel = group * channels + first + i;
                mur_rv_channel c = channel_of(layer, plain, channel);

                memcpy(to + (size_t)i * sizeof(c), &c, sizeof(c));
                for (int32_t k = 0; k < inputs; k++)
                    w[k * MUR_RV_CHANNELS + i] = (uint8_t)plain->weights[channel * inputs + k];
            }
            to = w + MUR_RV_CHANNELS * even_inputs(layer);
        }
}

size_t mur_rv_conv_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    size_t border =
        2 * (size_t)mur_rv_inputs(layer) / layer->shape.kernel_h; /* at most two kernel rows */

    return (size_t)layer->shape.groups * even_inputs(layer) * (size_t)mur_rv_gathered_bytes(layer) +
           border;
}

/* ---- conv, wide: packed in the same way ---- */

int mur_rv_conv_wide_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    (void)layer;
    (void)plain;
    return 1;
}

size_t mur_rv_conv_wide_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return mur_rv_conv_s8_packed_bytes(layer);
}

void mur_rv_conv_wide_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    mur_rv_conv_s8_pack(layer, plain, packed);
}

size_t mur_rv_conv_wide_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return mur_rv_conv_s8_scratch_bytes(layer);
}

/* ---- fully connected ---- */

static int fc_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    for (int32_t c = 0; c < layer->shape.out_c; c++)
        if (!is_simple(layer, plain, c))
            return 0;
    return 1;
}

static size_t fc_weight_bytes(const mur_conv_s8 *layer)
{
    size_t fours = ((size_t)layer->shape.out_c + MUR_RV_CHANNELS - 1) / MUR_RV_CHANNELS;

    return fours * MUR_RV_CHANNELS * (size_t)layer->shape.in_c;
}

static void fc_pack_weights(const mur_conv_s8 *layer, const mur_conv_plain *plain, uint8_t *to)
{
    int32_t inputs = layer->shape.in_c;

    memset(to, 0, fc_weight_bytes(layer));
    for (int32_t c = 0; c < layer->shape.out_c; c++) {
        int32_t i = c % MUR_RV_CHANNELS;

        for (int32_t k = 0; k < inputs; k++)
            to[(c - i) * inputs + k * MUR_RV_CHANNELS + i] =
                (uint8_t)plain->weights[c * inputs + k];
    }
}

MUR_FC_KERNEL(rv, fc_s8, 0)
MUR_FC_KERNEL(rv, fc_coded_s8, 1)

/* ---- depthwise ---- */

int mur_rv_depthwise_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    (void)plain;
    return layer->shape.groups == layer->shape.in_c &&
           layer->shape.out_c % layer->shape.in_c == 0 &&
           (layer->weight_zero == 0 || mur_rv_inputs(layer) <= MUR_RV_ONES);
}

size_t mur_rv_depthwise_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return sizeof(mur_rv_head) + (size_t)layer->shape.out_c * (size_t)mur_rv_depthwise_bytes(layer);
}

void mur_rv_depthwise_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    size_t inputs = (size_t)mur_rv_inputs(layer);
    uint8_t *to = (uint8_t *)packed + sizeof(mur_rv_head);

    memset(packed, 0, mur_rv_depthwise_s8_packed_bytes(layer));
    pack_head(layer, plain, packed);
    for (int32_t c = 0; c < layer->shape.out_c; c++, to += mur_rv_depthwise_bytes(layer)) {
        mur_rv_channel channel = channel_of(layer, plain, c);

        memcpy(to, &channel, sizeof(channel));
        memcpy(to + sizeof(channel), plain->weights + (size_t)c * inputs, inputs);
    }
}

size_t mur_rv_depthwise_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return (size_t)mur_rv_plane_rows(layer) * (size_t)mur_rv_plane_columns(layer);
}

/* ---- matmul ---- */

size_t mur_rv_matmul_s8_scratch_bytes(const mur_matmul_s8 *layer)
{
    return (size_t)mur_rv_matmul_fours(layer) * (size_t)mur_rv_matmul_bytes(layer) +
           (size_t)mur_rv_matmul_inputs(layer) * 8;
}
