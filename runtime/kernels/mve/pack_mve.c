/* pack_mve.c - weights for the kernels of this folder: mur_mve.h says how. On the host. */
#include "mur_fc.h"
#include "mur_mve.h"
#include "mur_mve_matmul.h"
#include "mur_mve_tile.h"

#include <string.h>

/* bias, less what the input's zero point adds to a sum */
static int32_t bias_of(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t channel,
                       const int8_t *w, int32_t inputs)
{
    int32_t bias = plain->bias ? plain->bias[channel] : 0;

    for (int32_t k = 0; k < inputs; k++)
        bias -= layer->in_zero * w[k];
    return bias;
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

static size_t conv_packed_bytes(const mur_conv_s8 *layer)
{
    size_t channels = (size_t)layer->shape.groups * (size_t)mur_mve_channels(layer);

    return channels * (sizeof(mur_mve_channel) + (size_t)mur_mve_inputs(layer)) + MUR_MVE_BYTES;
}

static void conv_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    int32_t inputs = mur_mve_inputs(layer), channels = layer->shape.out_c / layer->shape.groups;
    mur_mve_channel *to = packed;
    int8_t *weights = (int8_t *)(to + layer->shape.groups * mur_mve_channels(layer));

    memset(packed, 0, conv_packed_bytes(layer));
    for (int32_t c = 0; c < layer->shape.out_c; c++) {
        const int8_t *w = plain->weights + c * inputs;
        int32_t at = c / channels * mur_mve_channels(layer) + c % channels;

        to[at].bias = bias_of(layer, plain, c, w, inputs);
        to[at].mul = plain->mul[c];
        to[at].shift = plain->shift[c];
        memcpy(weights + at * inputs, w, (size_t)inputs);
    }
}

static size_t conv_scratch_bytes(const mur_conv_s8 *layer)
{
    return (size_t)layer->shape.groups * (size_t)mur_mve_tile_bytes(mur_mve_inputs(layer));
}

size_t mur_mve_conv_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return conv_packed_bytes(layer);
}

void mur_mve_conv_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    conv_pack(layer, plain, packed);
}

size_t mur_mve_conv_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return conv_scratch_bytes(layer);
}

/* ---- conv of any groups and dilation ---- */

int mur_mve_conv_any_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    return is_plain(layer, plain);
}

size_t mur_mve_conv_any_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return conv_packed_bytes(layer);
}

void mur_mve_conv_any_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    conv_pack(layer, plain, packed);
}

size_t mur_mve_conv_any_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return conv_scratch_bytes(layer);
}

/* ---- fully connected ---- */

static int fc_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    (void)layer;
    (void)plain;
    return 1;
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

            fours[i & 1].bias[i >> 1] = bias_of(layer, plain, first + i, w, taps);
            fours[i & 1].mul[i >> 1] = plain->mul[first + i];
            fours[i & 1].shift[i >> 1] = plain->shift[first + i];
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
