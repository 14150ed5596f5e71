/* mur_dsp_depthwise.h - how the depthwise kernels of this folder want their weights, and their
 * scratch. */
#ifndef MUR_DSP_DEPTHWISE_H
#define MUR_DSP_DEPTHWISE_H

#include "mur_dsp_scale.h"
#include "mur_nn_arith.h"

/* Packed weights: for each channel MUR_DSP_PLANE_WORDS words, its bias (with -in_zero * the sum of
 * the weights) and twice the multiplier modulo 2^32; then for each channel a byte, the shift to the
 * right, at least 1, and the kernel row by row, without gaps. Wide: MUR_DSP_PLANE_WIDE_WORDS words,
 * bias, multiplier and shift as in mur_conv_plain, then kernels alone. */
enum { MUR_DSP_PLANE_WORDS = 2, MUR_DSP_PLANE_WIDE_WORDS = 3 };

/* bytes ahead of a channel's kernel */
static inline int32_t mur_dsp_plane_lead(int32_t words)
{
    return words == MUR_DSP_PLANE_WORDS;
}

/* The int16 plane of a channel: what the windows of an even number of output columns touch. */
static inline int32_t mur_dsp_plane_columns(const mur_conv_s8 *layer)
{
    int32_t last = ((layer->shape.out_w + 1) & ~1) - 2; /* the last pair of outputs */

    return last * layer->shape.stride_w + layer->shape.kernel_w + 2 * layer->shape.stride_w - 1;
}

static inline int32_t mur_dsp_plane_rows(const mur_conv_s8 *layer)
{
    return (layer->shape.out_h - 1) * layer->shape.stride_h + layer->shape.kernel_h;
}

/* words of the weights as pairs of int16, ahead of the plane in scratch */
enum { MUR_DSP_PLANE_WEIGHTS = 48 };

/* behind the plane: a row of sums, of mur_dsp_depthwise_wide_s8 */
static inline int32_t *mur_dsp_plane_sums(const mur_conv_s8 *layer, uint32_t *scratch)
{
    return (int32_t *)(scratch + MUR_DSP_PLANE_WEIGHTS +
                       mur_dsp_plane_rows(layer) * mur_dsp_plane_columns(layer) / 2);
}

/* mur_dsp_depthwise_pairs_s8's packed weights are of four channels each, those behind the fours
 * together with channels before them, or zeros if there are none: mur_dsp_quad_head, then the
 * kernel row by row as int8 [taps][4]. */

typedef struct mur_dsp_quad_head {
    int32_t bias[4]; /* with -in_zero * the sum of the weights, doubled */
    struct {
        int32_t mul, shift; /* to the right, less 1: 0 to 21 */
    } scale[4];
} mur_dsp_quad_head;

static inline int32_t mur_dsp_quad_bytes(const mur_conv_shape *s)
{
    return (int32_t)sizeof(mur_dsp_quad_head) + 4 * s->kernel_h * s->kernel_w;
}

/* the input of a channel of outputs, of which each input has so many; the first for one before it
 */
static inline int32_t mur_dsp_lane(int32_t channel, int32_t times)
{
    return channel > 0 ? channel / times : 0;
}

/* mur_dsp_depthwise_taps_s8 has them as a list if all lists are no more than so many bytes: four
 * biases, doubled; of an odd number of taps the first one's weights, of channels 0 and 2 and of 1
 * and 3, doubled, as halves; of pairs of the others the weights of each channel, as those; four
 * mur_dsp_tap_scale. */
enum { MUR_DSP_TAPS_LISTS = 2048 };

/* words of a list */
static inline int32_t mur_dsp_taps_words(const mur_conv_shape *s)
{
    return 16 + 2 * s->kernel_h * s->kernel_w;
}

static inline int32_t mur_dsp_taps_listed(const mur_conv_shape *s)
{
    return (s->out_c + 3) / 4 * mur_dsp_taps_words(s) * 4 <= MUR_DSP_TAPS_LISTS;
}

/* bytes of four channels' packed weights */
static inline int32_t mur_dsp_taps_four_bytes(const mur_conv_shape *s)
{
    return mur_dsp_taps_listed(s) ? 4 * mur_dsp_taps_words(s) : mur_dsp_quad_bytes(s);
}

