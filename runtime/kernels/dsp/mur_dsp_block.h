/* mur_dsp_block.h - one channel of a depthwise convolution with a kernel of 3x3, two rows by two
 * columns of outputs at a time: the inner loops of mur_dsp_depthwise_3_s8.
 *
 * Words of the plane are pairs of neighbouring columns as int16; the words of a pair of columns
 * lie row by row, so a window goes down by steps of a word. Bias and weights are doubled, as
 * SMMLAR's result is half of what is wanted. If the output's zero point is -128, as a ReLU leaves
 * it, negative sums end there whatever their rounding, and a sum needs no look at its sign. */
#ifndef MUR_DSP_BLOCK_H
#define MUR_DSP_BLOCK_H

#include "mur_dsp.h"

/* A channel. The order of members is the assembly's. */
typedef struct mur_dsp_block {
    const mur_word *x;  /* the first output's window */
    int32_t pitch;      /* bytes to the next pair of columns */
    int32_t rows;       /* bytes down which the outputs' whole pairs of rows go */
    int32_t last_row;   /* bytes of a pair of which only the first row is an output, or 0 */
    int32_t pairs;      /* of columns of outputs */
    int32_t last_step;  /* out_step, or 0 if only the first column of the last pair is an output */
    int8_t *out;        /* the first output */
    int32_t out_step;   /* to the next column */
    int32_t out_pitch;  /* to the next row */
    int32_t mul, shift; /* shift to the right, less 1, in bits 0 to 7; bit 31: look at signs */
    int32_t round;      /* what is added ahead of the shift: rounding and the zero point */
    int32_t bias;
    uint32_t w[3][2]; /* of each row (w0,w1) and (w1,w2) */
} mur_dsp_block;

/* A channel of an image, column by column. The order of members is the assembly's. */
typedef struct mur_dsp_columns {
    int16_t *to;
    const int8_t *from;
    int32_t step;          /* to the next row */
    int32_t rows, columns; /* columns at least 1 */
    int32_t rest;          /* bytes from the end of the first column to the next, in the plane */
    int32_t from_rest;     /* in the image */
    int32_t rests;         /* rest + the same of the second column; then both by turns */
} mur_dsp_columns;

#if MUR_HAVE_DSP

/* MUR_DSP_BLOCK_SUMS_1 and _2, of stride 1 and 2: the sums of four outputs, and what scales them;
 * leaves flags for a branch to 7 if signs count, which comes back at 8. MUR_DSP_BLOCK_SCALE: sums
 * to scaled ones. MUR_DSP_BLOCK_STORE, at 8: the rest, with flags for the branch to the next four.
 * The second row and column are stored first: if they are none, the first ones overwrite them. */
#if MUR_DUAL_ISSUE

#include "mur_dsp_block_dual.h"

#else

/* A row of a window to the sums of a row of outputs, from what they begin with; x0, x1 in r10, r11
 * or, with stride 2, x1, x2, then x0 in r11. */
#define MUR_DSP_BLOCK_MAC_1(first, second, begin0, begin1, w01, w12) \
    "smlatb " #second ", r10, " #w01 ", " #begin1 "\n" \
    "smlad " #first ", r10, " #w01 ", " #begin0 "\n" \
    "smlad " #second ", r11, " #w12 ", " #second "\n" \
    "smlabt " #first ", r11, " #w12 ", " #first "\n"

#define MUR_DSP_BLOCK_MAC_2(first, second, begin0, begin1, w01, w12) \
    "smlad " #second ", r10, " #w01 ", " #begin1 "\n" \
    "smlabt " #first ", r10, " #w12 ", " #begin0 "\n" \
    "smlabt " #second ", r11, " #w12 ", " #second "\n"

#define MUR_DSP_BLOCK_READ_1(step) \
    "ldr r11, [lr, r12]\n" \
    "ldr r10, [lr], #" #step "\n"

#define MUR_DSP_BLOCK_READ_2 \
    "ldr r10, [lr, r12]\n" \
    "ldr r11, [lr, r12, lsl #1]\n"

