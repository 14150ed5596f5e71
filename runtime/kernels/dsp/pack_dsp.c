/* pack_dsp.c - weights for the kernels of this folder: their headers say how. On the host. */
#include "mur_nn_arith.h"
#include "mur_dsp_conv.h"
#include "mur_dsp_matmul.h"
#include "mur_fc.h"
#include "pack_dsp.h"

#include <string.h>

/* ---- what the arithmetic can hold ---- */

/* Trained networks have channels that say the same whatever they see, with biases or multipliers
 * beyond the kernels' range. They become a bias. */
static void make_constant(mur_dsp_view *v, int32_t y, int32_t zero)
{
    v->weights = NULL;
    v->bias = 4 * (y - zero);
    v->mul = 1 << 30; /* a quarter, together with the shift */
    v->shift = -1;
    v->least = v->most = v->bias;
}

mur_dsp_view mur_dsp_plain_view(const mur_conv_s8 *layer, const mur_conv_plain *plain,
                                int32_t channel)
{
    mur_dsp_view v;
    int64_t bias = plain->bias ? plain->bias[channel] : 0;

    v.count =
        layer->shape.kernel_h * layer->shape.kernel_w * (layer->shape.in_c / layer->shape.groups);
    v.weights = plain->weights + channel * v.count;
    v.mul = plain->mul[channel];
    v.shift = plain->shift[channel];
    for (int32_t k = 0; k < v.count; k++)
        bias -= layer->in_zero * (v.weights[k] - layer->weight_zero);
    v.bias = (int32_t)bias;
    v.least = v.most = bias;
    for (int32_t k = 0; k < v.count; k++) {
        int32_t w = v.weights[k] - layer->weight_zero;

        v.least += w < 0 ? 127 * w : -128 * w;
        v.most += w < 0 ? -128 * w : 127 * w;
    }
    return v;
}

mur_dsp_view mur_dsp_view_of(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t channel)
{
    mur_dsp_view v = mur_dsp_plain_view(layer, plain, channel);
    int8_t y;

    if (layer->output.kind != MUR_REQUANT_Q31 || v.shift > 0 || v.least < INT32_MIN ||
        v.most > INT32_MAX)
        return v;
    y = mur_requant((int32_t)v.least, v.mul, v.shift, &layer->output);
    if (y == mur_requant((int32_t)v.most, v.mul, v.shift, &layer->output))
        make_constant(&v, y, layer->output.zero);
    return v;
}

/* a multiplier below 1/2, a sum within `bits` of two's complement */
static int is_simple(const mur_dsp_view *v, int32_t bits)
{
    int64_t limit = (int64_t)1 << (bits - 1);

    return v->mul >= 1 << 30 && v->shift <= -1 && v->least >= -limit && v->most < limit;
}

int mur_dsp_are_simple(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t bits,
                       int32_t shift)
{
    if (layer->output.kind != MUR_REQUANT_Q31 || layer->weight_zero != 0)
        return 0;
    for (int32_t c = 0; c < layer->shape.out_c; c++) {
        mur_dsp_view v = mur_dsp_view_of(layer, plain, c);

        if (!is_simple(&v, bits) || -v.shift > shift)
            return 0;
    }
    return 1;
}

/* ---- pairs of channels ---- */

/* Channel c, and the next of its group, or nothing. Returns how many that is. */
static int32_t take_pair(const mur_conv_s8 *layer, const mur_conv_plain *plain,
                         mur_dsp_viewer *look, int32_t c, mur_dsp_view *a, mur_dsp_view *b)
{
    int32_t channels = layer->shape.out_c / layer->shape.groups;

    *a = *b = look(layer, plain, c);
    if (c % channels + 1 < channels) {
        *b = look(layer, plain, c + 1);
        return 2;
    }
    make_constant(b, 0, 0);
    return 1;
}

/* is there a halfword for each two weights? */
static int fits_halfwords(const mur_dsp_view *a, const mur_dsp_view *b)
{
    for (int32_t k = 0; a->weights && b->weights && k < a->count; k++)
        if (b->weights[k] == -128 && a->weights[k] < 0)
            return 0;
    return 1;
}

