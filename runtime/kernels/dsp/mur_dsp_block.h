/* mur_dsp_block.h - channels of a depthwise convolution with a kernel of 3x3, one after another,
 * two rows by two columns of outputs at a time: the inner loops of mur_dsp_depthwise_3_s8.
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

/* What goes from channel to channel: image.from, out, head and tail. The order of members is the
 * assembly's. */
typedef struct mur_dsp_block {
    const mur_word *x; /* the first output's window */
    int32_t x_step;    /* bytes to the windows of the next pair of columns of outputs */
    int8_t *out;       /* the first output of the second row, if there is one */
    int32_t rows;      /* bytes down the outputs' whole pairs of rows; of one row a pair's */
    int32_t pairs;     /* of columns of outputs */
    int32_t out_step;  /* to the next column */
    int32_t last_step; /* out_step, or 0 if only the first column of the last pair is an output */
    int32_t pitch;     /* bytes to the next pair of columns of x */
    int32_t up;        /* from the second row of outputs to the first; 0 if there is one row */
    int32_t odd;       /* bytes up from the end to the last pair of an odd number of rows, or 0 */
    mur_dsp_columns image;
    const uint32_t *head; /* of a channel the bias and twice the multiplier */
    const int8_t *tail;   /* of a channel the shift and 9 weights */
    int32_t zero;         /* twice the output's zero point, plus 1 */
    int32_t channels;     /* at least 1 */
} mur_dsp_block;

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

/* the columns of the image; r12 is the block */
/* clang-format off */
#define MUR_DSP_BLOCK_GATHER \
    "add r0, r12, #40\n" \
    "ldm r0, {r0-r7}\n" \
    "add r8, r1, #1\n" \
    "str r8, [r12, #44]\n" \
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

/* What the channel says to the frame and r4-r9. Words of tail at 0, 4 and 6: the shift and w0 to
 * w2, w3 to w6, w5 to w8. A shift of pairs of halves shifts signs into the upper ones. */
#define MUR_DSP_BLOCK_SCALED(r) \
    "lsl " #r ", " #r ", r11\n" \
    "bic " #r ", " #r ", r12\n"

/* clang-format off */
#define MUR_DSP_BLOCK_SET \
    "ldr r12, [sp, #80]\n" \
    "ldr r4, [r12]\n" \
    "ldr r5, [r12, #8]\n" \
    "ldr r6, [r12, #16]\n" \
    "ldr r10, [r12, #72]\n" \
    "ldr r11, [r12, #76]\n" \
    "ldr r3, [r12, #80]\n" \
    "str r4, [sp]\n" \
    "str r5, [sp, #8]\n" \
    "str r6, [sp, #16]\n" \
    "add r5, r5, #1\n" \
    "str r5, [r12, #8]\n" \
    "ldm r10!, {r0, r1}\n" \
    "ldr r4, [r11]\n" \
    "ldr r6, [r11, #4]\n" \
    "ldr r8, [r11, #6]\n" \
    "str r10, [r12, #72]\n" \
    "add r11, r11, #10\n" \
    "str r11, [r12, #76]\n" \
    "sxtb r2, r4\n" \
    "lsrs r1, r1, #1\n" \
    "cmn r3, #255\n" \
    "ite eq\n" \
    "rsbeq r11, r2, #" MUR_DSP_TEXT(MUR_DSP_BLOCK_SHIFT) " + 1\n" \
    "movne r11, #0\n" \
    "sub r2, r2, #1\n" \
    "add r10, r0, #1 << 22\n" \
    "subs r5, r11, #2\n" \
    "cmp r5, #6\n" \
    "it ls\n" \
    "cmpls r10, #1 << 23\n" \
    "mov r10, #1\n" \
    "bhs 16f\n" \
    "lsl r3, r10, r5\n" \
    "sub r3, r3, #255 << (" MUR_DSP_TEXT(MUR_DSP_BLOCK_SHIFT) " - 1)\n" \
    "lsl r0, r0, r11\n" \
    "lsrs r0, r0, #1\n" \
    "b 17f\n" \
    "16: mov r11, #1\n" \
    "lsl r3, r3, r2\n" \
    "orr r0, r0, #1 << 31\n" \
    "17: strd r1, r2, [sp, #40]\n" \
    "strd r3, r0, [sp, #48]\n" \
    "lsl r12, r10, r11\n" \
    "sub r12, r12, #1\n" \
    "lsl r12, r12, #16\n" \
    "sxtb16 r0, r4, ror #8\n" /* w0, w2 */ \
    "sxtb16 r1, r4\n" /* the shift, w1 */ \
    "sxtb16 r2, r6\n" /* w3, w5 */ \
    "sxtb16 r3, r6, ror #8\n" /* w4, w6 */ \
    "sxtb16 r10, r8\n" /* w5, w7 */ \
    "sxtb16 r8, r8, ror #8\n" /* w6, w8 */ \
    MUR_DSP_BLOCK_SCALED(r0) \
    "lsl r1, r1, r11\n" \
    MUR_DSP_BLOCK_SCALED(r2) \
    "lsl r3, r3, r11\n" \
    MUR_DSP_BLOCK_SCALED(r10) \
    MUR_DSP_BLOCK_SCALED(r8) \
    "pkhbt r4, r0, r1\n" \
    "pkhtb r5, r0, r1, asr #16\n" \
    "pkhbt r6, r2, r3, lsl #16\n" \
    "pkhbt r7, r3, r2\n" \
    "pkhtb r9, r8, r10, asr #16\n" \
    "pkhbt r8, r8, r10\n"
