/* pack_rv.c - weights for the kernels of this folder: mur_rv.h says how. On the host. */
#include "mur_rv.h"
#include "mur_rv_matmul.h"

#include <string.h>

/* ---- conv ---- */

int mur_rv_conv_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    return mur_ref_fits_pairs(layer, plain);
}

size_t mur_rv_conv_s8_packed_bytes(const mur_conv_s8 *layer)
{
    int32_t channels = layer->shape.out_c / layer->shape.groups;
    size_t fours =
        (size_t)((channels + MUR_RV_CHANNELS - 1) / MUR_RV_CHANNELS * layer->shape.groups);

    return sizeof(mur_ref_head) +
           fours * MUR_RV_CHANNELS * (sizeof(mur_ref_channel) + mur_ref_even_inputs(layer));
}

void mur_rv_conv_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    int32_t inputs = mur_ref_inputs(layer), channels = layer->shape.out_c / layer->shape.groups;
    const mur_ref_head head = mur_ref_head_of(layer, plain);
    uint8_t *to = (uint8_t *)packed + sizeof(mur_ref_head);

    memset(packed, 0, mur_rv_conv_s8_packed_bytes(layer));
    memcpy(packed, &head, sizeof(head));
    for (int32_t group = 0; group < layer->shape.groups; group++)
        for (int32_t first = 0; first < channels; first += MUR_RV_CHANNELS) {
            uint8_t *w = to + MUR_RV_CHANNELS * sizeof(mur_ref_channel);

            for (int32_t i = 0; i < MUR_RV_CHANNELS && first + i < channels; i++) {
                int32_t channel = group * channels + first + i;
                mur_ref_channel c = mur_ref_channel_of(layer, plain, channel);

                memcpy(to + (size_t)i * sizeof(c), &c, sizeof(c));
                for (int32_t k = 0; k < inputs; k++)
                    w[k * MUR_RV_CHANNELS + i] = (uint8_t)plain->weights[channel * inputs + k];
            }
            to = w + MUR_RV_CHANNELS * mur_ref_even_inputs(layer);
        }
}

/* do a kernel's taps along one axis meet the image alone? */
static int is_inside(int32_t in, int32_t out, int32_t kernel, int32_t stride, int32_t dilation,
                     int32_t pad)
{
    return pad == 0 && (out - 1) * stride + (kernel - 1) * dilation < in;
}

/* of two pixels' kernel rows that may be partly outside; otherwise what fills odd inputs up */
static size_t border_bytes(const mur_conv_s8 *layer)
{
    const mur_conv_shape *s = &layer->shape;

    if (is_inside(s->in_h, s->out_h, s->kernel_h, s->stride_h, s->dilation_h, s->pad_top) &&
        is_inside(s->in_w, s->out_w, s->kernel_w, s->stride_w, s->dilation_w, s->pad_left))
        return (size_t)mur_ref_inputs(layer) % 2;
    return 2 * (size_t)mur_ref_inputs(layer) / s->kernel_h;
}

size_t mur_rv_conv_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return mur_ref_even_inputs(layer) * (size_t)mur_rv_gathered_bytes(layer) + border_bytes(layer);
}

/* ---- conv, wide: packed in the same way ---- */

int mur_rv_conv_wide_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    (void)layer;
    (void)plain;
    return 1;
}

MUR_CONV_PACKS_AS(rv, conv_wide_s8, conv_s8)

/* ---- matmul ---- */

size_t mur_rv_matmul_s8_scratch_bytes(const mur_matmul_s8 *layer)
{
    return (size_t)mur_rv_matmul_fours(layer) * (size_t)mur_rv_matmul_bytes(layer) +
           (size_t)mur_rv_matmul_inputs(layer) * 8;
}