/* do a and b fit the form of pairs? */
static int is_pair(const mur_dsp_view *a, const mur_dsp_view *b, int32_t bits)
{
    return is_simple(a, bits) && is_simple(b, 24) && fits_halfwords(a, b);
}

/* ---- conv ---- */

int mur_dsp_conv_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    if (layer->output.kind != MUR_REQUANT_Q31 || layer->weight_zero != 0)
        return 0;
    for (int32_t c = 0; c < layer->shape.out_c;) {
        mur_dsp_view a, b;

        c += take_pair(layer, plain, mur_dsp_view_of, c, &a, &b);
        if (!is_pair(&a, &b, 32))
            return 0;
    }
    return 1;
}

size_t mur_dsp_conv_s8_packed_bytes(const mur_conv_s8 *layer)
{
    mur_dsp_runs runs = mur_dsp_runs_of(layer);
    int32_t pairs = (layer->shape.out_c / layer->shape.groups + 1) / 2 * layer->shape.groups;

    return (size_t)pairs * (size_t)mur_dsp_pair_words(&runs) * 4;
}

size_t mur_dsp_conv_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return window_bytes(layer, 1);
}

/* the weights of a and b for inputs i and i + 2 */
static uint32_t weights_word(const mur_dsp_view *a, const mur_dsp_view *b, const mur_dsp_runs *runs,
                             int32_t i)
{
    int32_t low = 256 * weight_at(b, runs, i, 0) + weight_at(a, runs, i, 0);
    int32_t high = 256 * weight_at(b, runs, i + 2, 0) + weight_at(a, runs, i + 2, 0);

    return (uint16_t)low | (uint32_t)(uint16_t)high << 16;
}

/* biases and weights of a pair, a word each `step`; returns their end */
static uint32_t *pack_pair(const mur_dsp_view *a, const mur_dsp_view *b, const mur_dsp_runs *runs,
                           int32_t step, uint32_t *out)
{
    *out = (uint32_t)a->bias;
    out += step;
    *out = 256 * (uint32_t)b->bias + (uint32_t)a->bias;
    out += step;
    for (int32_t i = 0; i < 2 * runs->words; i++, out += step)
        *out = weights_word(a, b, runs, 4 * (i >> 1) + (i & 1));
    return out;
}

void mur_dsp_conv_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    mur_dsp_runs runs = mur_dsp_runs_of(layer);
    uint32_t *out = packed;

    for (int32_t c = 0; c < layer->shape.out_c;) {
        mur_dsp_view a, b;

        c += take_pair(layer, plain, mur_dsp_view_of, c, &a, &b);
        out = pack_pair(&a, &b, &runs, 1, out);
        *out++ = 2 * (uint32_t)a.mul;
        *out++ = (uint32_t)-a.shift | (uint32_t)-b.shift << 8;
        *out++ = 2 * (uint32_t)b.mul;
    }
}

/* ---- conv, four channels at a time ---- */

/* doubled sums of 32 bits */
static int are_fours(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    int32_t channels = layer->shape.out_c / layer->shape.groups;

    if (layer->output.kind != MUR_REQUANT_Q31 || layer->weight_zero != 0)
        return 0;
    for (int32_t first = 0; first < layer->shape.out_c; first += channels)
        for (int32_t i = 0; i < channels; i += 2) {
            int32_t c = four_at(layer, first + (i & ~3)) + (i & 2);
            mur_dsp_view a = mur_dsp_view_of(layer, plain, c),
                         b = mur_dsp_view_of(layer, plain, c + 1);

            if (!is_pair(&a, &b, 31) || -a.shift > 22 || -b.shift > 22)
                return 0;
        }
    return 1;
}

/* Groups are not filled up by more than a channel; a single vector, which has scratch for four
 * here, is short. Channels filled up to fours, at 15 cycles for what takes 16 in pairs, are no more
 * work than pairs, and rows have two pixels. */
int mur_single_conv_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    int32_t channels = layer->shape.out_c / layer->shape.groups, last = channels & 3;

    return channels > 3 && (layer->shape.groups == 1 || last == 0 || last == 3) &&
           15 * ((channels + 3) & ~3) <= 16 * ((channels + 1) & ~1) &&
           (mur_dsp_is_vector(layer) ? layer->shape.in_c <= 128 : layer->shape.out_w > 1) &&
           are_fours(layer, plain);
}

