/* mur_dsp_plane.h - one channel of a depthwise convolution: the inner loops of
 * mur_dsp_depthwise_s8 and mur_dsp_depthwise_wide_s8.
 *
 * Words of the plane are pairs of neighbouring columns. Two outputs at a time: with stride 1 the
 * second output's window begins in the middle of a word, so weights are there twice, as
 * (w0,w1)(w2,w3).. and as (w1,w2)(w3,w4)...
 *
 * With MUR_DSP_PLANE_SUMS defined, before this is included, outputs are the sums, as int32 side by
 * side, one row a call; then kernels of 3 are here, too. */
#ifndef MUR_DSP_PLANE_H
#define MUR_DSP_PLANE_H

#include "mur_dsp.h"

/* the order of members is the assembly's */
typedef struct mur_dsp_plane {
    const int16_t *x;     /* the first output's window */
    int32_t row_step;     /* bytes of x to the next output row */
    int32_t pitch;        /* bytes of x to the next row */
    int32_t rows;         /* of the output, at least 1 */
    const int16_t *x_end; /* x + stride * columns of the output */
    int32_t out_step;     /* bytes to the next output */
    int32_t mul, shift;   /* twice the multiplier modulo 2^32; to the right, at least 1 */
    int32_t zero, bias;
    int8_t *out;
    int32_t out_pitch;
    const uint32_t *weights; /* see mur_dsp_expand */
} mur_dsp_plane;

/* A channel of an image, and where it goes in the plane. The order of members is the assembly's. */
typedef struct mur_dsp_channel {
    int16_t *to;
    const int8_t *from;
    int32_t step, columns, rows; /* rows at least 1 */
    int32_t to_rest, from_rest;  /* bytes from a row's end to the next */
} mur_dsp_channel;

/* Weights of a kernel of size^2 as the loops take them, w[i][j] in bytes. Kernel 3 with stride 1:
 * (w0,w1)(w1,w2) of each row; with stride 2: (w0,w1) of each row, then the three w2. Kernels 5 and
 * 7, each row: with stride 1 (w0,w1)(w1,w2)(w2,w3)..; with stride 2 (w0,w1)(w2,w3).. and the last.
 */
static inline void mur_dsp_expand(uint32_t *out, const int8_t *w, int32_t size, int32_t stride,
                                  int32_t zero)
{
    for (int32_t i = 0; i < size; i++, w += size) {
        for (int32_t j = 0; j + 1 < size; j += stride)
            *out++ = (uint16_t)(w[j] - zero) | (uint32_t)(uint16_t)(w[j + 1] - zero) << 16;
        if (stride == 2 && size > 3)
            *out++ = (uint32_t)(uint16_t)(w[size - 1] - zero);
    }
    if (stride == 2 && size == 3) {
        w -= 7; /* the first row's last */
        *out++ = (uint16_t)(w[0] - zero) | (uint32_t)(uint16_t)(w[3] - zero) << 16;
        *out++ = (uint32_t)(uint16_t)(w[6] - zero);
    }
}

#if MUR_HAVE_DSP

#define MUR_DSP_PLANE_ENTER \
    "push {r4-r11, lr}\n" \
    "sub sp, sp, #60\n" \
    "mov r12, sp\n" \
    "ldm r0!, {r1-r7}\n" \
    "stm r12!, {r1-r7}\n" \
    "ldm r0, {r1-r6}\n" \
    "stm r12, {r1-r6}\n"

#ifdef MUR_DSP_PLANE_SUMS

/* as below, but sums as int32, side by side */
#define MUR_DSP_PLANE_STORE(at) \
    "ldr r8, [sp, #16]\n" \
    "cmp " #at ", r8\n" \
    "str r6, [lr]\n" \
    "it ls\n" \
    "strls r7, [lr, #4]\n" \
    "add lr, lr, #8\n"

#elif MUR_DUAL_ISSUE

#include "mur_dsp_plane_dual.h"

#else

/* Sums r6, r7 to outputs at lr; `at` is where x stands now, behind the pair: at x_end or before it
 * both are inside, beyond it only the first. Goes on at 2, or falls through. */
#define MUR_DSP_PLANE_STORE(at) \
    "ldrd r8, r9, [sp, #24]\n" \
    "smmlar r6, r6, r8, r6\n" \
    "smmlar r7, r7, r8, r7\n" \
    "ldr r8, [sp, #32]\n" \
    "add r6, r6, r6, asr #31\n" \
    "add r7, r7, r7, asr #31\n" \
    "asrs r6, r6, r9\n" \
    "adc r6, r6, r8\n" \
    "asrs r7, r7, r9\n" \
    "adc r7, r7, r8\n" \
    "ldrd r8, r9, [sp, #16]\n" \
    "ssat r6, #8, r6\n" \
    "ssat r7, #8, r7\n" \
    "cmp " #at ", r8\n" \
    "strb r6, [lr]\n" \
    "it ls\n" \
    "strbls r7, [lr, r9]\n" \
    "add lr, lr, r9, lsl #1\n"

