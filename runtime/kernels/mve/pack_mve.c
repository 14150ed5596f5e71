/* pack_mve.c - weights for the kernels of this folder: mur_mve.h says how. On the host. */
#include "mur_fc.h"
#include "mur_mve.h"
#include "mur_mve_matmul.h"

#include <string.h>

/* channel i of *four */
static void set_channel(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t channel,
                        const int8_t *w, int32_t inputs, mur_mve_four *four, int32_t i)
{
    four->bias[i] = plain->bias ? plain->bias[channel] : 0;
    for (int32_t k = 0; k < inputs; k++)
        four->bias[i] -= layer->in_zero * w[k];
    four->mul[i] = plain->mul[channel];
    four->shift[i] = plain->shift[channel];
}

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

/* ---- conv ---- */

int mur_mve_conv_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    return layer->shape.groups == 1 && layer->shape.dilation_h == 1 &&
           layer->shape.dilation_w == 1 && is_plain(layer, plain);
}

size_t mur_mve_conv_s8_packed_bytes(const mur_conv_s8 *layer)
{
    size_t four = sizeof(mur_mve_four) + 4 * (size_t)mur_mve_inputs(layer);

    return (size_t)((layer->shape.out_c + 3) / 4) * four + MUR_MVE_BYTES;
}

/* weights of channel i of four */
static void put_weights(const int8_t *w, int32_t inputs, int32_t i, uint8_t *to)
{
    int32_t last = inputs % MUR_MVE_BYTES;

    for (int32_t k = 0; k < inputs; k++) {
        int32_t start = k & ~(MUR_MVE_BYTES - 1);
        int32_t length = start < inputs - last ? MUR_MVE_BYTES : last;

        to[4 * start + i * length + k - start] = (uint8_t)w[k];
    }
}

void mur_mve_conv_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    int32_t inputs = mur_mve_inputs(layer);
    uint8_t *to = packed;

    memset(packed, 0, mur_mve_conv_s8_packed_bytes(layer));
    for (int32_t first = 0; first < layer->shape.out_c; first += 4) {
        uint8_t *bytes = to + sizeof(mur_mve_four);
        mur_mve_four four;

        memset(&four, 0, sizeof(four));
        for (int32_t i = 0; i < 4 && first + i < layer->shape.out_c; i++) {
            const int8_t *w = plain->weights + (first + i) * inputs;

            set_channel(layer, plain, first + i, w, inputs, &four, i);
            put_weights(w, inputs, i, bytes);
        }
        memcpy(to, &four, sizeof(four));
        to = bytes + 4 * inputs;
    }
}

size_t mur_mve_conv_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    size_t gathered = (size_t)(mur_mve_inputs(layer) & ~(MUR_MVE_BYTES - 1)) + MUR_MVE_BYTES;
    size_t pixel = (size_t)layer->shape.out_c;

    if (mur_mve_in_place(layer))
        return pixel;
    if (layer->shape.kernel_h == 1 && layer->shape.kernel_w == 1 && gathered < pixel)
        return pixel; /* a part of the layer may be all inside */
    return gathered;
}

/* ---- conv of any groups and dilation ---- */

int mur_mve_conv_any_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    return is_plain(layer, plain);
}

static size_t bytes_of_four(const mur_conv_s8 *layer)
{
    return sizeof(mur_mve_four) + 4 * (size_t)(mur_mve_inputs(layer) / layer->shape.groups);
}

size_t mur_mve_conv_any_s8_packed_bytes(const mur_conv_s8 *layer)
{
    size_t fours = (size_t)(layer->shape.out_c / layer->shape.groups + 3) / 4;

    return (size_t)layer->shape.groups * fours * bytes_of_four(layer) + MUR_MVE_BYTES;
}

