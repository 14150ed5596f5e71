/* pack_ref.c - weights for the kernels in plain C, and what holds for all instruction sets. */
#include "mur_fc.h"
#include "mur_ref.h"

#include <string.h>

int mur_ref_is_simple(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t channel)
{
    int32_t inputs = mur_ref_inputs(layer);
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

mur_ref_head mur_ref_head_of(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    mur_ref_head head = { 1 };

    for (int32_t c = 0; c < layer->shape.out_c; c++)
        head.simple &= (uint32_t)mur_ref_is_simple(layer, plain, c);
    return head;
}

mur_ref_channel mur_ref_channel_of(const mur_conv_s8 *layer, const mur_conv_plain *plain,
                                   int32_t channel)
{
    int32_t inputs = mur_ref_inputs(layer);
    const int8_t *w = plain->weights + channel * inputs;
    mur_ref_channel c = { plain->bias ? plain->bias[channel] : 0, plain->mul[channel],
                          plain->shift[channel] };

    for (int32_t k = 0; k < inputs; k++)
        c.bias -= layer->in_zero * (w[k] - layer->weight_zero);
    return c;
}

int mur_ref_fits_pairs(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    int32_t inputs = mur_ref_inputs(layer);

    if (layer->weight_zero != 0)
        return 0;
    for (int32_t c = 0; c < layer->shape.out_c; c++)
        for (int32_t k = 0; k + 1 < inputs; k += 2)
            if (plain->weights[c * inputs + k] == -128 &&
                plain->weights[c * inputs + k + 1] == -128)
                return 0;
    return 1;
}

/* ---- conv ---- */

int mur_ref_conv_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    (void)layer;
    (void)plain;
    return 1;
}

size_t mur_ref_conv_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return (size_t)layer->shape.out_c * (sizeof(mur_ref_channel) + (size_t)mur_ref_inputs(layer));
}

void mur_ref_conv_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    mur_ref_channel *channel = packed;

    for (int32_t c = 0; c < layer->shape.out_c; c++)
        *channel++ = mur_ref_channel_of(layer, plain, c);
    memcpy(channel, plain->weights, (size_t)layer->shape.out_c * (size_t)mur_ref_inputs(layer));
}

size_t mur_ref_conv_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return (size_t)layer->shape.groups * (size_t)mur_ref_inputs(layer);
}

/* ---- conv, pairs ---- */

int mur_ref_conv_pairs_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    return mur_ref_fits_pairs(layer, plain);
}

size_t mur_ref_conv_pairs_s8_packed_bytes(const mur_conv_s8 *layer)
{
    int32_t channels = layer->shape.out_c / layer->shape.groups;
    size_t twos = (size_t)((channels + 1) / 2 * layer->shape.groups);

    return sizeof(mur_ref_head) + twos * 2 * (sizeof(mur_ref_channel) + mur_ref_even_inputs(layer));
}

void mur_ref_conv_pairs_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    int32_t inputs = mur_ref_inputs(layer), channels = layer->shape.out_c / layer->shape.groups;
    const mur_ref_head head = mur_ref_head_of(layer, plain);
    uint8_t *to = (uint8_t *)packed + sizeof(head);

    memset(packed, 0, mur_ref_conv_pairs_s8_packed_bytes(layer));
    memcpy(packed, &head, sizeof(head));
    for (int32_t channel = 0; channel < layer->shape.out_c;) {
        uint8_t *w = to + 2 * sizeof(mur_ref_channel);
        int32_t count = channel % channels + 1 < channels ? 2 : 1;

        for (int32_t i = 0; i < count; i++, channel++) {
            mur_ref_channel c = mur_ref_channel_of(layer, plain, channel);

            memcpy(to + (size_t)i * sizeof(c), &c, sizeof(c));
            for (int32_t k = 0; k < inputs; k++)
                w[2 * k + i] = (uint8_t)plain->weights[channel * inputs + k];
        }
        to = w + 2 * mur_ref_even_inputs(layer);
    }
}

size_t mur_ref_conv_pairs_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return (size_t)layer->shape.groups * mur_ref_even_inputs(layer) *
           (layer->shape.out_w < 2 ? 1 : 4);
}

/* ---- fully connected ---- */

