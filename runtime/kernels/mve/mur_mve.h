/* mur_mve.h - kernels for Arm's vector extension (Cortex-M55), and what its instructions do, in C,
 * elsewhere; how the kernels of this folder want a layer's weights. */
#ifndef MUR_MVE_H
#define MUR_MVE_H

#include "mur_nn_arith.h"

#if defined(__ARM_FEATURE_MVE)
#define MUR_HAVE_MVE 1
#include <arm_mve.h>
/* of functions with asm that leaves fewer registers than unoptimized code wants */
#define MUR_MVE_OPTIMIZED __attribute__((noinline, optimize("O2")))
#else
#define MUR_HAVE_MVE 0
#define MUR_MVE_OPTIMIZED inline
#endif

enum { MUR_MVE_BYTES = 16 }; /* of a vector */
enum {
    MUR_MVE_PLANES = 8,   /* channels at a time of a depthwise layer */
    MUR_MVE_SLACK = 16,   /* rows by which its planes slide before they are moved */
    MUR_MVE_TOGETHER = 32 /* most outputs of a channel computed together, if of several rows */
};

/* Packed weights of mur_mve_conv_s8: int8 [channels][inputs], as in mur_conv_plain, then a
 * mur_mve_four for every four channels, which vectors of weights may reach into; channels of zeros
 * fill up a multiple of four.
 *
 * Of mur_mve_conv_any_s8: the channels of each group filled up so, weights of all groups first.
 *
 * Of fc kernels: the channels by fours, the last four filled up with channels of zeros; of each
 * four for every 16 inputs the weights of the four one after another, of 16 bytes each; the last
 * inputs likewise, of as many bytes as there are. 16 bytes at the very end may be read.
 *
 * Of mur_mve_depthwise_s8: a mur_mve_channel for each channel, then for each channel its weights,
 * int8 [kernel_w][kernel_h], and its shift, a byte. */
typedef struct mur_mve_channel {
    int32_t bias; /* with -in_zero * the sum of the weights */
    int32_t mul;  /* as in mur_conv_plain */
} mur_mve_channel;

enum { MUR_MVE_FOUR = 4 };
typedef struct mur_mve_four {
    int8_t shift[MUR_MVE_FOUR]; /* as in mur_conv_plain */
    mur_mve_channel channel[MUR_MVE_FOUR];
} mur_mve_four;

/* Of mur_mve_conv_apart_s8: of each eight channels their head, even ones first, then the weights of
 * each tap; channels of zeros fill up a multiple of eight. */
enum { MUR_MVE_EIGHT = 8 };
typedef struct mur_mve_eight {
    int32_t bias[2][4], mul[2][4]; /* as in mur_conv_plain */
    int8_t shift[2][4];
} mur_mve_eight;

static inline int32_t mur_mve_eight_bytes(const mur_conv_shape *s)
{
    return (int32_t)sizeof(mur_mve_eight) + MUR_MVE_EIGHT * s->kernel_h * s->kernel_w;
}

/* A channel of a depthwise layer's short windows, in scratch; the order is the assembly's. */
typedef struct mur_mve_short {
    int8_t w[MUR_MVE_BYTES]; /* as the window lies */
    mur_mve_channel channel;
    int32_t shift, is_shifted; /* 1 if it is not 0 */
} mur_mve_short;

static inline int32_t mur_mve_inputs(const mur_conv_s8 *layer)
{
    return layer->shape.kernel_h * layer->shape.kernel_w * layer->shape.in_c / layer->shape.groups;
}

/* fours of so many channels */
static inline int32_t mur_mve_count(int32_t channels)
{
    return (int32_t)(((uint32_t)channels + MUR_MVE_FOUR - 1) / MUR_MVE_FOUR);
}

/* bytes of whole vectors that hold so many inputs */
static inline int32_t mur_mve_padded(int32_t inputs)
{
    return (inputs + MUR_MVE_BYTES - 1) & ~(MUR_MVE_BYTES - 1);
}

/* How a depthwise layer is computed. */
typedef struct mur_mve_line {
    const mur_conv_shape *s;
    int32_t multiplier;
    int32_t width;    /* pixels of a row that windows touch */
    int32_t together; /* rows of outputs computed together */
    int32_t rows;     /* bytes of a column: the rows that they touch */
    int32_t plane;    /* bytes of a channel's plane */
    int32_t vectors;  /* of a window: 1 (and an output a channel), 2 or 4; else 0 */
} mur_mve_line;

