/* mur_dsp_block.h - one channel of a depthwise convolution with a kernel of 3x3, two rows by two
 * columns of outputs at a time: the inner loops of mur_dsp_depthwise_3_s8.
 *
 * Words of the plane are pairs of neighbouring columns as int16; the words of a pair of columns
 * lie row by row, so a window goes down by steps of a word. If the output's zero point is -128, as
 * a ReLU leaves it, negative sums end there whatever their rounding, and a sum needs no look at its
 * sign. Then bias and weights are shifted to the left, so that what is left to shift to the right
 * behind SMMLA is MUR_DSP_BLOCK_SHIFT, which SSAT does, too. Where weights or sums have no room for
 * that, or signs count, they are doubled, as SMMLAR's result is half of what is wanted. */
#ifndef MUR_DSP_BLOCK_H
#define MUR_DSP_BLOCK_H

#include "mur_dsp.h"

#define MUR_DSP_BLOCK_SHIFT 10
#define MUR_DSP_TEXT_OF(x) #x
#define MUR_DSP_TEXT(x) MUR_DSP_TEXT_OF(x)

/* A channel's outputs. The order of members is the assembly's. */
typedef struct mur_dsp_block {
    const mur_word *x;  /* the first output's window */
    int32_t x_step;     /* bytes to the windows of the next pair of columns of outputs */
    int8_t *out;        /* the first output of the second row, if there is one */
    int32_t rows;       /* bytes down the outputs' whole pairs of rows; of one row a pair's */
    int32_t pairs;      /* of columns of outputs */
    int32_t out_step;   /* to the next column */
    int32_t last_step;  /* out_step, or 0 if only the first column of the last pair is an output */
    int32_t pitch;      /* bytes to the next pair of columns of x */
    int32_t up;         /* from the second row of outputs to the first; 0 if there is one row */
    int32_t odd;        /* bytes up from the end to the last pair of an odd number of rows, or 0 */
    int32_t mul, shift; /* to the right, less 1, of doubled sums */
    int32_t round;      /* what is added ahead of the shift: rounding and the zero point */
    uint32_t bias;      /* half of it; in bit 31 whether sums are doubled */
    uint32_t w[3][2];   /* of each row (w0,w1) and (w1,w2) */
} mur_dsp_block;

/* A channel of an image on its way to the plane, column by column. The order of members is the
 * assembly's. */
typedef struct mur_dsp_columns {
    int16_t *to;
    const int8_t *from;
    int32_t step;          /* to the next row */
    int32_t rows, columns; /* columns at least 1 */
    int32_t rest;          /* bytes from the end of the first column to the next, in the plane */
    int32_t from_rest;     /* in the image */
    int32_t rests;         /* rest + the same of the second column; then both by turns */
} mur_dsp_columns;

typedef struct mur_dsp_block_channel {
    mur_dsp_columns image;
    mur_dsp_block block;
} mur_dsp_block_channel;

#if MUR_HAVE_DSP

/* MUR_DSP_BLOCK_SUMS_1 and _2, of stride 1 and 2: the sums of four outputs, multiplier and
 * rounding; leaves a carry for the branch to 7 if sums are doubled, which comes back at 8.
 * MUR_DSP_BLOCK_SCALE: sums to outputs, and where they go. MUR_DSP_BLOCK_STORE, at 8: stores them,
 * with flags for the branch to the next four. The second row and column are stored first: if they
 * are none, the first ones overwrite them. MUR_DSP_BLOCK_GATHER_FOURS: the rows of a column, four
 * at a time, to the plane; goes on at 13. */
#define MUR_DSP_BLOCK_PLACES \
    "ldr r10, [sp, #56]\n" \
    "ldr r11, [sp, #64]\n" \
    "ldr r12, [sp, #68]\n"

#define MUR_DSP_BLOCK_SSAT(r, shift) "ssat " #r ", #8, " #r ", asr #" MUR_DSP_TEXT(shift) "\n"

#if MUR_DUAL_ISSUE

#include "mur_dsp_block_dual.h"

#else

/* A row of a window to the sums of a row of outputs, from what they begin with; x0, x1 in r10, r11
 * or, with stride 2, x1, x2, and x0 in r3 while that is free, else behind them in r11. */
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
    "ldr r12, [sp, #28]\n" \
    "ldr r0, [sp, #52]\n"

/* clang-format off */
#define MUR_DSP_BLOCK_SUMS_1 \
    MUR_DSP_BLOCK_BEGIN \
    MUR_DSP_BLOCK_READ_1(4) \
    "lsls r2, r0, #1\n" \
    MUR_DSP_BLOCK_MAC_1(r0, r1, r2, r2, r4, r5) \
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
    "ldr r3, [lr], #4\n" \
    "lsls r2, r0, #1\n" \
    MUR_DSP_BLOCK_MAC_2(r0, r1, r2, r2, r4, r5) \
    "smlad r0, r3, r4, r0\n" \
    MUR_DSP_BLOCK_READ_2 \
    "ldr r3, [lr], #4\n" \
    MUR_DSP_BLOCK_MAC_2(r0, r1, r0, r1, r6, r7) \
    "smlad r0, r3, r6, r0\n" \
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
    "ldr r10, [sp, #40]\n" \
    "ldr r12, [sp, #48]\n"

