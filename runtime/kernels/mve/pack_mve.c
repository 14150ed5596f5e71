/* pack_mve.c - weights for the kernels of this folder: mur_mve.h says how. On the host. */
#include "mur_fc.h"
#include "mur_mve.h"
#include "mur_mve_matmul.h"
#include "mur_mve_tile.h"

#include <string.h>

/* a channel's bias, less what the input's zero point adds to a sum, and multiplier */
static mur_mve_channel channel_of(const mur_conv_s8 *layer, const mur_conv_plain *plain,
                                  int32_t channel, const int8_t *w, int32_t inputs)
{
    mur_mve_channel found = { plain->bias ? plain->bias[channel] : 0, plain->mul[channel] };

    for (int32_t k = 0; k < inputs; k++)
        found.bias -= layer->in_zero * w[k];
    return found;
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
    int32_t channels = layer->shape.out_c / layer->shape.groups;
    size_t fours = (size_t)layer->shape.groups * (size_t)mur_mve_count(channels);

    return fours * (MUR_MVE_FOUR * (size_t)mur_mve_inputs(layer) + sizeof(mur_mve_four));
}

static void conv_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    int32_t inputs = mur_mve_inputs(layer), channels = layer->shape.out_c / layer->shape.groups;
    int32_t filled = MUR_MVE_FOUR * mur_mve_count(channels);
    int8_t *weights = packed;
    mur_mve_four *fours = (void *)(weights + layer->shape.groups * filled * inputs);

    memset(packed, 0, conv_packed_bytes(layer));
    for (int32_t c = 0; c < layer->shape.out_c; c++) {
        const int8_t *w = plain->weights + c * inputs;
        int32_t at = c / channels * filled + c % channels;
        mur_mve_four *four = fours + at / MUR_MVE_FOUR;

        four->channel[at % MUR_MVE_FOUR] = channel_of(layer, plain, c, w, inputs);
        four->shift[at % MUR_MVE_FOUR] = (int8_t)plain->shift[c];
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

/* ---- conv of few inputs near one another ---- */

/* and not side by side, as mur_mve_conv_s8 reads them */
int mur_mve_conv_tiny_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    const mur_conv_shape *s = &layer->shape;
    int64_t last = (int64_t)(s->kernel_h - 1) * s->dilation_h * s->in_pitch +
                   (int64_t)(s->kernel_w - 1) * s->dilation_w * s->in_c + s->in_c - 1;

    return s->groups == 1 && mur_mve_inputs(layer) <= MUR_MVE_BYTES && last <= UINT8_MAX &&
           (s->pad_top + s->pad_left > 0 || last >= mur_mve_inputs(layer)) &&
           is_plain(layer, plain);
}

size_t mur_mve_conv_tiny_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    (void)layer;
    return 0;
}

MUR_CONV_WEIGHTS_AS(mve, conv_tiny_s8, conv_s8)

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

MUR_FC_KERNEL(mve, fc_s8, MUR_FC_ONE)
MUR_FC_KERNEL(mve, fc_coded_s8, MUR_FC_CODED)
MUR_FC_KERNEL(mve, fc_each_s8, MUR_FC_EACH)

/* ---- depthwise ---- */

/* rows above the image must be windows', and planes within reach of an offset of 16 bits */
int mur_mve_depthwise_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    const mur_conv_shape *s = &layer->shape;

    return s->groups == s->in_c && s->dilation_h == 1 && s->dilation_w == 1 &&
           s->pad_top < s->kernel_h && s->pad_left < s->kernel_w &&
           mur_mve_line_of(s).plane * (MUR_MVE_PLANES - 1) <= UINT16_MAX && is_plain(layer, plain);
}

size_t mur_mve_depthwise_s8_packed_bytes(const mur_conv_s8 *layer)
{
    size_t taps = (size_t)layer->shape.kernel_h * layer->shape.kernel_w;

    return (size_t)layer->shape.out_c * (sizeof(mur_mve_channel) + taps + 1);
}

void mur_mve_depthwise_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    int32_t rows = layer->shape.kernel_h, columns = layer->shape.kernel_w, taps = rows * columns;
    mur_mve_channel *to = packed;
    int8_t *weights = (int8_t *)(to + layer->shape.out_c);

    memset(packed, 0, mur_mve_depthwise_s8_packed_bytes(layer));
    for (int32_t c = 0; c < layer->shape.out_c; c++) {
        const int8_t *w = plain->weights + c * taps;

        to[c] = channel_of(layer, plain, c, w, taps);
        for (int32_t k = 0; k < taps; k++)
            weights[k % columns * rows + k / columns] = w[k];
        weights[taps] = (int8_t)plain->shift[c];
        weights += taps + 1;
    }
}