#endif

/* steps to the next row; leaves flags: is there one? */
#define MUR_DSP_PLANE_STEP \
    "ldr r6, [sp]\n" \
    "ldr r7, [sp, #4]\n" \
    "ldr r8, [sp, #16]\n" \
    "add r6, r6, r7\n" \
    "add r8, r8, r7\n" \
    "str r6, [sp]\n" \
    "str r8, [sp, #16]\n" \
    "ldrd r6, r7, [sp, #40]\n" \
    "add r6, r6, r7\n" \
    "ldr r8, [sp, #12]\n" \
    "str r6, [sp, #40]\n" \
    "subs r8, r8, #1\n" \
    "str r8, [sp, #12]\n"

/* the next row, at 1, or the end */
#define MUR_DSP_PLANE_NEXT \
    "bne 1b\n" \
    "add sp, sp, #60\n" \
    "pop {r4-r11, pc}\n"

#ifdef MUR_DSP_PLANE_SUMS

/* kernel 3: weights stay in r0-r5; r10, r11, r12 are three rows of the plane; `pair` makes and
 * stores two outputs; `second` is what the second one's sum begins with */
/* clang-format off */
#define MUR_DSP_PLANE_3(registers, pair) \
    __asm__ volatile(MUR_DSP_PLANE_ENTER \
                     "ldr r12, [sp, #48]\n" \
                     "ldm r12, {" registers "}\n" \
                     "1: ldr r10, [sp]\n" \
                     "ldr r11, [sp, #8]\n" \
                     "ldr lr, [sp, #40]\n" \
                     "add r12, r10, r11, lsl #1\n" \
                     "add r11, r10, r11\n" \
                     "2:\n" \
                     pair \
                     "blo 2b\n" \
                     MUR_DSP_PLANE_STEP \
                     MUR_DSP_PLANE_NEXT)
/* clang-format on */

#define MUR_DSP_ROW_3_1(p, w01, w12, second) \
    "ldrd r8, r9, [" #p "], #4\n" \
    "smlatb r7, r8, " #w01 ", " #second "\n" \
    "smlad r6, r8, " #w01 ", r6\n" \
    "smlabt r6, r9, " #w12 ", r6\n" \
    "smlad r7, r9, " #w12 ", r7\n"

/* clang-format off */
#define MUR_DSP_PLANE_PAIR_3_1 \
    "ldr r6, [sp, #36]\n" \
    MUR_DSP_ROW_3_1(r10, r0, r1, r6) \
    MUR_DSP_ROW_3_1(r11, r2, r3, r7) \
    MUR_DSP_ROW_3_1(r12, r4, r5, r7) \
    MUR_DSP_PLANE_STORE(r10)
/* clang-format on */

#define MUR_DSP_ROW_3_2(p, w01, half, w2, second) \
    "ldrd r5, r8, [" #p "], #8\n" \
    "ldr r9, [" #p "]\n" \
    "smlad r7, r8, " #w01 ", " #second "\n" \
    "smlad r6, r5, " #w01 ", r6\n" \
    "smlab" #half " r6, r8, " #w2 ", r6\n" \
    "smlab" #half " r7, r9, " #w2 ", r7\n"

/* clang-format off */
#define MUR_DSP_PLANE_PAIR_3_2 \
    "ldr r6, [sp, #36]\n" \
    MUR_DSP_ROW_3_2(r10, r0, b, r3, r6) \
    MUR_DSP_ROW_3_2(r11, r1, t, r3, r7) \
    MUR_DSP_ROW_3_2(r12, r2, b, r4, r7) \
    MUR_DSP_PLANE_STORE(r10)
/* clang-format on */

__attribute__((naked, noinline)) static void mur_dsp_plane_3_1(__attribute__((unused))
                                                               const mur_dsp_plane *plane)
{
    MUR_DSP_PLANE_3("r0-r5", MUR_DSP_PLANE_PAIR_3_1);
}

__attribute__((naked, noinline)) static void mur_dsp_plane_3_2(__attribute__((unused))
                                                               const mur_dsp_plane *plane)
{
    MUR_DSP_PLANE_3("r0-r4", MUR_DSP_PLANE_PAIR_3_2);
}

#endif

/* in the frame of a loop; called by their assembly alone */
__attribute__((naked, noinline, used)) static void mur_dsp_plane_step(void)
{
    __asm__ volatile(MUR_DSP_PLANE_STEP "bx lr\n");
}