/* clang-format off */
#define MUR_DSP_BLOCK_SCALE \
    "smmla r0, r0, r10, r12\n" \
    "smmla r1, r1, r10, r12\n" \
    "smmla r3, r3, r10, r12\n" \
    "smmla r2, r2, r10, r12\n" \
    MUR_DSP_BLOCK_SSAT(r3, MUR_DSP_BLOCK_SHIFT) \
    MUR_DSP_BLOCK_SSAT(r2, MUR_DSP_BLOCK_SHIFT) \
    MUR_DSP_BLOCK_SSAT(r1, MUR_DSP_BLOCK_SHIFT) \
    MUR_DSP_BLOCK_SSAT(r0, MUR_DSP_BLOCK_SHIFT) \
    MUR_DSP_BLOCK_PLACES
/* clang-format on */

#define MUR_DSP_BLOCK_STORE \
    "strb r3, [r10, r11]\n" \
    "strb r2, [r10]\n" \
    "ldr r3, [sp, #32]\n" \
    "strb r1, [r10, r12]\n" \
    "ldr r2, [sp, #60]\n" \
    "strb r0, [r10, r3]\n" \
    "sub r10, r10, r3, lsl #1\n" \
    "cmp lr, r2\n" \
    "str r10, [sp, #56]\n"

/* four rows of a column to the plane */
#define MUR_DSP_BLOCK_GATHER_4 \
    "ldrsb r9, [r1, r2, lsl #1]\n" \
    "ldrsb r10, [r1, r11]\n" \
    "ldrsb r8, [r1, r2]\n" \
    "ldrsb lr, [r1]\n" \
    "add r1, r1, r2, lsl #2\n" \
    "strh r8, [r0, #4]\n" \
    "strh r9, [r0, #8]\n" \
    "strh r10, [r0, #12]\n" \
    "strh lr, [r0], #16\n"

/* clang-format off */
#define MUR_DSP_BLOCK_GATHER_FOURS \
    "lsls r12, r3, #30\n" /* carry: are there four behind the eights? */ \
    "bcc 11f\n" \
    MUR_DSP_BLOCK_GATHER_4 \
    "11: lsrs r12, r3, #3\n" \
    "beq 13f\n" \
    "12:\n" \
    MUR_DSP_BLOCK_GATHER_4 \
    MUR_DSP_BLOCK_GATHER_4 \
    "subs r12, r12, #1\n" \
    "bne 12b\n"
/* clang-format on */

#endif

/* the columns of the image, of which r0 tells */
/* clang-format off */
#define MUR_DSP_BLOCK_GATHER \
    "ldm r0, {r0-r7}\n" \
    "add r11, r2, r2, lsl #1\n" \
    "10:\n" \
    MUR_DSP_BLOCK_GATHER_FOURS \
    "13: lsls r12, r3, #31\n" /* carry: are there two more? */ \
    "bcc 14f\n" \
    "ldrsb r8, [r1]\n" \
    "ldrsb r9, [r1, r2]\n" \
    "add r1, r1, r2, lsl #1\n" \
    "strh r9, [r0, #4]\n" \
    "strh r8, [r0], #8\n" \
    "14: beq 15f\n" \
    "ldrsb r8, [r1]\n" \
    "add r1, r1, r2\n" \
    "strh r8, [r0], #4\n" \
    "15: add r0, r0, r5\n" \
    "add r1, r1, r6\n" \
    "sub r5, r7, r5\n" \
    "subs r4, r4, #1\n" \
    "bne 10b\n"
/* clang-format on */

/* r0, r1: sums of a row; r2, r3: of the next; r4-r9: weights; r10-r12: x; lr: where the window is.
 * On the stack a copy of the block as far as its bias, then at 56 the output at which this stands,
 * in the second row, where the column of windows ends, steps to the next column of outputs and from
 * the second row to the first one's next column, and where sums of this stride begin and end. The
 * last pair of an odd number of rows makes a row again. */
/* clang-format off */
#define MUR_DSP_BLOCK_DOUBLED(r) \
    "add r11, r12, " #r ", asr #31\n" \
    "smmlar " #r ", " #r ", r10, r11\n"

