/* mur_mve.h - kernels for Arm's vector extension (Cortex-M55), and what its instructions do, in C,
 * elsewhere; how the kernels of this folder want a layer's weights. */
#ifndef MUR_MVE_H
#define MUR_MVE_H

#include "mur_nn_arith.h"

#if defined(__ARM_FEATURE_MVE)
#define MUR_HAVE_MVE 1
#include <arm_mve.h>
#else
#define MUR_HAVE_MVE 0
#endif

enum { MUR_MVE_BYTES = 16 }; /* of a vector */
enum { MUR_MVE_ROWS = 16 };  /* most rows of a depthwise kernel */

/* Packed weights of mur_mve_conv_s8: a mur_mve_channel for each channel, then int8 [channels]
 * [inputs], as in mur_conv_plain; channels of zeros fill up a multiple of four. 16 bytes at the
 * very end may be read.
 *
 * Of mur_mve_conv_any_s8: the channels of each group filled up so, then the weights of all groups.
 *
 * Of fc kernels: the channels by fours, the last four filled up with channels of zeros; of each
 * four for every 16 inputs the weights of the four one after another, of 16 bytes each; the last
 * inputs likewise, of as many bytes as there are. 16 bytes at the very end may be read.
 *
 * Of mur_mve_depthwise_s8: the channels by eights, the last filled up with zeros; of each eight two
 * mur_mve_four, its channels 0, 2, 4, 6 and 1, 3, 5, 7, then int8 [taps][8]. */
typedef struct mur_mve_channel {
    int32_t bias;       /* with -in_zero * the sum of the weights */
    int32_t mul, shift; /* as in mur_conv_plain */
} mur_mve_channel;

typedef struct mur_mve_four {
    int32_t bias[4], mul[4], shift[4];
} mur_mve_four;

static inline int32_t mur_mve_inputs(const mur_conv_s8 *layer)
{
    return layer->shape.kernel_h * layer->shape.kernel_w * layer->shape.in_c / layer->shape.groups;
}

/* channels of a group, filled up */
static inline int32_t mur_mve_channels(const mur_conv_s8 *layer)
{
    return (layer->shape.out_c / layer->shape.groups + 3) & ~3;
}

/* bytes of whole vectors that hold so many inputs */
static inline int32_t mur_mve_padded(int32_t inputs)
{
    return (inputs + MUR_MVE_BYTES - 1) & ~(MUR_MVE_BYTES - 1);
}

/* bytes of a row, and of all rows, that a depthwise layer's windows of one output row touch */
static inline int32_t mur_mve_row_bytes(const mur_conv_s8 *layer)
{
    return ((layer->shape.out_w - 1) * layer->shape.stride_w + layer->shape.kernel_w) *
           layer->shape.in_c;
}

/* May a depthwise layer read its rows where they lie? Each output row has one of its own then,
 * without borders, and lies no further than what is still read of it; eight channels are never
 * beyond the last. */
static inline int32_t mur_mve_rows_in_place(const mur_conv_s8 *layer)
{
    const mur_conv_shape *s = &layer->shape;

    return s->kernel_h == 1 && s->pad_top == 0 && s->pad_left == 0 && s->in_c % 8 == 0 &&
           (s->out_h - 1) * s->stride_h < s->in_h &&
           (s->out_w - 1) * s->stride_w + s->kernel_w <= s->in_w;
}

#if MUR_HAVE_MVE

static inline void mur_mve_copy(int8_t *to, const int8_t *from, int32_t count)
{
    for (; count > 0; count -= MUR_MVE_BYTES, to += MUR_MVE_BYTES, from += MUR_MVE_BYTES) {
        mve_pred16_t inside = vctp8q((uint32_t)count);

        vstrbq_p_s8(to, vldrbq_z_s8(from, inside), inside);
    }
}

static inline void mur_mve_fill(int8_t *to, int8_t value, int32_t count)
{
    int8x16_t values = vdupq_n_s8(value);

    for (; count > 0; count -= MUR_MVE_BYTES, to += MUR_MVE_BYTES)
        vstrbq_p_s8(to, values, vctp8q((uint32_t)count));
}

/* x * 2^shift, shift below 1, halves away from zero: VRSHL rounds halves up, which it is for x - 1
 */
static inline int32x4_t mur_mve_round(int32x4_t x, int32x4_t shift)
{
    return vrshlq_s32(vaddq_s32(x, vshrq_n_s32(vandq_s32(x, shift), 31)), shift);
}

/* MUR_REQUANT_Q31 of four sums, each by a multiplier and a shift below 1 of its own */
static inline int32x4_t mur_mve_scale(int32x4_t sums, int32x4_t mul, int32x4_t shift)
{
    return mur_mve_round(vqrdmulhq_s32(sums, mul), shift);
}

/* what all channels share, in registers */
typedef struct mur_mve_clamp {
    int32_t zero;
    int32x4_t min, max;
} mur_mve_clamp;

static inline mur_mve_clamp mur_mve_clamp_of(const mur_output_s8 *to)
{
    mur_mve_clamp clamp = { to->zero, vdupq_n_s32(to->min), vdupq_n_s32(to->max) };

    return clamp;
}

static inline int32x4_t mur_mve_output(int32x4_t sums, const mur_mve_four *four,
                                       const mur_mve_clamp *clamp)
{
    int32x4_t x = mur_mve_scale(sums, vldrwq_s32(four->mul), vldrwq_s32(four->shift));

    return vminq_s32(vmaxq_s32(vaddq_n_s32(x, clamp->zero), clamp->min), clamp->max);
}

#else

#include <string.h>

static inline void mur_mve_copy(int8_t *to, const int8_t *from, int32_t count)
{
    if (count > 0)
        memcpy(to, from, (size_t)count);
}

static inline void mur_mve_fill(int8_t *to, int8_t value, int32_t count)
{
    if (count > 0)
        memset(to, value, (size_t)count);
}

static inline int8_t mur_mve_output(int32_t sum, const mur_mve_four *four, int32_t i,
                                    const mur_output_s8 *to)
{
    return mur_requant(sum, four->mul[i], four->shift[i], to);
}

#endif

#endif