/* Larger kernels: r11 is the row of the plane, r12 its weights, lr the plane's pitch. [sp, #52] is
 * where x stands, [sp, #56] where the output does. */
/* clang-format off */
#define MUR_DSP_PLANE_N(advance, rows) \
    __asm__ volatile(MUR_DSP_PLANE_ENTER \
                     "1: ldr r11, [sp]\n" \
                     "ldr r12, [sp, #40]\n" \
                     "strd r11, r12, [sp, #52]\n" \
                     "2: ldr r6, [sp, #36]\n" \
                     "ldr r11, [sp, #52]\n" \
                     "ldr r12, [sp, #48]\n" \
                     "ldr lr, [sp, #8]\n" \
                     "mov r7, r6\n" \
                     rows \
                     "ldrd r11, lr, [sp, #52]\n" \
                     "add r11, r11, #" advance "\n" \
                     MUR_DSP_PLANE_STORE(r11) \
                     "strd r11, lr, [sp, #52]\n" \
                     "blo 2b\n" \
                     "bl mur_dsp_plane_step\n" \
                     MUR_DSP_PLANE_NEXT)
/* clang-format on */

#define MUR_DSP_ROW_5_1 \
    "ldm r11, {r0-r2}\n" \
    "ldm r12!, {r3-r5, r8}\n" /* (w0,w1)(w1,w2)(w2,w3)(w3,w4) */ \
    "add r11, r11, lr\n" \
    "smlad r6, r0, r3, r6\n" \
    "smlatb r7, r0, r3, r7\n" \
    "smlad r6, r1, r5, r6\n" \
    "smlad r7, r1, r4, r7\n" \
    "smlabt r6, r2, r8, r6\n" \
    "smlad r7, r2, r8, r7\n"

#define MUR_DSP_ROW_5_2 \
    "ldm r11, {r0-r3}\n" \
    "ldm r12!, {r5, r8, r9}\n" /* (w0,w1)(w2,w3)(w4) */ \
    "add r11, r11, lr\n" \
    "smlad r6, r0, r5, r6\n" \
    "smlad r7, r1, r5, r7\n" \
    "smlad r6, r1, r8, r6\n" \
    "smlad r7, r2, r8, r7\n" \
    "smlabb r6, r2, r9, r6\n" \
    "smlabb r7, r3, r9, r7\n"

#define MUR_DSP_ROW_7_1 \
    "ldm r11, {r0-r3}\n" \
    "ldm r12!, {r4, r5, r8-r10}\n" /* (w0,w1)(w1,w2)(w2,w3)(w3,w4)(w4,w5) */ \
    "add r11, r11, lr\n" \
    "smlad r6, r0, r4, r6\n" \
    "smlatb r7, r0, r4, r7\n" \
    "ldr r4, [r12], #4\n" /* (w5,w6) */ \
    "smlad r6, r1, r8, r6\n" \
    "smlad r7, r1, r5, r7\n" \
    "smlad r6, r2, r10, r6\n" \
    "smlad r7, r2, r9, r7\n" \
    "smlabt r6, r3, r4, r6\n" \
    "smlad r7, r3, r4, r7\n"

#define MUR_DSP_ROW_7_2 \
    "ldm r11, {r0-r4}\n" \
    "ldm r12!, {r5, r8-r10}\n" /* (w0,w1)(w2,w3)(w4,w5)(w6) */ \
    "add r11, r11, lr\n" \
    "smlad r6, r0, r5, r6\n" \
    "smlad r7, r1, r5, r7\n" \
    "smlad r6, r1, r8, r6\n" \
    "smlad r7, r2, r8, r7\n" \
    "smlad r6, r2, r9, r6\n" \
    "smlad r7, r3, r9, r7\n" \
    "smlabb r6, r3, r10, r6\n" \
    "smlabb r7, r4, r10, r7\n"

#define MUR_DSP_TIMES5(x) x x x x x
#define MUR_DSP_TIMES7(x) MUR_DSP_TIMES5(x) x x

__attribute__((naked, noinline)) static void mur_dsp_plane_5_1(__attribute__((unused))
                                                               const mur_dsp_plane *plane)
{
    MUR_DSP_PLANE_N("4", MUR_DSP_TIMES5(MUR_DSP_ROW_5_1));
}

__attribute__((naked, noinline)) static void mur_dsp_plane_5_2(__attribute__((unused))
                                                               const mur_dsp_plane *plane)
{
    MUR_DSP_PLANE_N("8", MUR_DSP_TIMES5(MUR_DSP_ROW_5_2));
}

__attribute__((naked, noinline)) static void mur_dsp_plane_7_1(__attribute__((unused))
                                                               const mur_dsp_plane *plane)
{
    MUR_DSP_PLANE_N("4", MUR_DSP_TIMES7(MUR_DSP_ROW_7_1));
}