__attribute__((naked, noinline)) static void
mur_dsp_run_blocks(__attribute__((unused)) const mur_dsp_block_channel *channel)
{
    __asm__ volatile("push {r0, r4-r11, lr}\n"
                     MUR_DSP_BLOCK_GATHER
                     "pop {r0}\n"
                     "add r0, r0, #32\n"
                     "ldm r0!, {r1-r12, lr}\n"
                     "sub sp, sp, #28\n"
                     "push {r1-r12, lr}\n"
                     "cmp r2, r8\n"
                     "ldm r0, {r3-r9}\n"
                     "adr r1, 2f + 1\n"
                     "adr r2, 8f + 1\n"
                     "itt ne\n"
                     "adrne r1, 5f + 1\n"
                     "adrne r2, 9f + 1\n"
                     "str r3, [sp, #52]\n"
                     "strd r1, r2, [sp, #72]\n"
                     "1: ldm sp, {r0-r3, r10, r11}\n"
                     "mov lr, r0\n"
                     "add r0, r0, r1\n"
                     "str r0, [sp]\n"
                     "subs r10, r10, #1\n"
                     "str r10, [sp, #16]\n"
                     "it eq\n"
                     "ldreq r11, [sp, #24]\n"
                     "ldr r12, [sp, #32]\n"
                     "add r10, r2, r11, lsl #1\n"
                     "str r10, [sp, #8]\n"
                     "add r3, r3, lr\n"
                     "add r12, r11, r12\n"
                     "add r0, sp, #56\n"
                     "stm r0, {r2, r3, r11, r12}\n"
                     "ldr pc, [sp, #72]\n"
                     "2:\n"
                     MUR_DSP_BLOCK_SUMS_1
                     "bcs 7f\n"
                     MUR_DSP_BLOCK_SCALE
                     "8:\n"
                     MUR_DSP_BLOCK_STORE
                     "blo 2b\n"
                     "3: ldr r0, [sp, #36]\n"
                     "cbz r0, 4f\n"
                     "cmp lr, r2\n"
                     "bne 4f\n"
                     "sub lr, lr, r0\n"
                     "add r10, r10, r3\n"
                     "str r10, [sp, #56]\n"
                     "ldr pc, [sp, #72]\n"
                     "4: ldr r0, [sp, #16]\n"
                     "cmp r0, #0\n"
                     "bne 1b\n"
                     "add sp, sp, #80\n"
                     "pop {r4-r11, pc}\n"
                     "5:\n"
                     MUR_DSP_BLOCK_SUMS_2
                     "bcs 7f\n"
                     MUR_DSP_BLOCK_SCALE
                     "9:\n"
                     MUR_DSP_BLOCK_STORE
                     "blo 5b\n"
                     "b 3b\n"
                     "7:\n"
                     MUR_DSP_BLOCK_DOUBLED(r0)
                     MUR_DSP_BLOCK_DOUBLED(r1)
                     MUR_DSP_BLOCK_DOUBLED(r2)
                     MUR_DSP_BLOCK_DOUBLED(r3)
                     "ldr r11, [sp, #44]\n"
                     "asr r0, r0, r11\n"
                     "asr r1, r1, r11\n"
                     "asr r2, r2, r11\n"
                     "asr r3, r3, r11\n"
                     MUR_DSP_BLOCK_SSAT(r0, 1)
                     MUR_DSP_BLOCK_SSAT(r1, 1)
                     MUR_DSP_BLOCK_SSAT(r2, 1)
                     MUR_DSP_BLOCK_SSAT(r3, 1)
                     MUR_DSP_BLOCK_PLACES
                     "ldr pc, [sp, #76]\n");
}
/* clang-format on */

#else

#include "mur_nn_arith.h"

/* output (y, x), from words as they lie there */
static inline int8_t mur_dsp_block_output(const mur_dsp_block *block, int32_t stride, int32_t y,
                                          int32_t x)
{
    int32_t sum = (int32_t)(2 * block->bias), scaled;

    for (int32_t tap = 0; tap < 9; tap++) {
        int32_t i = tap / 3, j = tap % 3, column = x * stride + j;
        uint32_t word = block->x[column / 2 * (block->pitch / 4) + y * stride + i];

        sum +=
            (int16_t)(word >> (column & 1) * 16) * (int16_t)(block->w[i][j == 2] >> (j > 0) * 16);
    }
    if (block->bias >> 31) {
        scaled = (int32_t)(((int64_t)sum * block->mul + ((int64_t)1 << 31)) >> 32);
        scaled = mur_asr(scaled - (scaled < 0) + block->round, block->shift + 1);
    } else {
        scaled = (int32_t)(((int64_t)sum * block->mul) >> 32);
        scaled = mur_asr(scaled + block->round, MUR_DSP_BLOCK_SHIFT);
    }
    return (int8_t)mur_clamp(scaled, INT8_MIN, INT8_MAX);
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

static inline void mur_dsp_run_blocks(const mur_dsp_block_channel *channel)
{
    const mur_dsp_block *block = &channel->block;
    int32_t stride = block->x_step / block->pitch;
    int32_t rows = block->up == 0 ? 1 : block->rows / (4 * stride) + (block->odd != 0);
    int32_t columns = 2 * block->pairs - (block->last_step == 0);

    mur_dsp_gather_columns(&channel->image);
    for (int32_t y = 0; y < rows; y++)
        for (int32_t x = 0; x < columns; x++)
            block->out[(1 - y) * block->up + x * block->out_step] =
                mur_dsp_block_output(block, stride, y, x);
}

#endif

#endif