size_t mur_single_conv_s8_packed_bytes(const mur_conv_s8 *layer)
{
    mur_dsp_runs runs = mur_dsp_runs_of(layer);

    return (size_t)quads_of(layer) * (size_t)mur_dsp_quad_words(runs.words) * 4;
}

size_t mur_single_conv_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return window_bytes(layer, 0);
}

/* four channels; returns their end */
static uint32_t *pack_four(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t c,
                           uint32_t *out)
{
    mur_dsp_runs runs = mur_dsp_runs_of(layer);
    uint32_t shifts = 0;

    for (int32_t pair = 0; pair < 2; pair++, c += 2) {
        mur_dsp_view a = mur_dsp_view_of(layer, plain, c), b = mur_dsp_view_of(layer, plain, c + 1);
        uint32_t *to = pack_pair(&a, &b, &runs, 2, out + pair);

        to[0] = (uint32_t)a.mul;
        to[2] = (uint32_t)b.mul;
        shifts |= ((uint32_t)(-a.shift - 1) | (uint32_t)(-b.shift - 1) << 8) << 16 * pair;
    }
    out += mur_dsp_quad_words(runs.words);
    out[-1] = shifts;
    return out;
}

void mur_single_conv_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    int32_t channels = layer->shape.out_c / layer->shape.groups;
    uint32_t *out = packed;

    for (int32_t first = 0; first < layer->shape.out_c; first += channels)
        for (int32_t c = 0; c < channels; c += 4)
            out = pack_four(layer, plain, four_at(layer, first + c), out);
}

/* ---- narrow ---- */

/* A narrow kernel has the weights of the other, and padded rows in place of a run's bytes. For
 * which layers that is worth it is for the compiler to say. */
enum { MOST_PADDED = 640 };

#define NARROW(isa, name, other) \
    int mur_##isa##_##name##_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain) \
    { \
        return mur_dsp_padded_bytes(&layer->shape) <= MOST_PADDED && \
               mur_##isa##_##other##_fits(layer, plain); \
    } \
    MUR_CONV_WEIGHTS_AS(isa, name, other) \
    size_t mur_##isa##_##name##_scratch_bytes(const mur_conv_s8 *layer) \
    { \
        mur_dsp_runs runs = mur_dsp_runs_of(layer); \
\
        return mur_dsp_widened_bytes(layer, &runs, 0, mur_dsp_fours(layer, &runs, 0)) + \
               mur_dsp_padded_bytes(&layer->shape); \
    }

NARROW(dsp, conv_few_narrow_s8, conv_few_s8)
NARROW(single, conv_narrow_s8, conv_s8)

/* ---- conv, wide ---- */

int mur_dsp_conv_wide_s8_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    for (int32_t c = 0; c < layer->shape.out_c; c++) {
        mur_dsp_view v = mur_dsp_plain_view(layer, plain, c);

        if (v.least < INT32_MIN || v.most > INT32_MAX)
            return 0;
    }
    return 1;
}

size_t mur_dsp_conv_wide_s8_packed_bytes(const mur_conv_s8 *layer)
{
    mur_dsp_runs runs = mur_dsp_runs_of(layer);
    int32_t pairs = (layer->shape.out_c / layer->shape.groups + 1) / 2 * layer->shape.groups;

    return (size_t)layer->shape.out_c * sizeof(mur_dsp_wide_channel) +
           (size_t)pairs * (size_t)runs.words * 8;
}

/* weights of a and b for inputs i and i + 2, one per byte; `zero` is their zero point */
static uint32_t bytes_word(const mur_dsp_view *a, const mur_dsp_view *b, const mur_dsp_runs *runs,
                           int32_t i, int32_t zero)
{
    return (uint8_t)weight_at(a, runs, i, zero) |
           (uint32_t)(uint8_t)weight_at(b, runs, i, zero) << 8 |
           (uint32_t)(uint8_t)weight_at(a, runs, i + 2, zero) << 16 |
           (uint32_t)(uint8_t)weight_at(b, runs, i + 2, zero) << 24;
}

