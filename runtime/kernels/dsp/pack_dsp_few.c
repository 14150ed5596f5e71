/* pack_dsp_few.c - weights of halfwords: mur_dsp_conv_few_s8 and mur_dsp_fc_few_s8. On the host. */
#include "mur_fc.h"
#include "pack_dsp.h"

/* do doubled sums fit 32 bits, and outputs, before they are clamped, 16? */
static int are_few(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    if (!mur_dsp_are_simple(layer, plain, 31, 22))
        return 0;
    for (int32_t c = 0; c < layer->shape.out_c; c++) {
        mur_dsp_view v = mur_dsp_view_of(layer, plain, c);

        if (((v.least * v.mul) >> (31 - v.shift)) < -32000 ||
            ((v.most * v.mul) >> (31 - v.shift)) > 32000)
            return 0;
    }
    return 1;
}

/* ---- convolutions ---- */

size_t mur_dsp_conv_few_s8_packed_bytes(const mur_conv_s8 *layer)
{
    mur_dsp_runs runs = mur_dsp_runs_of(layer);

    return (size_t)quads_of(layer) * (size_t)mur_dsp_few_words(mur_dsp_few_pairs(layer, &runs)) * 4;
}

enum { MOST_FEW = 10240 /* bytes */, MANY_PIXELS = 64 };

/* Rows have two pixels. Weights take up to twice the memory of other kernels': none but a few of a
 * multiple of 8 inputs, which are the many of large networks, and for a loop over inputs only
 * windows of a row, of a column or in groups, not those with which networks of images begin, nor
 * pointwise layers of few pixels, with which they end. */
int mur_dsp_conv_few_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t window = s->kernel_h * s->kernel_w, inputs = window * (s->in_c / s->groups);
    int32_t is_line = s->kernel_h == 1 || s->kernel_w == 1 || s->groups > 1;
    size_t bytes = mur_dsp_conv_few_s8_packed_bytes(layer);
    mur_dsp_runs runs = mur_dsp_runs_of(layer);

    return s->out_w > 1 && s->out_c / s->groups > 3 && (inputs % 8 != 0 || bytes <= 256) &&
           ((is_line && (window > 1 || s->out_h * s->out_w >= MANY_PIXELS)) ||
            mur_dsp_few_pairs(layer, &runs) <= MUR_DSP_FEW_PAIRS) &&
           bytes <= MOST_FEW && are_few(layer, plain);
}

size_t mur_dsp_conv_few_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return window_bytes(layer, 0);
}

/* four channels of so many words of two inputs; returns their end but one word */
static uint32_t *pack_four_few(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t first,
                               const mur_dsp_runs *runs, int32_t pairs, uint32_t *out)
{
    uint32_t *scale = out + 4 + 4 * pairs;

    for (int32_t c = 0; c < 4; c++, out++) {
        mur_dsp_view v = mur_dsp_view_of(layer, plain, first + c);

        *out = 2 * (uint32_t)v.bias;
        for (int32_t i = 0; i < pairs; i++) {
            int32_t at = 4 * (i >> 1) + (i & 1);

            out[4 + 4 * i] = (uint16_t)(2 * weight_at(&v, runs, at, 0)) |
                             (uint32_t)(2 * weight_at(&v, runs, at + 2, 0)) << 16;
        }
        *scale++ = (uint32_t)v.mul;
        *scale++ = (uint32_t)(2 * (layer->output.zero + 128) + 1) << (-v.shift - 1);
        *scale++ = (uint32_t)-v.shift;
    }
    return scale;
}

static void pack_few(const mur_conv_s8 *layer, const mur_conv_plain *plain,
                     const mur_dsp_runs *runs, int32_t pairs, uint32_t *out)
{
    int32_t channels = layer->shape.out_c / layer->shape.groups;

    for (int32_t group = 0; group < layer->shape.groups; group++)
        for (int32_t c = 0; c < channels; c += 4) {
            int32_t left = channels - c - 4; /* behind these */

            out =
                pack_four_few(layer, plain, four_at(layer, group * channels + c), runs, pairs, out);
            *out++ = (uint32_t)(left < 0 ? 0 : left < 4 ? left : 4);
        }
}

void mur_dsp_conv_few_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    mur_dsp_runs runs = mur_dsp_runs_of(layer);

    pack_few(layer, plain, &runs, mur_dsp_few_pairs(layer, &runs), packed);
}

/* ---- fully connected ---- */

size_t mur_dsp_fc_few_s8_packed_bytes(const mur_conv_s8 *layer)
{
    return (size_t)quads_of(layer) * (size_t)mur_dsp_few_words(2 * run_of_vector(layer).words) * 4;
}

/* Weights take up to twice the memory of other kernels', and inputs have scratch. */
int mur_dsp_fc_few_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    int32_t inputs = layer->shape.in_c;

    return mur_fc_fits(layer, plain, MUR_FC_EACH) && layer->shape.out_c > 3 &&
           (inputs < 64 || (inputs < 160 && inputs % 8 != 0)) &&
           mur_dsp_fc_few_s8_packed_bytes(layer) <= MOST_FEW && are_few(layer, plain);
}

void mur_dsp_fc_few_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    const mur_dsp_runs runs = run_of_vector(layer);

    pack_few(layer, plain, &runs, 2 * runs.words, packed);
}

size_t mur_dsp_fc_few_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return (size_t)run_of_vector(layer).words * 8;
}