__attribute__((naked, noinline)) static void mur_dsp_plane_7_2(__attribute__((unused))
                                                               const mur_dsp_plane *plane)
{
    MUR_DSP_PLANE_N("8", MUR_DSP_TIMES7(MUR_DSP_ROW_7_2));
}

/* clang-format off */
__attribute__((naked, noinline)) static void
mur_dsp_gather(__attribute__((unused)) const mur_dsp_channel *channel)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r0-r6}\n"
                     "add r11, r2, r2, lsl #1\n"
                     "1: lsrs r12, r3, #2\n"
                     "beq 3f\n"
                     "2: ldrsb r9, [r1, r2, lsl #1]\n"
                     "ldrsb r10, [r1, r11]\n"
                     "ldrsb r8, [r1, r2]\n"
                     "ldrsb r7, [r1]\n"
                     "add r1, r1, r2, lsl #2\n"
                     "strh r8, [r0, #2]\n"
                     "subs r12, r12, #1\n"
                     "strh r9, [r0, #4]\n"
                     "strh r10, [r0, #6]\n"
                     "strh r7, [r0], #8\n"
                     "bne 2b\n"
                     "3: ands r12, r3, #3\n"
                     "beq 5f\n"
                     "4: ldrsb r7, [r1]\n"
                     "add r1, r1, r2\n"
                     "strh r7, [r0], #2\n"
                     "subs r12, r12, #1\n"
                     "bne 4b\n"
                     "5: add r0, r0, r5\n"
                     "add r1, r1, r6\n"
                     "subs r4, r4, #1\n"
                     "bne 1b\n"
                     "pop {r4-r11, pc}\n");
}
/* clang-format on */

#else

#include "mur_nn_arith.h"

/* The same from weights as mur_dsp_expand leaves them: each product is looked up where the assembly
 * finds it. */
static inline int32_t mur_dsp_plane_weight(const uint32_t *w, int32_t size, int32_t stride,
                                           int32_t i, int32_t j)
{
    int32_t words = stride == 1 ? size - 1 : size == 3 ? 1 : (size + 1) / 2, word, half;

    if (stride == 2 && size == 3 && j == 2) {
        word = 3 + i / 2;
        half = i & 1;
    } else {
        word = stride == 1 ? (j < size - 1 ? j : j - 1) : j / 2;
        half = stride == 1 ? j == size - 1 : j & 1;
        word += i * words;
    }
    return (int16_t)(w[word] >> (16 * half));
}

static inline void mur_dsp_plane_any(const mur_dsp_plane *plane, int32_t size, int32_t stride)
{
    int32_t columns = (int32_t)(plane->x_end - plane->x) / stride;

    for (int32_t y = 0; y < plane->rows; y++)
        for (int32_t x = 0; x < columns; x++) {
            const int16_t *from = plane->x + y * (plane->row_step / 2) + x * stride;
            int32_t sum = plane->bias;

            for (int32_t i = 0; i < size; i++)
                for (int32_t j = 0; j < size; j++)
                    sum += from[i * (plane->pitch / 2) + j] *
                           mur_dsp_plane_weight(plane->weights, size, stride, i, j);
#ifdef MUR_DSP_PLANE_SUMS
            ((int32_t *)(void *)plane->out)[x] = sum;
#else
            sum = mur_scale_q31(sum, (int32_t)((uint32_t)plane->mul >> 1), -plane->shift) +
                  plane->zero;
            plane->out[y * plane->out_pitch + x * plane->out_step] =
                (int8_t)mur_clamp(sum, INT8_MIN, INT8_MAX);
#endif
        }
}

#define MUR_DSP_PLANE_EMULATED(size, stride) \
    static inline void mur_dsp_plane_##size##_##stride(const mur_dsp_plane *plane) \
    { \
        mur_dsp_plane_any(plane, size, stride); \
    }

#ifdef MUR_DSP_PLANE_SUMS
MUR_DSP_PLANE_EMULATED(3, 1)
MUR_DSP_PLANE_EMULATED(3, 2)
#endif
MUR_DSP_PLANE_EMULATED(5, 1)
MUR_DSP_PLANE_EMULATED(5, 2)
MUR_DSP_PLANE_EMULATED(7, 1)
MUR_DSP_PLANE_EMULATED(7, 2)

static inline void mur_dsp_gather(const mur_dsp_channel *channel)
{
    const int8_t *from = channel->from;
    int16_t *to = channel->to;

    for (int32_t y = 0; y < channel->rows; y++) {
        for (int32_t x = 0; x < channel->columns; x++, from += channel->step)
            *to++ = *from;
        from += channel->from_rest;
        to += channel->to_rest / 2;
    }
}

#endif

#endif
