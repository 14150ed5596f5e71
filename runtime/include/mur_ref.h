/* mur_ref.h - how the kernels in plain C want a layer's weights, and how they requantize. */
#ifndef MUR_REF_H
#define MUR_REF_H

#include "mur_nn_arith.h"

enum { MUR_REF_CHANNELS = 4 }; /* of a fully connected layer, at a time */

/* One output channel. */
typedef struct mur_ref_channel {
    int32_t bias;       /* with -in_zero * the sum of the weights in it */
    int32_t mul, shift; /* as in mur_conv_plain */
} mur_ref_channel;

/* Packed weights of mur_ref_conv_s8: mur_ref_channel [out_c], then the plain weights.
 *
 * Those of the others begin with mur_ref_head, at a multiple of 16 bytes. Of mur_ref_conv_pairs_s8
 * follow, for each group, its channels by twos, the last two filled up with a channel of zeros:
 * mur_ref_channel [2], then int8 [inputs][2], the inputs filled up to an even number. Of
 * mur_ref_depthwise_s8 and depthwise_3_s8, for each channel: mur_ref_channel, then the kernel row
 * by row, filled up to whole words. Those of fc kernels are int8 [inputs][4] for each four channels
 * (mur_fc.h). */
typedef struct mur_ref_head {
    uint32_t simple; /* MUR_REQUANT_Q31, shifts -21..-1, every sum has 31 bits */
} mur_ref_head;

static inline int32_t mur_ref_inputs(const mur_conv_s8 *layer)
{
    return layer->shape.kernel_h * layer->shape.kernel_w *
           (layer->shape.in_c / layer->shape.groups);
}

/* the same, filled up to pairs */
static inline size_t mur_ref_even_inputs(const mur_conv_s8 *layer)
{
    return ((size_t)mur_ref_inputs(layer) + 1) & ~(size_t)1;
}

/* for packing, on the host: can every sum of the channel be doubled? */
int mur_ref_is_simple(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t channel);
mur_ref_head mur_ref_head_of(const mur_conv_s8 *layer, const mur_conv_plain *plain);
mur_ref_channel mur_ref_channel_of(const mur_conv_s8 *layer, const mur_conv_plain *plain,
                                   int32_t channel);
/* Do two products of neighbouring inputs never leave 16 bits, nor have weights a zero point? */
int mur_ref_fits_pairs(const mur_conv_s8 *layer, const mur_conv_plain *plain);

/* A layer's way from sums to bytes. */
typedef struct mur_ref_output {
    const mur_output_s8 *to;
    int32_t simple;          /* see mur_ref_head */
    int32_t zero;            /* twice, and 1 */
    int32_t min, max, whole; /* whole: least and greatest are int8's */
} mur_ref_output;

/* mur_high_q31 where a has 31 bits */
static inline int32_t mur_ref_high(int32_t a, int32_t b)
{
#if MUR_SHORT_PRODUCTS
    return mur_high_q31(a, b);
#else
    return mur_high_doubled(mur_shift_left(a, 1), b);
#endif
}

/* a channel's numbers, where it is simple */
typedef struct mur_ref_scale {
    int32_t mul, right, offset; /* offset: the zero point and a half */
} mur_ref_scale;

static inline mur_ref_output mur_ref_output_of(const mur_output_s8 *to, uint32_t simple)
{
    mur_ref_output o;

    o.to = to;
    o.simple = (int32_t)simple;
    o.zero = 2 * to->zero + 1;
    o.min = to->min;
    o.max = to->max;
    o.whole = o.max - o.min == 255;
    return o;
}

static inline mur_ref_scale mur_ref_scale_of(const mur_ref_output *o, int32_t mul, int32_t shift)
{
    mur_ref_scale s;

    s.mul = mul;
    s.right = -shift;
    s.offset = mur_asr(mur_shift_left(o->zero, s.right), 1);
    return s;
}