/* How many words of scratch say where taps lie, of three pairs each: of taps in pairs behind the
 * first, or the first pair, but for so many as mur_dsp_taps has. */
enum { MUR_DSP_TAPS_NEAR = 10 };

static inline int32_t mur_dsp_taps_far(const mur_conv_shape *s)
{
    int32_t places = (s->kernel_h * s->kernel_w - 1) & ~1;

    return places > MUR_DSP_TAPS_NEAR ? (places - MUR_DSP_TAPS_NEAR + 5) / 6 * 6 : 0;
}

/* doubled weights of four channels, of a tap as bytes a and of another as b */
static inline void mur_dsp_double_pair(uint32_t a, uint32_t b, uint32_t *to)
{
    uint32_t low = mur_halves(a, b), high = mur_upper_halves(a, b);

    to[0] = mur_sxtab16(mur_sxtb16(low), low);
    to[1] = mur_sxtab16_odd(mur_sxtb16_odd(low), low);
    to[2] = mur_sxtab16(mur_sxtb16(high), high);
    to[3] = mur_sxtab16_odd(mur_sxtb16_odd(high), high);
}

/* Every how many rows, or columns, of the image the plane of four channels has: it has none that no
 * window touches. */
static inline int32_t mur_dsp_taps_every(int32_t kernel, int32_t stride, int32_t pad)
{
    return kernel == 1 && pad == 0 ? stride : 1;
}

static inline int32_t mur_dsp_taps_every_row(const mur_conv_shape *s)
{
    return mur_dsp_taps_every(s->kernel_h, s->stride_h, s->pad_top);
}

static inline int32_t mur_dsp_taps_every_column(const mur_conv_shape *s)
{
    return mur_dsp_taps_every(s->kernel_w, s->stride_w, s->pad_left);
}

/* The plane: all that windows touch, a word a pixel. */
static inline int32_t mur_dsp_taps_rows(const mur_conv_shape *s)
{
    return (s->out_h - 1) * (s->stride_h / mur_dsp_taps_every_row(s)) +
           (s->kernel_h - 1) * s->dilation_h + 1;
}

static inline int32_t mur_dsp_taps_columns(const mur_conv_shape *s)
{
    return (s->out_w - 1) * (s->stride_w / mur_dsp_taps_every_column(s)) +
           (s->kernel_w - 1) * s->dilation_w + 1;
}

/* mur_dsp_depthwise_pairs_s8 takes taps of a layer in pairs across its lines of outputs, which are
 * rows or columns. */

typedef struct mur_dsp_side {
    int32_t in, out, kernel, stride, dilation, pad;
} mur_dsp_side;

static inline mur_dsp_side mur_dsp_side_rows(const mur_conv_shape *s)
{
    return (mur_dsp_side){ s->in_h, s->out_h, s->kernel_h, s->stride_h, s->dilation_h, s->pad_top };
}

static inline mur_dsp_side mur_dsp_side_columns(const mur_conv_shape *s)
{
    return (
        mur_dsp_side){ s->in_w, s->out_w, s->kernel_w, s->stride_w, s->dilation_w, s->pad_left };
}

/* The plane's elements are four words, of each channel the inputs of a pair of taps. A line has
 * `phases` times `length` of them: windows that lie side by side are in one phase. */
typedef struct mur_dsp_pairs {
    mur_dsp_side along, across;
    int32_t is_down; /* are lines rows? */
    int32_t steps;   /* pairs of taps across */
    int32_t every;   /* which lines of the image begin a pair that windows touch */
    int32_t grain;   /* the same along a line */
    int32_t phases, length, lines;
} mur_dsp_pairs;

/* What a pair of taps adds to a sum: weights of four channels, doubled, as halves; and bytes from
 * it to the next pair, 1 behind the last. */
typedef struct mur_dsp_tap_pair {
    uint32_t w[4];
    int32_t step;
} mur_dsp_tap_pair;

