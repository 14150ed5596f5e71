/* mur_dsp_matmul.c - products of two computed matrices.
 *
 * Sixteen of b's columns are packed by pairs, two bytes of each column a word; then four rows of a
 * at a time are widened to int16, less their zero point, and multiplied with each pair. What b's
 * zero point takes from a sum is that times the sum of the row. */
#include "mur_dsp_matmul.h"

#include "mur_dsp_four.h"
#include "mur_dsp_sums.h"

#include <string.h>

enum { ROWS = 4 };

typedef struct job {
    const mur_matmul_s8 *layer;
    uint32_t *panel, *x;
    int32_t words;           /* of a pair of columns, or of a row */
    int32_t simple;          /* a multiplier below 1/2, all of int8 */
    uint32_t a_flip, b_flip; /* in four bytes */
    uint32_t a_less;         /* -a_zero in both halves */
} job;

/* ---- b ---- */

/* bytes k and k + 2 of two columns; what is beyond them counts for nothing */
static uint32_t gather(const mur_matmul_s8 *layer, const uint8_t *b, int32_t k, int32_t columns)
{
    uint32_t word = 0;

    for (int32_t i = 0; i < 4; i++) {
        int32_t row = k + (i & 2), column = i & 1;

        if (row < layer->depth && column < columns)
            word |= (uint32_t)b[row * layer->b_row + column * layer->b_column] << 8 * i;
    }
    return word;
}

/* whole words of two columns that lie each side by side */
static int32_t pack_columns(const job *w, const uint8_t *b, uint32_t *to)
{
    const uint32_t even = 0x00ff00ff, flip = w->b_flip;
    const mur_matmul_s8 *layer = w->layer;
    const int8_t *p = (const int8_t *)b, *q = p + layer->b_column;
    int32_t k = 0;

    for (; k + 4 <= layer->depth; k += 4, p += 4, q += 4, to += 2) {
        uint32_t first = mur_four(p) ^ flip, second = mur_four(q) ^ flip;

        to[0] = (first & even) | (second & even) << 8;
        to[1] = (first >> 8 & even) | (second & ~even);
    }
    return k;
}

/* of four columns whose rows lie side by side, two pairs */
static int32_t pack_rows(const job *w, const uint8_t *b, uint32_t *to)
{
    const uint32_t low = 0xffff, flip = w->b_flip;
    const int8_t *p = (const int8_t *)b;
    int32_t k = 0, row = w->layer->b_row, words = w->words;

    for (; k + 4 <= w->layer->depth; k += 4, to += 2) {
        uint32_t r0 = mur_four(p) ^ flip, r2 = mur_four(p + 2 * row) ^ flip, r1, r3;

        p += row;
        r1 = mur_four(p) ^ flip;
        r3 = mur_four(p + 2 * row) ^ flip;
        p += 3 * row;
        to[0] = (r0 & low) | r2 << 16;
        to[1] = (r1 & low) | r3 << 16;
        to[words] = r0 >> 16 | (r2 & ~low);
        to[words + 1] = r1 >> 16 | (r3 & ~low);
    }
    return k;
}

/* words from byte k on of a pair */
static void pack_rest(const job *w, const uint8_t *b, int32_t k, int32_t columns, uint32_t *to)
{
    for (to += k / 2; k < w->layer->depth; k += 4, to += 2) {
        to[0] = gather(w->layer, b, k, columns) ^ w->b_flip;
        to[1] = gather(w->layer, b, k + 1, columns) ^ w->b_flip;
    }
}

static void pack_panel(const job *w, const uint8_t *b, int32_t columns)
{
    const mur_matmul_s8 *layer = w->layer;
    uint32_t *to = w->panel;

    while (columns > 0) {
        int32_t k = 0, count = columns < 2 ? 1 : 2;

        if (layer->b_column == 1 && columns >= 4) {
            k = pack_rows(w, b, to);
            pack_rest(w, b, k, 2, to);
            b += 2;
            to += w->words;
            columns -= 2;
        } else if (layer->b_row == 1 && count == 2) {
            k = pack_columns(w, b, to);
        }
        pack_rest(w, b, k, count, to);
        b += 2 * layer->b_column;
        to += w->words;
        columns -= 2;
    }
}