void mur_mve_conv_any_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    int32_t inputs = mur_mve_inputs(layer) / layer->shape.groups;
    int32_t channels = layer->shape.out_c / layer->shape.groups;
    uint8_t *to = packed;

    memset(packed, 0, mur_mve_conv_any_s8_packed_bytes(layer));
    for (int32_t channel = 0; channel < layer->shape.out_c; to += bytes_of_four(layer)) {
        int32_t left = channels - channel % channels;
        mur_mve_four four;

        memset(&four, 0, sizeof(four));
        for (int32_t i = 0; i < 4 && i < left; i++, channel++) {
            const int8_t *w = plain->weights + channel * inputs;

            set_channel(layer, plain, channel, w, inputs, &four, i);
            put_weights(w, inputs, i, to + sizeof(four));
        }
        memcpy(to, &four, sizeof(four));
    }
}

size_t mur_mve_conv_any_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return (size_t)layer->shape.groups *
           (size_t)mur_mve_padded(mur_mve_inputs(layer) / layer->shape.groups);
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
    return (((size_t)layer->shape.out_c + 3) & ~(size_t)3) * (size_t)layer->shape.in_c +
           MUR_MVE_BYTES;
}

static void fc_pack_weights(const mur_conv_s8 *layer, const mur_conv_plain *plain, uint8_t *to)
{
    int32_t inputs = layer->shape.in_c;

    memset(to, 0, fc_weight_bytes(layer));
    for (int32_t c = 0; c < layer->shape.out_c; c++)
        put_weights(plain->weights + c * inputs, inputs, c & 3, to + (c & ~3) * inputs);
}

MUR_FC_KERNEL(mve, fc_s8, 0)
MUR_FC_KERNEL(mve, fc_coded_s8, 1)

/* ---- depthwise ---- */

/* Two neighbouring products must not leave int16; rows above the image must fit the ring. */
int mur_mve_depthwise_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    int32_t taps = layer->shape.kernel_h * layer->shape.kernel_w;

    if (layer->shape.groups != layer->shape.in_c || layer->shape.out_c != layer->shape.in_c ||
        layer->shape.dilation_h != 1 || layer->shape.dilation_w != 1 ||
        layer->shape.kernel_h > MUR_MVE_ROWS || layer->shape.pad_top >= layer->shape.kernel_h ||
        layer->shape.pad_left >= layer->shape.kernel_w || !is_plain(layer, plain))
        return 0;
    for (int32_t i = 0; i < layer->shape.out_c * taps; i++)
        if (plain->weights[i] == -128)
            return 0;
    return 1;
}

static size_t bytes_of_eight(const mur_conv_s8 *layer)
{
    return 2 * sizeof(mur_mve_four) + 8 * (size_t)layer->shape.kernel_h * layer->shape.kernel_w;
}

size_t mur_mve_depthwise_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return (size_t)((layer->shape.out_c + 7) / 8) * bytes_of_eight(layer);
}

void mur_mve_depthwise_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    int32_t taps = layer->shape.kernel_h * layer->shape.kernel_w;
    uint8_t *to = packed;

    memset(packed, 0, mur_mve_depthwise_s8_packed_bytes(layer));
    for (int32_t first = 0; first < layer->shape.out_c; first += 8, to += bytes_of_eight(layer)) {
        mur_mve_four fours[2];

        memset(fours, 0, sizeof(fours));
        for (int32_t i = 0; i < 8 && first + i < layer->shape.out_c; i++) {
            const int8_t *w = plain->weights + (first + i) * taps;

            set_channel(layer, plain, first + i, w, taps, &fours[i & 1], i >> 1);
            for (int32_t k = 0; k < taps; k++)
                to[sizeof(fours) + (size_t)(k * 8 + i)] = (uint8_t)w[k];
        }
        memcpy(to, fours, sizeof(fours));
    }
}

size_t mur_mve_depthwise_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    if (mur_mve_rows_in_place(layer))
        return 0;
    return (size_t)layer->shape.kernel_h * (size_t)mur_mve_row_bytes(layer) + MUR_MVE_BYTES;
}

/* ---- matmul ---- */

size_t mur_mve_matmul_s8_scratch_bytes(const mur_matmul_s8 *layer)
{
    return (size_t)mur_mve_matmul_fours(layer) * (size_t)mur_mve_matmul_bytes(layer) +
           MUR_MVE_BYTES + (layer->a_flip ? (size_t)layer->depth : 0);
}