#define MUR_DSP_BLOCK_BEGIN \
    "ldr r12, [sp, #4]\n" \
    "ldr r0, [sp, #48]\n"

/* clang-format off */
#define MUR_DSP_BLOCK_SUMS_1 \
    MUR_DSP_BLOCK_BEGIN \
    MUR_DSP_BLOCK_READ_1(4) \
    "mov r2, r0\n" \
    MUR_DSP_BLOCK_MAC_1(r0, r1, r0, r0, r4, r5) \
    MUR_DSP_BLOCK_READ_1(4) \
    MUR_DSP_BLOCK_MAC_1(r0, r1, r0, r1, r6, r7) \
    MUR_DSP_BLOCK_MAC_1(r2, r3, r2, r2, r4, r5) \
    MUR_DSP_BLOCK_READ_1(4) \
    MUR_DSP_BLOCK_MAC_1(r0, r1, r0, r1, r8, r9) \
    MUR_DSP_BLOCK_MAC_1(r2, r3, r2, r3, r6, r7) \
    MUR_DSP_BLOCK_READ_1(-4) \
    MUR_DSP_BLOCK_MAC_1(r2, r3, r2, r3, r8, r9) \
    MUR_DSP_BLOCK_CONSTANTS

#define MUR_DSP_BLOCK_SUMS_2 \
    MUR_DSP_BLOCK_BEGIN \
    MUR_DSP_BLOCK_READ_2 \
    "mov r2, r0\n" \
    MUR_DSP_BLOCK_MAC_2(r0, r1, r0, r0, r4, r5) \
    "ldr r11, [lr], #4\n" \
    "smlad r0, r11, r4, r0\n" \
    MUR_DSP_BLOCK_READ_2 \
    MUR_DSP_BLOCK_MAC_2(r0, r1, r0, r1, r6, r7) \
    "ldr r11, [lr], #4\n" \
    "smlad r0, r11, r6, r0\n" \
    MUR_DSP_BLOCK_READ_2 \
    MUR_DSP_BLOCK_MAC_2(r0, r1, r0, r1, r8, r9) \
    MUR_DSP_BLOCK_MAC_2(r2, r3, r2, r2, r4, r5) \
    "ldr r11, [lr], #4\n" \
    "smlad r0, r11, r8, r0\n" \
    "smlad r2, r11, r4, r2\n" \
    MUR_DSP_BLOCK_READ_2 \
    MUR_DSP_BLOCK_MAC_2(r2, r3, r2, r3, r6, r7) \
    "ldr r11, [lr], #4\n" \
    "smlad r2, r11, r6, r2\n" \
    MUR_DSP_BLOCK_READ_2 \
    MUR_DSP_BLOCK_MAC_2(r2, r3, r2, r3, r8, r9) \
    "ldr r11, [lr]\n" \
    "smlad r2, r11, r8, r2\n" \
    MUR_DSP_BLOCK_CONSTANTS
/* clang-format on */

#define MUR_DSP_BLOCK_CONSTANTS \
    "ldr r11, [sp, #40]\n" \
    "ldr r10, [sp, #36]\n" \
    "ldr r12, [sp, #44]\n" \
    "cmp r11, #0\n"

#define MUR_DSP_BLOCK_SCALE \
    "smmlar r0, r0, r10, r12\n" \
    "smmlar r1, r1, r10, r12\n" \
    "smmlar r2, r2, r10, r12\n" \
    "smmlar r3, r3, r10, r12\n"

#define MUR_DSP_BLOCK_STORE \
    "asr r0, r0, r11\n" \
    "asr r1, r1, r11\n" \
    "asr r2, r2, r11\n" \
    "asr r3, r3, r11\n" \
    "ldr r12, [sp, #84]\n" \
    "ldr r10, [sp, #72]\n" \
    "ldr r11, [sp, #80]\n" \
    "ssat r0, #8, r0, asr #1\n" \
    "ssat r1, #8, r1, asr #1\n" \
    "ssat r2, #8, r2, asr #1\n" \
    "ssat r3, #8, r3, asr #1\n" \
    "add r12, r10, r12\n" \
    "strb r3, [r12, r11]\n" \
    "strb r2, [r12]\n" \
    "strb r1, [r10, r11]\n" \
    "strb r0, [r10]\n" \
    "ldr r11, [sp, #76]\n" \
    "sub r10, r12, r10\n" \
    "add r12, r12, r10\n" \
    "cmp lr, r11\n" \
    "str r12, [sp, #72]\n"