/* ---- a ---- */

/* up to three bytes behind the words, and what counts as nothing */
static uint32_t last_four(const job *w, const uint8_t *a)
{
    uint32_t four = (uint8_t)w->layer->a_zero * 0x01010101u ^ w->a_flip;

    memcpy(&four, a, (size_t)(w->layer->depth & 3));
    return four;
}

static uint32_t *put(const job *w, uint32_t *x, int32_t rows, uint32_t four)
{
    four ^= w->a_flip;
    x[0] = mur_sxtab16(w->a_less, four);
    x[rows] = mur_sxtab16_odd(w->a_less, four);
    return x + 2 * rows;
}

/* four rows by turns */
static void widen_four(const job *w, const uint8_t *a)
{
    const uint32_t flip = w->a_flip, less = w->a_less;
    const int8_t *p = (const int8_t *)a, *end = p + (w->layer->depth & ~3);
    int32_t pitch = w->layer->a_pitch;
    uint32_t *x = w->x;

    for (; p != end; p += 4, x += 2 * ROWS) {
        uint32_t r0 = mur_four(p) ^ flip, r1 = mur_four(p + pitch) ^ flip;
        uint32_t r2 = mur_four(p + 2 * pitch) ^ flip, r3 = mur_four(p + 3 * pitch) ^ flip;

        x[0] = mur_sxtab16(less, r0);
        x[1] = mur_sxtab16(less, r1);
        x[2] = mur_sxtab16(less, r2);
        x[3] = mur_sxtab16(less, r3);
        x[4] = mur_sxtab16_odd(less, r0);
        x[5] = mur_sxtab16_odd(less, r1);
        x[6] = mur_sxtab16_odd(less, r2);
        x[7] = mur_sxtab16_odd(less, r3);
    }
    for (int32_t i = 0; (w->layer->depth & 3) != 0 && i < ROWS; i++)
        put(w, x + i, ROWS, last_four(w, (const uint8_t *)end + i * pitch));
}

/* one of `rows` rows that take turns */
static void widen_one(const job *w, const uint8_t *a, uint32_t *x, int32_t rows)
{
    const uint8_t *end = a + (w->layer->depth & ~3);

    for (; a != end; a += 4)
        x = put(w, x, rows, mur_four((const int8_t *)a));
    if (w->layer->depth & 3)
        put(w, x, rows, last_four(w, a));
}

/* what b's zero point adds to the sums of one row, or of four by turns */
static void find_offsets(const job *w, int32_t turns, int32_t *offsets)
{
    const uint32_t ones = 0x10001, *end = w->x + w->words * turns;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

    if (w->layer->b_zero == 0)
        return;
    for (const uint32_t *x = w->x; x != end; x += turns) {
        s0 = mur_smlad(x[0], ones, s0);
        if (turns == 1)
            continue;
        s1 = mur_smlad(x[1], ones, s1);
        s2 = mur_smlad(x[2], ones, s2);
        s3 = mur_smlad(x[3], ones, s3);
    }
    offsets[0] = -w->layer->b_zero * s0;
    offsets[1] = -w->layer->b_zero * s1;
    offsets[2] = -w->layer->b_zero * s2;
    offsets[3] = -w->layer->b_zero * s3;
}

/* ---- the product ---- */

#if MUR_HAVE_DSP
/* a sum to an int8 by w->simple's multiplier */
/* clang-format off */
#define REQUANT(sum, twice, right, zero) \
    __asm__(MUR_DSP_REQUANT(%0, %1, %2, %3) \
            : "+r"(sum) \
            : "r"(twice), "r"(right), "r"(zero) \
            : "cc")
/* clang-format on */
#else
#define REQUANT(sum, twice, right, zero) \
    ((sum) = mur_dsp_output(sum, twice, (uint32_t)(right), zero))
#endif