/* the greatest number that divides both */
static inline int32_t mur_dsp_divisor(int32_t a, int32_t b)
{
    while (b != 0) {
        int32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

static inline mur_dsp_pairs mur_dsp_pairs_along(const mur_conv_shape *s, int32_t is_down)
{
    const mur_dsp_side rows = mur_dsp_side_rows(s), columns = mur_dsp_side_columns(s);
    mur_dsp_pairs p = {
        is_down ? columns : rows, is_down ? rows : columns, is_down, 0, 0, 0, 0, 0, 0
    };
    const mur_dsp_side *x = &p.along, *y = &p.across;

    p.steps = (y->kernel + 1) >> 1;
    p.every = p.steps > 1 ? mur_dsp_divisor(y->stride, 2 * y->dilation) : y->stride;
    p.lines = ((y->out - 1) * y->stride + (p.steps - 1) * 2 * y->dilation) / p.every + 1;
    p.grain = x->kernel > 1 ? mur_dsp_divisor(x->stride, x->dilation) : x->stride;
    p.phases = x->stride / p.grain;
    p.length = (x->out > 1 ? x->out : 2) + (x->kernel - 1) * x->dilation / p.grain / p.phases;
    return p;
}

static inline int64_t mur_dsp_pairs_elements(const mur_dsp_pairs *p)
{
    return (int64_t)p->lines * p->phases * p->length;
}

/* those that are not the border's, at most */
static inline int64_t mur_dsp_pairs_copied(const mur_dsp_pairs *p)
{
    int32_t lines = (p->across.in - 1) / p->every + 1, line = (p->along.in - 1) / p->grain + 1;

    return (int64_t)(lines < p->lines ? lines : p->lines) *
           (line < p->phases * p->length ? line : p->phases * p->length);
}

/* about the instructions of four channels, of any layer that is asked about */
static inline int64_t mur_dsp_pairs_cost(const mur_dsp_pairs *p)
{
    int32_t taps = p->steps * p->along.kernel;

    return (int64_t)(57 + 18 * taps) * p->across.out * ((p->along.out + 1) >> 1) +
           13 * mur_dsp_pairs_copied(p) + 150 * p->phases;
}

static inline mur_dsp_pairs mur_dsp_pairs_of(const mur_conv_shape *s)
{
    mur_dsp_pairs down = mur_dsp_pairs_along(s, 1), right = mur_dsp_pairs_along(s, 0);

    /* modulo 2^32, which layers in a core's memory do not reach */
    return (uint32_t)mur_dsp_pairs_cost(&down) <= (uint32_t)mur_dsp_pairs_cost(&right) ? down
                                                                                       : right;
}

/* do windows touch what is outside the image? */
static inline int32_t mur_dsp_has_border(const mur_dsp_side *side)
{
    return side->pad > 0 ||
           (side->out - 1) * side->stride + (side->kernel - 1) * side->dilation >= side->in;
}

/* does mur_dsp_depthwise_taps_s8 read windows where they lie? */
static inline int32_t mur_dsp_taps_in_place(const mur_conv_shape *s)
{
    const mur_dsp_side rows = mur_dsp_side_rows(s), columns = mur_dsp_side_columns(s);

    return s->out_c == s->in_c && s->in_c > 3 && !mur_dsp_has_border(&rows) &&
           !mur_dsp_has_border(&columns);
}

/* for the output's zero point */
static inline void mur_dsp_set_scales(const mur_dsp_quad_head *head, int32_t zero,
                                      mur_dsp_tap_scale *scales)
{
#pragma GCC unroll 4
    for (int32_t i = 0; i < 4; i++) {
        scales[i].mul = head->scale[i].mul;
        scales[i].add = (uint32_t)(2 * zero + 1) << head->scale[i].shift;
        scales[i].shift = head->scale[i].shift;
    }
}

/* outputs to the layer's range, where it is not int8's */
static inline void mur_dsp_clamp(const mur_conv_s8 *layer, int8_t *out)
{
    if (layer->output.min == INT8_MIN && layer->output.max == INT8_MAX)
        return;
    for (int32_t y = 0; y < layer->shape.out_h; y++, out += layer->shape.out_pitch)
        for (int32_t i = 0; i < layer->shape.out_w * layer->shape.out_c; i++)
            out[i] = (int8_t)mur_clamp(out[i], layer->output.min, layer->output.max);
}

#endif