#endif

/* r0, r1: sums of a row; r2, r3: of the next; r4-r9: weights; r10-r12: x; lr: where the window is.
 * On the stack a copy of *block, then at 72 the output at which this stands, where the column of
 * windows ends, and steps to the next column and row of outputs. */
/* clang-format off */
#define MUR_DSP_BLOCK_RUN(stride, sums) \
    __asm__ volatile("push {r4-r11, lr}\n" \
                     "ldm r0!, {r1-r9}\n" \
                     "sub sp, sp, #52\n" \
                     "push {r1-r9}\n" \
                     "ldm r0!, {r1-r4}\n" \
                     "add r12, sp, #36\n" \
                     "stm r12, {r1-r4}\n" \
                     "ldm r0, {r4-r9}\n" \
                     "1: ldm sp, {r0-r3, r10}\n" \
                     "ldr r11, [sp, #28]\n" \
                     "mov lr, r0\n" \
                     "add r1, r0, r1, lsl #" #stride " - 1\n" \
                     "str r1, [sp]\n" \
                     "subs r10, r10, #1\n" \
                     "str r10, [sp, #16]\n" \
                     "add r2, r2, lr\n" \
                     "ldr r0, [sp, #24]\n" \
                     "it eq\n" \
                     "ldreq r11, [sp, #20]\n" \
                     "ldr r12, [sp, #32]\n" \
                     "add r10, sp, #72\n" \
                     "stm r10, {r0, r2, r11, r12}\n" \
                     "add r0, r0, r11, lsl #1\n" \
                     "str r0, [sp, #24]\n" \
                     "cmp lr, r2\n" \
                     "beq 3f\n" \
                     "2:\n" \
                     sums \
                     "bmi 7f\n" \
                     MUR_DSP_BLOCK_SCALE \
                     "8:\n" \
                     MUR_DSP_BLOCK_STORE \
                     "blo 2b\n" \
                     "3: ldr r0, [sp, #12]\n" \
                     "cbz r0, 4f\n" \
                     "ldr r1, [sp, #84]\n" \
                     "ldr r2, [sp, #76]\n" \
                     "cbz r1, 4f\n" \
                     "add r2, r2, r0\n" \
                     "mov r1, #0\n" \
                     "str r1, [sp, #84]\n" \
                     "str r2, [sp, #76]\n" \
                     "b 2b\n" \
                     "4: ldr r0, [sp, #16]\n" \
                     "cmp r0, #0\n" \
                     "bne 1b\n" \
                     "add sp, sp, #88\n" \
                     "pop {r4-r11, pc}\n" \
                     "7: add r11, r12, r0, asr #31\n" \
                     "smmlar r0, r0, r10, r11\n" \
                     "add r11, r12, r1, asr #31\n" \
                     "smmlar r1, r1, r10, r11\n" \
                     "add r11, r12, r2, asr #31\n" \
                     "smmlar r2, r2, r10, r11\n" \
                     "add r11, r12, r3, asr #31\n" \
                     "smmlar r3, r3, r10, r11\n" \
                     "ldr r11, [sp, #40]\n" \
                     "b 8b\n")
/* clang-format on */

__attribute__((naked, noinline)) static void mur_dsp_block_1(__attribute__((unused))
                                                             const mur_dsp_block *block)
{
    MUR_DSP_BLOCK_RUN(1, MUR_DSP_BLOCK_SUMS_1);
}

__attribute__((naked, noinline)) static void mur_dsp_block_2(__attribute__((unused))
                                                             const mur_dsp_block *block)
{
    MUR_DSP_BLOCK_RUN(2, MUR_DSP_BLOCK_SUMS_2);
}