/* sums of one or two columns and some rows to int8; two columns' sums lie ROWS apart */
static void finish_simple(const mur_matmul_s8 *layer, const int32_t *sums, const int32_t *offsets,
                          int32_t rows, int32_t columns, uint8_t *out)
{
    const uint32_t twice = 2 * (uint32_t)layer->mul;
    const int32_t right = -layer->shift, zero = layer->output.zero, pitch = layer->out_pitch;

    for (const int32_t *end = sums + rows; sums != end; sums++, offsets++, out += pitch) {
        int32_t first = sums[0] + *offsets, second = sums[ROWS] + *offsets;

        REQUANT(first, twice, right, zero);
        if (columns == 1) {
            *out = (uint8_t)first;
        } else {
            uint16_t both;

            REQUANT(second, twice, right, zero);
            both = (uint16_t)((uint8_t)first | (uint32_t)second << 8);
            __builtin_memcpy(out, &both, sizeof(both)); /* no call */
        }
    }
}

static void finish(const job *w, const int32_t *sums, const int32_t *offsets, int32_t rows,
                   int32_t columns, uint8_t *out)
{
    const mur_matmul_s8 *layer = w->layer;

    if (w->simple) {
        finish_simple(layer, sums, offsets, rows, columns, out);
        return;
    }
    for (int32_t i = 0; i < rows; i++, out += layer->out_pitch)
        for (int32_t j = 0; j < columns; j++)
            out[j] = mur_matmul_output(layer, sums[i + j * ROWS] + offsets[i]);
}

/* Four rows and pairs of columns with a simple multiplier. The order of members is the assembly's.
 */
typedef struct block {
    const uint32_t *x, *x_end, *w;
    uint8_t *out;
    int32_t pitch;
    uint32_t twice;
    int32_t right, zero, pairs;
    int32_t offsets[ROWS];
} block;

#if MUR_HAVE_DSP

/* clang-format off */
/* two sums of a row to bytes side by side */
#define FINISH_TWO(a, b) \
    MUR_DSP_REQUANT(a, r10, r11, r12) \
    MUR_DSP_REQUANT(b, r10, r11, r12) \
    "strb " #a ", [r8]\n" \
    "strb " #b ", [r8, #1]\n" \
    "add r8, r8, r9\n"

__attribute__((naked, noinline)) static void run_block(__attribute__((unused)) block *of)
{
    __asm__ volatile("push {r0, r4-r11, lr}\n"
                     "ldr lr, [r0, #8]\n"
                     "1: ldr r8, [sp]\n"
                     "ldr r12, [r8]\n"
                     "add r9, r8, #36\n"
                     "ldm r9, {r0-r3}\n"
                     "mov r4, r0\n"
                     "mov r5, r1\n"
                     "mov r6, r2\n"
                     "mov r7, r3\n"
                     "2:\n"
                     MUR_DSP_FOUR_MAC8
                     MUR_DSP_FOUR_MAC8
                     "ldr r8, [sp]\n"
                     "ldr r9, [r8, #4]\n"
                     "cmp r12, r9\n"
                     "bne 2b\n"
                     "add r8, r8, #12\n"
                     "ldm r8, {r8-r12}\n"
                     FINISH_TWO(r0, r4)
                     FINISH_TWO(r1, r5)
                     FINISH_TWO(r2, r6)
                     FINISH_TWO(r3, r7)
                     "ldr r8, [sp]\n"
                     "ldr r9, [r8, #12]\n"
                     "ldr r10, [r8, #32]\n"
                     "add r9, r9, #2\n"
                     "subs r10, r10, #1\n"
                     "str r9, [r8, #12]\n"
                     "str r10, [r8, #32]\n"
                     "bne 1b\n"
                     "pop {r0, r4-r11, pc}\n" ::
                         : "memory");
}
/* clang-format on */

#else

static void run_block(block *of)
{
    for (; of->pairs > 0; of->pairs--, of->out += 2) {
        int32_t sums[2 * ROWS];
        const mur_dsp_four run = { of->x, of->x_end, of->w, sums };

        mur_dsp_sum4(&run);
        of->w += (of->x_end - of->x) / ROWS;
        for (int32_t i = 0; i < 2 * ROWS; i++)
            of->out[i % ROWS * of->pitch + i / ROWS] = (uint8_t)mur_dsp_output(
                sums[i] + of->offsets[i % ROWS], of->twice, (uint32_t)of->right, of->zero);
    }
}