/* clang-format on */

/* r0, r1: sums of a row; r2, r3: of the next; r4-r9: weights, of each row (w0,w1) and (w1,w2);
 * r10-r12: x; lr: where the window is. On the stack a copy of the block as far as `odd`; from 40 on
 * the multiplier, the shift to the right, less 1, of doubled sums, what is added ahead of the
 * shift, which is rounding and the zero point, and half the bias, in bit 31 whether sums are
 * doubled; then at 56 the output at which this stands, in the second row, where the column of
 * windows ends, steps to the next column of outputs and from the second row to the first one's next
 * column, where sums of this stride begin and end, and the block. The last pair of an odd number of
 * rows makes a row again. */
/* clang-format off */
#define MUR_DSP_BLOCK_DOUBLED(r) \
    "add r11, r12, " #r ", asr #31\n" \
    "smmlar " #r ", " #r ", r10, r11\n"

__attribute__((naked, noinline)) static void
mur_dsp_run_blocks(__attribute__((unused)) mur_dsp_block *block)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "ldm r0, {r1-r10}\n"
                     "sub sp, sp, #44\n"
                     "push {r1-r10}\n"
                     "cmp r2, r8\n"
                     "adr r1, 2f + 1\n"
                     "adr r2, 8f + 1\n"
                     "itt ne\n"
                     "adrne r1, 5f + 1\n"
                     "adrne r2, 9f + 1\n"
                     "strd r1, r2, [sp, #72]\n"
                     "str r0, [sp, #80]\n"
                     "mov r12, r0\n"
                     "0:\n"
                     MUR_DSP_BLOCK_GATHER
                     MUR_DSP_BLOCK_SET
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
                     "ldr r12, [sp, #80]\n"
                     "ldr r0, [r12, #84]\n"
                     "subs r0, r0, #1\n"
                     "str r0, [r12, #84]\n"
                     "bne 0b\n"
                     "add sp, sp, #84\n"
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

/* a channel's numbers */
typedef struct mur_dsp_block_channel {
    int32_t sums_up, mul, shift, round,
        bias; /* sums_up: bits by which sums are shifted to the left */
} mur_dsp_block_channel;

static inline mur_dsp_block_channel mur_dsp_block_set(const mur_dsp_block *block)
{
    int32_t right = block->tail[0], up = MUR_DSP_BLOCK_SHIFT + 1 - right;
    uint32_t bias = block->head[0];
    mur_dsp_block_channel c;

    c.mul = (int32_t)(block->head[1] >> 1);
    if (block->zero == 2 * INT8_MIN + 1 && up >= 2 && up <= 8 && bias + (1u << 22) < 1u << 23) {
        c.sums_up = up;
        c.shift = MUR_DSP_BLOCK_SHIFT;
        c.round = (1 << (up - 2)) + block->zero * (1 << (MUR_DSP_BLOCK_SHIFT - 1));
    } else {
        c.sums_up = 1;
        c.shift = right;
        c.round = block->zero * (1 << (right - 1));
    }
    c.bias = (int32_t)(bias << c.sums_up);
    return c;
}

/* output (y, x), from words as they lie there */
static inline int8_t mur_dsp_block_output(const mur_dsp_block *block,
                                          const mur_dsp_block_channel *c, int32_t stride, int32_t y,
                                          int32_t x)
{
    int32_t sum = c->bias, scaled;

    for (int32_t tap = 0; tap < 9; tap++) {
        int32_t i = tap / 3, column = x * stride + tap % 3;
        uint32_t word = block->x[column / 2 * (block->pitch / 4) + y * stride + i];

        sum += (int16_t)(word >> (column & 1) * 16) * (block->tail[1 + tap] * (1 << c->sums_up));
    }
    if (c->sums_up == 1) {
        scaled = (int32_t)(((int64_t)sum * c->mul + ((int64_t)1 << 31)) >> 32);
        scaled -= scaled < 0;
    } else {
        scaled = (int32_t)(((int64_t)sum * c->mul) >> 32);
    }
    return (int8_t)mur_clamp(mur_asr(scaled + c->round, c->shift), INT8_MIN, INT8_MAX);
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

static inline void mur_dsp_run_blocks(mur_dsp_block *block)
{
    int32_t stride = block->x_step / block->pitch;
    int32_t rows = block->up == 0 ? 1 : block->rows / (4 * stride) + (block->odd != 0);
    int32_t columns = 2 * block->pairs - (block->last_step == 0);

    for (; block->channels > 0; block->channels--) {
        const mur_dsp_block_channel channel = mur_dsp_block_set(block);

        mur_dsp_gather_columns(&block->image);
        for (int32_t y = 0; y < rows; y++)
            for (int32_t x = 0; x < columns; x++)
                block->out[(1 - y) * block->up + x * block->out_step] =
                    mur_dsp_block_output(block, &channel, stride, y, x);
        block->image.from++;
        block->out++;
        block->head += 2;
        block->tail += 10;
    }
}

#endif

#endif