#if defined(__thumb2__)
#define MUR_REF_SATURATES 1 /* in one instruction, to int8 */
#else
#define MUR_REF_SATURATES 0
#endif

/* an int8 */
static inline __attribute__((always_inline)) int32_t mur_ref_byte(const mur_ref_output *o,
                                                                  mur_ref_scale s, int32_t sum)
{
    int32_t x = mur_ref_high(sum, s.mul);

    x = mur_asr(x + mur_asr(x, 31) + s.offset, s.right); /* halves away from zero */
#if MUR_REF_SATURATES
    if (o->whole) {
        __asm__("ssat %0, #8, %0" : "+r"(x));
        return x;
    }
#endif
    if (x < o->min)
        x = o->min;
    if (x > o->max)
        x = o->max;
    return x;
}

/* sums of one channel to every `step`th byte */
static inline __attribute__((always_inline)) void mur_ref_finish(const mur_ref_output *output,
                                                                 const mur_ref_channel *channel,
                                                                 const int32_t *sums, int32_t count,
                                                                 int8_t *out, int32_t step)
{
    const int32_t *end = sums + count;

    if (output->simple) {
        const mur_ref_scale s = mur_ref_scale_of(output, channel->mul, channel->shift);

        const mur_ref_output to = *output; /* what is stored may not be it */

        if (MUR_REF_SATURATES && to.whole) /* asked once, not for each */
            for (; sums != end; sums++, out += step)
                *out = (int8_t)mur_ref_byte(&to, s, *sums);
        for (; sums != end; sums++, out += step)
            *out = (int8_t)mur_ref_byte(&to, s, *sums);
    } else {
        for (; sums != end; sums++, out += step)
            *out = mur_requant(*sums, channel->mul, channel->shift, output->to);
    }
}

/* The plane of a channel of a depthwise layer: all that its windows touch. Where the kernel is one
 * column, columns take the place of rows. */
typedef struct mur_ref_view {
    int32_t in_h, in_w, in_step, in_pitch; /* bytes from pixel to pixel, and from row to row */
    int32_t out_h, out_w, out_step, out_pitch;
    int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, top, left;
    int32_t rows, columns; /* of the plane, for outputs by fours */
} mur_ref_view;

static inline void mur_ref_turn(int32_t *a, int32_t *b)
{
    int32_t c = *a;

    *a = *b;
    *b = c;
}

static inline mur_ref_view mur_ref_view_of(const mur_conv_shape *s)
{
    mur_ref_view v;

    v.in_h = s->in_h, v.in_w = s->in_w, v.in_step = s->in_c, v.in_pitch = s->in_pitch;
    v.out_h = s->out_h, v.out_w = s->out_w, v.out_step = s->out_c, v.out_pitch = s->out_pitch;
    v.kernel_h = s->kernel_h, v.kernel_w = s->kernel_w;
    v.stride_h = s->stride_h, v.stride_w = s->stride_w;
    v.dilation_h = s->dilation_h, v.dilation_w = s->dilation_w;
    v.top = s->pad_top, v.left = s->pad_left;
    if (v.kernel_w == 1) {
        mur_ref_turn(&v.in_h, &v.in_w), mur_ref_turn(&v.in_step, &v.in_pitch);
        mur_ref_turn(&v.out_h, &v.out_w), mur_ref_turn(&v.out_step, &v.out_pitch);
        mur_ref_turn(&v.kernel_h, &v.kernel_w), mur_ref_turn(&v.stride_h, &v.stride_w);
        mur_ref_turn(&v.dilation_h, &v.dilation_w), mur_ref_turn(&v.top, &v.left);
    }
    v.rows = (v.out_h - 1) * v.stride_h + (v.kernel_h - 1) * v.dilation_h + 1;
    v.columns = (((v.out_w + 3) & ~3) - 1) * v.stride_w + (v.kernel_w - 1) * v.dilation_w + 1;
    return v;
}

#endif