/* clang-format off */
__attribute__((naked, noinline)) static void
mur_dsp_gather_columns(__attribute__((unused)) const mur_dsp_columns *columns)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r0-r7}\n"
                     "add r11, r2, r2, lsl #1\n"
                     "1: lsrs r12, r3, #2\n"
                     "beq 3f\n"
                     "2: ldrsb r9, [r1, r2, lsl #1]\n"
                     "ldrsb r10, [r1, r11]\n"
                     "ldrsb r8, [r1, r2]\n"
                     "ldrsb lr, [r1]\n"
                     "add r1, r1, r2, lsl #2\n"
                     "strh r8, [r0, #4]\n"
                     "subs r12, r12, #1\n"
                     "strh r9, [r0, #8]\n"
                     "strh r10, [r0, #12]\n"
                     "strh lr, [r0], #16\n"
                     "bne 2b\n"
                     "3: lsls r12, r3, #31\n" /* carry: are there two more? */
                     "bcc 4f\n"
                     "ldrsb r8, [r1]\n"
                     "ldrsb r9, [r1, r2]\n"
                     "add r1, r1, r2, lsl #1\n"
                     "strh r9, [r0, #4]\n"
                     "strh r8, [r0], #8\n"
                     "4: beq 5f\n"
                     "ldrsb r8, [r1]\n"
                     "add r1, r1, r2\n"
                     "strh r8, [r0], #4\n"
                     "5: add r0, r0, r5\n"
                     "add r1, r1, r6\n"
                     "sub r5, r7, r5\n"
                     "subs r4, r4, #1\n"
                     "bne 1b\n"
                     "pop {r4-r11, pc}\n");
}
/* clang-format on */

#else

#include "mur_nn_arith.h"

/* output (y, x), from words as they lie there */
static inline int8_t mur_dsp_block_output(const mur_dsp_block *block, int32_t stride, int32_t y,
                                          int32_t x)
{
    int32_t sum = block->bias, scaled;

    for (int32_t tap = 0; tap < 9; tap++) {
        int32_t i = tap / 3, j = tap % 3, column = x * stride + j;
        uint32_t word = block->x[column / 2 * (block->pitch / 4) + y * stride + i];

        sum +=
            (int16_t)(word >> (column & 1) * 16) * (int16_t)(block->w[i][j == 2] >> (j > 0) * 16);
    }
    scaled = (int32_t)(((int64_t)sum * block->mul + ((int64_t)1 << 31)) >> 32);
    if (block->shift < 0 && scaled < 0)
        scaled--;
    scaled = mur_asr(scaled + block->round, (block->shift & 255) + 1);
    return (int8_t)mur_clamp(scaled, INT8_MIN, INT8_MAX);
}

static inline void mur_dsp_block_any(const mur_dsp_block *block, int32_t stride)
{
    int32_t rows = block->rows / (4 * stride) + (block->last_row != 0);
    int32_t columns = 2 * block->pairs - (block->last_step == 0);

    for (int32_t y = 0; y < rows; y++)
        for (int32_t x = 0; x < columns; x++)
            block->out[y * block->out_pitch + x * block->out_step] =
                mur_dsp_block_output(block, stride, y, x);
}

static inline void mur_dsp_block_1(const mur_dsp_block *block)
{
    mur_dsp_block_any(block, 1);
}

static inline void mur_dsp_block_2(const mur_dsp_block *block)
{
    mur_dsp_block_any(block, 2);
}

static inline void mur_dsp_gather_columns(const mur_dsp_columns *columns)
{
    const int8_t *from = columns->from;
    int16_t *to = columns->to;

    for (int32_t x = 0; x < columns->columns; x++) {
        for (int32_t y = 0; y < columns->rows; y++, from += columns->step, to += 2)
            *to = *from;
        from += columns->from_rest;
        to += (x & 1 ? columns->rests - columns->rest : columns->rest) / 2;
    }
}

#endif

#endif