static inline int32_t mur_mve_planes(const mur_conv_shape *s)
{
    return s->in_c < MUR_MVE_PLANES ? s->in_c : MUR_MVE_PLANES;
}

static inline mur_mve_line mur_mve_line_of(const mur_conv_shape *s)
{
    mur_mve_line line;

    line.s = s;
    line.multiplier = s->out_c / s->in_c;
    line.width = (s->out_w - 1) * s->stride_w + s->kernel_w;
    line.together = 1;
    line.rows = s->kernel_h;
    line.vectors = (s->kernel_h * s->kernel_w + MUR_MVE_BYTES - 1) / MUR_MVE_BYTES;
    if ((line.vectors == 1 && line.multiplier > 1) || line.vectors == 3 || line.vectors > 4)
        line.vectors = 0;
    if (line.vectors == 1 && s->in_c % 4 == 0)
        while (line.together < s->out_h && (line.together + 1) * s->out_w <= MUR_MVE_TOGETHER &&
               (line.rows + s->stride_h) * s->kernel_w <= MUR_MVE_BYTES)
            line.together++, line.rows += s->stride_h;
    line.plane = line.width * line.rows + (s->out_h > line.together ? MUR_MVE_SLACK : 0);
    return line;
}

/* how many of them */
static inline int32_t mur_mve_shorts(const mur_conv_shape *s, const mur_mve_line *line)
{
    return line->vectors == 1 ? mur_mve_planes(s) : 0;
}

#if MUR_HAVE_MVE

/* to lies below from and may overlap it */
static inline void mur_mve_move_down(int8_t *to, const int8_t *from, int32_t count)
{
    for (; count > 0; count -= MUR_MVE_BYTES, to += MUR_MVE_BYTES, from += MUR_MVE_BYTES) {
        mve_pred16_t inside = vctp8q((uint32_t)count);

        vstrbq_p_s8(to, vldrbq_z_s8(from, inside), inside);
    }
}

static inline void mur_mve_clear(int8_t *to, int32_t vectors)
{
    for (; vectors > 0; vectors--, to += MUR_MVE_BYTES)
        vstrbq_s8(to, vdupq_n_s8(0));
}

/* the four words of y to out + at[0..3], which need not be aligned */
static inline __attribute__((always_inline)) void
mur_mve_store_words(int8_t *out, const uint32_t *at, int8x16_t y)
{
    __asm__ volatile("ldm %1, {r0, r2, r4, r6}\n"
                     "vmov r8, r10, %q2[2], %q2[0]\n"
                     "str r8, [%0, r0]\n"
                     "str r10, [%0, r4]\n"
                     "vmov r8, r10, %q2[3], %q2[1]\n"
                     "str r8, [%0, r2]\n"
                     "str r10, [%0, r6]\n"
                     :
                     : "r"(out), "r"(at), "w"(y)
                     : "r0", "r2", "r4", "r6", "r8", "r10", "memory");
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

/* the same of sums that share both */
static inline int32x4_t mur_mve_scale_all(int32x4_t sums, int32_t mul, int32_t shift)
{
    int32x4_t x = vqrdmulhq_n_s32(sums, mul);

    /* x - 1 of negative x, rounded halves up, is x rounded halves away from zero */
    return vrshlq_n_s32(vqdmlahq_n_s32(x, x, (int32_t)((uint32_t)shift >> 31)), shift);
}

/* MUR_REQUANT_Q31 before zero point and clamp of one channel's sums without its bias */
static inline int32x4_t mur_mve_scale_channel(int32x4_t sums, const mur_mve_channel *channel,
                                              int32_t shift)
{
    return mur_mve_scale_all(vaddq_n_s32(sums, channel->bias), channel->mul, shift);
}

#else

#include <string.h>

static inline void mur_mve_move_down(int8_t *to, const int8_t *from, int32_t count)
{
    if (count > 0)
        memmove(to, from, (size_t)count);
}

static inline void mur_mve_clear(int8_t *to, int32_t vectors)
{
    memset(to, 0, (size_t)vectors * MUR_MVE_BYTES);
}

#endif

#endif