#endif

/* so many rows, widened in `turns` turns, with the panel */
static void multiply(const job *w, int32_t rows, int32_t turns, int32_t columns, uint8_t *out)
{
    int32_t offsets[ROWS] = { 0 }, sums[2 * ROWS];
    const uint32_t *b = w->panel;

    find_offsets(w, turns, offsets);
    if (w->simple && rows == ROWS && columns > 1) {
        const mur_matmul_s8 *layer = w->layer;
        const int32_t pairs = columns / 2;
        block whole = { w->x,
                        w->x + w->words * ROWS,
                        b,
                        out,
                        layer->out_pitch,
                        2 * (uint32_t)layer->mul,
                        -layer->shift,
                        layer->output.zero,
                        pairs,
                        { offsets[0], offsets[1], offsets[2], offsets[3] } };

        run_block(&whole);
        columns -= 2 * pairs;
        b += pairs * w->words;
        out += 2 * pairs;
    }
    for (; columns > 0; columns -= 2, b += w->words, out += 2) {
        if (turns == 1) {
            mur_dsp_sum1(w->x, w->x + w->words, b, sums);
        } else {
            const mur_dsp_four run = { w->x, w->x + w->words * ROWS, b, sums };

            mur_dsp_sum4(&run);
        }
        finish(w, sums, offsets, rows, columns > 1 ? 2 : 1, out);
    }
}

static void run_panel(const job *w, const uint8_t *a, int32_t columns, uint8_t *out)
{
    int32_t pitch = w->layer->a_pitch, left = w->layer->rows;

    for (; left >= ROWS; left -= ROWS, a += ROWS * pitch, out += ROWS * w->layer->out_pitch) {
        widen_four(w, a);
        multiply(w, ROWS, ROWS, columns, out);
    }
    if (left == 1) {
        widen_one(w, a, w->x, 1);
        multiply(w, 1, 1, columns, out);
    } else if (left > 1) { /* the last of them more than once */
        for (int32_t i = 0; i < ROWS; i++)
            widen_one(w, a + (i < left ? i : left - 1) * pitch, w->x + i, ROWS);
        multiply(w, left, ROWS, columns, out);
    }
}

/* ---- one row alone: b's bytes are read once, where they lie ---- */

/* two columns whose bytes lie side by side, the depth's whole words */
static __attribute__((noinline)) void sum_columns(const job *w, const uint8_t *first,
                                                  const uint8_t *second, int32_t *sums)
{
    const uint32_t *end = w->x + (w->layer->depth >> 2) * 2, flip = w->b_flip;
    const int8_t *p = (const int8_t *)first, *q = (const int8_t *)second;
    int32_t s0 = 0, s1 = 0;

    for (const uint32_t *x = w->x; x != end; x += 2, p += 4, q += 4) {
        uint32_t one = mur_four(p) ^ flip, other = mur_four(q) ^ flip;

        s0 = mur_smlad(x[0], mur_sxtb16(one), s0);
        s1 = mur_smlad(x[0], mur_sxtb16(other), s1);
        s0 = mur_smlad(x[1], mur_sxtb16_odd(one), s0);
        s1 = mur_smlad(x[1], mur_sxtb16_odd(other), s1);
    }
    sums[0] = s0;
    sums[1] = s1;
}