static int fc_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    for (int32_t c = 0; c < layer->shape.out_c; c++)
        if (!mur_ref_is_simple(layer, plain, c))
            return 0;
    return 1;
}

static size_t fc_weight_bytes(const mur_conv_s8 *layer)
{
    size_t fours = ((size_t)layer->shape.out_c + MUR_REF_CHANNELS - 1) / MUR_REF_CHANNELS;

    return fours * MUR_REF_CHANNELS * (size_t)layer->shape.in_c;
}

static void fc_pack_weights(const mur_conv_s8 *layer, const mur_conv_plain *plain, uint8_t *to)
{
    int32_t inputs = layer->shape.in_c;

    memset(to, 0, fc_weight_bytes(layer));
    for (int32_t c = 0; c < layer->shape.out_c; c++) {
        int32_t i = c % MUR_REF_CHANNELS;

        for (int32_t k = 0; k < inputs; k++)
            to[(c - i) * inputs + k * MUR_REF_CHANNELS + i] =
                (uint8_t)plain->weights[c * inputs + k];
    }
}

MUR_FC_KERNEL(ref, fc_s8, MUR_FC_ONE)
MUR_FC_KERNEL(ref, fc_coded_s8, MUR_FC_CODED)

/* ---- depthwise ---- */

int mur_ref_depthwise_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    (void)plain;
    return layer->shape.groups == layer->shape.in_c && layer->shape.out_c % layer->shape.in_c == 0;
}

static size_t depthwise_bytes(const mur_conv_s8 *layer)
{
    return sizeof(mur_ref_channel) + (((size_t)mur_ref_inputs(layer) + 3) & ~(size_t)3);
}

size_t mur_ref_depthwise_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return sizeof(mur_ref_head) + (size_t)layer->shape.out_c * depthwise_bytes(layer);
}

void mur_ref_depthwise_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    size_t inputs = (size_t)mur_ref_inputs(layer);
    const mur_ref_head head = mur_ref_head_of(layer, plain);
    uint8_t *to = (uint8_t *)packed + sizeof(head);

    memset(packed, 0, mur_ref_depthwise_s8_packed_bytes(layer));
    memcpy(packed, &head, sizeof(head));
    for (int32_t c = 0; c < layer->shape.out_c; c++, to += depthwise_bytes(layer)) {
        mur_ref_channel channel = mur_ref_channel_of(layer, plain, c);

        memcpy(to, &channel, sizeof(channel));
        memcpy(to + sizeof(channel), plain->weights + (size_t)c * inputs, inputs);
    }
}

size_t mur_ref_depthwise_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    const mur_ref_view view = mur_ref_view_of(&layer->shape);

    return (size_t)view.rows * (size_t)view.columns;
}

/* ---- depthwise, windows of three columns ---- */

int mur_ref_depthwise_3_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    const mur_ref_view view = mur_ref_view_of(&layer->shape);

    return mur_ref_depthwise_s8_fits(layer, plain) && view.kernel_w == 3 && view.dilation_w == 1 &&
           view.stride_w <= 2;
}

MUR_CONV_PACKS_AS(ref, depthwise_3_s8, depthwise_s8)

/* ---- of all ---- */

/* where the window of output (y, x) begins to read */
static int32_t first_read(const mur_conv_shape *layer, int32_t y, int32_t x)
{
    int32_t row = y * layer->stride_h - layer->pad_top;
    int32_t column = x * layer->stride_w - layer->pad_left;

    return (row < 0 ? 0 : row) * layer->in_pitch + (column < 0 ? 0 : column) * layer->in_c;
}

/* What is written up to a pixel must lie below all that is read after it; where there are groups,
 * below what the three pixels before read, too. */
int32_t mur_conv_s8_lead(const mur_conv_shape *layer)
{
    int32_t lead = INT32_MIN;

    for (int32_t y = 0; y < layer->out_h; y++)
        for (int32_t x = 0; x < layer->out_w; x++) {
            int32_t written = y * layer->out_pitch + (x + 1) * layer->out_c, read = INT32_MAX;

            if (x + 1 < layer->out_w)
                read = first_read(layer, y, x + 1);
            if (layer->groups > 1)
                read = first_read(layer, y, x > 3 ? x - 3 : 0);
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