void mur_dsp_conv_wide_s8_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, void *packed)
{
    mur_dsp_runs runs = mur_dsp_runs_of(layer);
    mur_dsp_wide_channel *channel = packed;
    uint32_t *out = (uint32_t *)(channel + layer->shape.out_c);

    for (int32_t c = 0; c < layer->shape.out_c;) {
        mur_dsp_view pair[2];
        int32_t count = take_pair(layer, plain, mur_dsp_plain_view, c, &pair[0], &pair[1]);

        c += count;
        for (int32_t i = 0; i < count; i++, channel++) {
            channel->bias = pair[i].bias;
            channel->mul = pair[i].mul;
            channel->shift = pair[i].shift;
        }
        for (int32_t i = 0; i < runs.words; i++) {
            *out++ = bytes_word(&pair[0], &pair[1], &runs, 4 * i, layer->weight_zero);
            *out++ = bytes_word(&pair[0], &pair[1], &runs, 4 * i + 1, layer->weight_zero);
        }
    }
}

size_t mur_dsp_conv_wide_s8_scratch_bytes(const mur_conv_s8 *layer)
{
    return mur_dsp_conv_s8_scratch_bytes(layer);
}

/* ---- fully connected ---- */

/* sums of any number of inputs: mur_dsp_fc.c keeps those of b within 24 bits */
static int fc_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain)
{
    for (int32_t c = 0; c < layer->shape.out_c;) {
        mur_dsp_view a, b;

        c += take_pair(layer, plain, mur_dsp_plain_view, c, &a, &b);
        if (!is_simple(&a, 32) || !is_simple(&b, 32) || !fits_halfwords(&a, &b))
            return 0;
    }
    return 1;
}

static size_t fc_weight_bytes(const mur_conv_s8 *layer)
{
    size_t words = ((size_t)layer->shape.in_c + 3) / 4;
    size_t pairs = ((size_t)layer->shape.out_c + 1) / 2;

    return words * pairs * 8;
}

/* The weights of a and b for the inputs at k and k + 2. If inputs are no fours, the first word has
 * those that are left, and weights of 0. */
static uint32_t fc_word(const mur_dsp_view *a, const mur_dsp_view *b, const mur_dsp_runs *runs,
                        int32_t k)
{
    int32_t left = runs->bytes & 3;
    uint32_t word;

    if (left == 0 || k >= 4)
        return weights_word(a, b, runs, left == 0 ? k : k - 4 + left);
    word = weights_word(a, b, runs, k);
    return k >= left ? 0 : k + 2 >= left ? word & 0xffff : word;
}

static void fc_pack_weights(const mur_conv_s8 *layer, const mur_conv_plain *plain, uint8_t *to)
{
    const mur_dsp_runs runs = run_of_vector(layer);
    uint32_t *out = (uint32_t *)(void *)to;

    for (int32_t c = 0; c < layer->shape.out_c; c += 4) {
        int32_t pairs = layer->shape.out_c - c > 2 ? 2 : 1;
        mur_dsp_view a[2], b[2];

        for (int32_t i = 0; i < pairs; i++)
            (void)take_pair(layer, plain, mur_dsp_plain_view, c + 2 * i, &a[i], &b[i]);
        for (int32_t k = 0; k < runs.words; k++)
            for (int32_t i = 0; i < pairs; i++) {
                *out++ = fc_word(&a[i], &b[i], &runs, 4 * k);
                *out++ = fc_word(&a[i], &b[i], &runs, 4 * k + 1);
            }
    }
}

MUR_FC_KERNEL(dsp, fc_s8, MUR_FC_ONE)
MUR_FC_KERNEL(dsp, fc_coded_s8, MUR_FC_CODED)
MUR_FC_KERNEL(dsp, fc_each_s8, MUR_FC_EACH)

/* ---- matmul ---- */

size_t mur_dsp_matmul_s8_scratch_bytes(const mur_matmul_s8 *layer)
{
    return (size_t)mur_dsp_matmul_words(layer) *
           (size_t)(mur_dsp_matmul_pairs(layer) + (layer->rows == 1 ? 1 : 4)) * 4;
}