/* four columns whose rows lie side by side */
static __attribute__((noinline)) void sum_rows(const job *w, const uint8_t *b, int32_t *sums)
{
    const uint32_t *end = w->x + (w->layer->depth >> 2) * 2;
    const int8_t *p = (const int8_t *)b;
    int32_t row = w->layer->b_row, s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    uint32_t flip = w->b_flip, low = 0xffff;

    for (const uint32_t *x = w->x; x != end; p += row) {
        for (int32_t odd = 0; odd < 2; odd++, p += row) {
            uint32_t first = mur_four(p) ^ flip, third = mur_four(p + 2 * row) ^ flip;
            uint32_t left = (first & low) | third << 16, right = first >> 16 | (third & ~low);
            uint32_t two = *x++;

            s0 = mur_smlad(two, mur_sxtb16(left), s0);
            s1 = mur_smlad(two, mur_sxtb16_odd(left), s1);
            s2 = mur_smlad(two, mur_sxtb16(right), s2);
            s3 = mur_smlad(two, mur_sxtb16_odd(right), s3);
        }
        p += row;
    }
    sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}

/* from byte k of the depth on; x has bytes 0 and 2, then 1 and 3 */
static void sum_rest(const job *w, const uint8_t *b, int32_t k, int32_t columns, int32_t *sums)
{
    const mur_matmul_s8 *layer = w->layer;

    for (b += k * layer->b_row; k < layer->depth; k++, b += layer->b_row) {
        int32_t x = (int16_t)(w->x[(k >> 2) * 2 + (k & 1)] >> 8 * (k & 2));

        for (int32_t i = 0; i < columns; i++)
            sums[i] += x * (int8_t)(b[i * layer->b_column] ^ layer->b_flip);
    }
}

/* the sums of four columns, of which `columns` are there */
static void sum_four(const job *w, const uint8_t *b, int32_t columns, int32_t *sums)
{
    const int32_t step = w->layer->b_column;
    int32_t k = w->layer->depth & ~3;

    if (w->layer->b_row == 1) {
        for (int32_t i = 0; i < columns; i += 2)
            sum_columns(w, b + i * step, b + (i + 1 < columns ? i + 1 : i) * step, sums + i);
    } else if (step == 1 && columns == 4) {
        sum_rows(w, b, sums);
    } else {
        memset(sums, 0, 4 * sizeof(*sums));
        k = 0;
    }
    sum_rest(w, b, k, columns, sums);
}

/* outputs are finished as rows of one column */
static void run_row(const job *w, const uint8_t *b, uint8_t *out)
{
    mur_matmul_s8 layer = *w->layer;
    job turned = *w;
    int32_t offsets[ROWS] = { 0 };

    find_offsets(w, 1, offsets);
    offsets[1] = offsets[2] = offsets[3] = offsets[0];
    layer.out_pitch = 1;
    turned.layer = &layer;
    for (int32_t left = layer.columns; left > 0; left -= 4, b += 4 * layer.b_column, out += 4) {
        int32_t columns = left < 4 ? left : 4, sums[2 * ROWS] = { 0 };

        sum_four(&turned, b, columns, sums);
        finish(&turned, sums, offsets, columns, 1, out);
    }
}

void mur_dsp_matmul_s8(const mur_matmul_s8 *layer, const void *a, const void *b, void *out,
                       void *scratch)
{
    int32_t panel = 2 * mur_dsp_matmul_pairs(layer);
    job w;

    w.layer = layer;
    w.words = mur_dsp_matmul_words(layer);
    w.panel = scratch;
    w.x = w.panel + panel / 2 * w.words;
    w.simple = layer->output.kind == MUR_REQUANT_Q31 && layer->shift < 0 && layer->mul >= 1 << 30 &&
               layer->output.min == INT8_MIN && layer->output.max == INT8_MAX &&
               layer->out_flip == 0;
    w.a_flip = layer->a_flip * 0x01010101u;
    w.b_flip = layer->b_flip * 0x01010101u;
    w.a_less = (uint32_t)(uint16_t)-layer->a_zero * 0x10001u;
    if (layer->rows == 1) {
        w.x = scratch;
        widen_one(&w, a, w.x, 1);
        run_row(&w, b, out);
        return;
    }
    for (int32_t column = 0; column < layer->columns; column += panel) {
        int32_t left = layer->columns - column, columns = left < panel ? left : panel;

        pack_panel(&w, (const uint8_t *)b + column * layer->b_column, columns);
        run_panel(&w, a, columns, (uint8_t *)out + column);
    }
}