/* four windows are read even if a row has fewer, and whole vectors of each */
size_t mur_mve_depthwise_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    mur_mve_line line = mur_mve_line_of(&layer->shape);
    int32_t planes = mur_mve_planes(&layer->shape);
    int32_t behind =
        layer->shape.out_w < 4 ? (4 - layer->shape.out_w) * layer->shape.stride_w * line.rows : 0;

    return (size_t)mur_mve_shorts(&layer->shape, &line) * sizeof(mur_mve_short) +
           (size_t)(planes * line.plane + behind + MUR_MVE_BYTES);
}

/* ---- depthwise, short windows of fours of channels ---- */

int mur_mve_depthwise_short_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    return mur_mve_depthwise_s8_fits(layer, plain) && mur_mve_line_of(&layer->shape).vectors == 1 &&
           layer->shape.out_c % 4 == 0;
}

MUR_CONV_PACKS_AS(mve, depthwise_short_s8, depthwise_s8)

/* ---- depthwise, channel by channel ---- */

int mur_mve_conv_apart_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    const mur_conv_shape *s = &layer->shape;

    return s->groups == s->in_c && s->out_c == s->in_c && is_plain(layer, plain);
}

/* taps that lie inside, of all windows of a line */
static int32_t taps_inside(int32_t in, int32_t out, int32_t taps, int32_t stride, int32_t pad)
{
    int32_t count = 0;

    for (int32_t i = 0; i < out; i++)
        for (int32_t k = 0; k < taps; k++)
            count += i * stride + k >= pad && i * stride + k < pad + in;
    return count;
}

/* The numbers fit instructions counted on an emulated Cortex-M55: apart, of each pixel, row of taps
 * and tap; else of the layer, of rows put into planes and their pixels, and of outputs by fours.
 * Most is done for eight channels at once. */
int mur_mve_is_apart(const mur_conv_shape *s)
{
    const mur_mve_line line = mur_mve_line_of(s);
    int32_t eights = (s->in_c + MUR_MVE_EIGHT - 1) / MUR_MVE_EIGHT, pixels = s->out_h * s->out_w;
    int32_t rows = (s->out_h - 1) * s->stride_h + s->kernel_h;
    int32_t taps = taps_inside(s->in_h, s->out_h, s->kernel_h, s->stride_h, s->pad_top) *
                   taps_inside(s->in_w, s->out_w, s->kernel_w, s->stride_w, s->pad_left);
    int32_t calls = (s->out_h + line.together - 1) / line.together;
    int32_t fours = calls * ((line.together * s->out_w + 3) / 4);

    return 75 * pixels + eights * ((60 + 8 * s->kernel_h) * pixels + 10 * taps) <
           500 + eights * (100 + rows * (25 + 5 * line.width) + 25 * calls + 280 * fours);
}

size_t mur_mve_conv_apart_s8_packed_bytes(const mur_conv_s8 *layer)
{
    size_t eights = ((size_t)layer->shape.out_c + MUR_MVE_EIGHT - 1) / MUR_MVE_EIGHT;

    return eights * (size_t)mur_mve_eight_bytes(&layer->shape);
}

void mur_mve_conv_apart_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    int32_t taps = layer->shape.kernel_h * layer->shape.kernel_w;
    int32_t bytes = mur_mve_eight_bytes(&layer->shape);

    memset(packed, 0, mur_mve_conv_apart_s8_packed_bytes(layer));
    for (int32_t c = 0; c < layer->shape.out_c; c++) {
        mur_mve_eight *eight = (void *)((int8_t *)packed + c / MUR_MVE_EIGHT * bytes);
        int8_t *w = (int8_t *)(eight + 1) + c % MUR_MVE_EIGHT;
        int32_t odd = c % 2, i = c % MUR_MVE_EIGHT / 2;

        eight->bias[odd][i] = plain->bias ? plain->bias[c] : 0;
        eight->mul[odd][i] = plain->mul[c];
        eight->shift[odd][i] = (int8_t)plain->shift[c];
        for (int32_t k = 0; k < taps; k++)
            w[k * MUR_MVE_EIGHT] = plain->weights[c * taps + k];
    }
}

size_t mur_mve_conv_apart_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    (void)layer;
    return 0;
}

/* ---- matmul ---- */

size_t mur_mve_matmul_s8_scratch_bytes(const mur_matmul_s8 *layer)
{
    return (size_t)mur_mve_matmul_panel(layer) + (layer->a_flip ? (size_t)layer->depth : 0);
}
