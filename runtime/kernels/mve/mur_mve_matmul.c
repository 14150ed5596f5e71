/* mur_mve_matmul.c - products of two computed matrices.
 *
 * Sixteen of b's columns are packed by fours, vectors of each column side by side; then each row of
 * a is multiplied with them, where it lies or, of uint8, where its copy as int8 does. What b's zero
 * point takes from a sum is that times the sum of the row. Few rows are multiplied with b where it
 * lies. */
#include "mur_mve_matmul.h"

#include "mur_mve_dot.h"
#include "mur_mve_sums.h"

typedef struct job {
    const mur_matmul_s8 *layer;
    int8_t *panel, *x;
    int32_t bytes;  /* of four columns */
    int32_t simple; /* MUR_REQUANT_Q31, no shift to the left */
} job;

static int32_t sum_of(const int8_t *x, int32_t count)
{
    int32_t sum = 0;

#if MUR_HAVE_MVE
    for (; count > 0; count -= MUR_MVE_BYTES, x += MUR_MVE_BYTES)
        sum = vaddvaq_p_s8(sum, vldrbq_z_s8(x, vctp8q((uint32_t)count)), vctp8q((uint32_t)count));
#else
    for (int32_t k = 0; k < count; k++)
        sum += x[k];
#endif
    return sum;
}

/* bytes with or without a sign as int8 */
static inline void copy_flipped(int8_t *to, const uint8_t *from, uint8_t flip, int32_t count)
{
#if MUR_HAVE_MVE
    const int8x16_t flips = vdupq_n_s8((int8_t)flip);

    for (; count > 0; count -= MUR_MVE_BYTES, to += MUR_MVE_BYTES, from += MUR_MVE_BYTES) {
        mve_pred16_t inside = vctp8q((uint32_t)count);
        int8x16_t bytes = vldrbq_z_s8((const int8_t *)(const void *)from, inside);

        vstrbq_p_s8(to, veorq_s8(bytes, flips), inside);
    }
#else
    for (int32_t k = 0; k < count; k++)
        to[k] = (int8_t)(from[k] ^ flip);
#endif
}

/* the same of bytes that lie `step` apart, 16 at most */
static inline void gather_flipped(int8_t *to, const uint8_t *from, int32_t step, uint8_t flip,
                                  int32_t count)
{
#if MUR_HAVE_MVE
    const uint16x8_t at = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)step);
    const int16x8_t flips = vdupq_n_s16(flip);

    for (; step <= UINT16_MAX / 8 && count > 0; count -= 8, to += 8, from += 8 * step) {
        mve_pred16_t inside = vctp16q((uint32_t)count);
        int16x8_t bytes =
            vldrbq_gather_offset_z_s16((const int8_t *)(const void *)from, at, inside);

        vstrbq_p_s16(to, veorq_s16(bytes, flips), inside);
    }
#endif
    for (int32_t k = 0; k < count; k++)
        to[k] = (int8_t)(from[k * step] ^ flip);
}

/* bytes first.. of some columns, `length` of each side by side */
static void pack_piece(const mur_matmul_s8 *layer, const uint8_t *b, int32_t columns,
                       int32_t length, int8_t *to)
{
    const uint8_t flip = layer->b_flip;
    const int32_t row = layer->b_row, column = layer->b_column;

    for (; row == 1 && columns > 0; columns--, b += column, to += length)
        copy_flipped(to, b, flip, length);
    for (; columns > 0; columns--, b += column, to += length)
        gather_flipped(to, b, row, flip, length);
}

static void pack_panel(const job *w, const uint8_t *b, int32_t columns)
{
    const mur_matmul_s8 *layer = w->layer;

    for (int8_t *four = w->panel; columns > 0;
         columns -= 4, four += w->bytes, b += 4 * layer->b_column) {
        int32_t *bias = (void *)four, count = columns < 4 ? columns : 4;

        for (int32_t i = 0; i < 4; i++)
            bias[i] = layer->a_zero * layer->depth * layer->b_zero;
        for (int32_t k = 0; k < layer->depth; k += MUR_MVE_BYTES) {
            int32_t left = layer->depth - k, length = left < MUR_MVE_BYTES ? left : MUR_MVE_BYTES;
            int8_t *to = four + 16 + 4 * k;

            pack_piece(layer, b + k * layer->b_row, count, length, to);
            for (int32_t i = 0; layer->a_zero != 0 && i < count; i++)
                bias[i] -= layer->a_zero * sum_of(to + i * length, length);
        }
    }
}

#if MUR_HAVE_MVE

enum { COLUMNS = 16 }; /* whose sums are in registers */

/* outputs that are not simple, one after the other */
static __attribute__((noinline)) int32x4_t outputs_of(const mur_matmul_s8 *layer, int32x4_t sums)
{
    int32_t y[4];

    vstrwq_s32(y, sums);
    for (int32_t i = 0; i < 4; i++)
        y[i] = mur_matmul_output(layer, y[i]);
    return vldrwq_s32(y);
}

/* four sums, of which up to four are there, to outputs */
static inline __attribute__((always_inline)) void
put_four(const job *w, mur_mve_clamp clamp, int32x4_t sums, int32_t left, uint8_t *out)
{
    const mur_matmul_s8 *layer = w->layer;

    if (w->simple) {
        sums = mur_mve_scale_all(sums, layer->mul, layer->shift);
        sums = vminq_s32(vmaxq_s32(vaddq_n_s32(sums, clamp.zero), clamp.min), clamp.max);
        sums = veorq_s32(sums, vdupq_n_s32(layer->out_flip));
    } else {
        sums = outputs_of(layer, sums);
    }
    vstrbq_p_s32((int8_t *)out, sums, vctp32q((uint32_t)left));
}

static void put_some(const job *w, const int32_t sums[4], int32_t left, uint8_t *out)
{
    put_four(w, mur_mve_clamp_of(&w->layer->output), vldrwq_s32(sums), left, out);
}

/* one row of int8 with the panel */
static void run_row(const job *w, const int8_t *x, const int8_t *b, int32_t left, uint8_t *out)
{
    const mur_matmul_s8 *layer = w->layer;
    const mur_mve_clamp clamp = mur_mve_clamp_of(&layer->output);
    uint32_t vectors = (uint32_t)layer->depth / MUR_MVE_BYTES;
    uint32_t rest = (uint32_t)layer->depth % MUR_MVE_BYTES;
    int32_t offset = layer->b_zero == 0 ? 0 : layer->b_zero * sum_of(x, layer->depth);
    int8x16_t last = vldrbq_z_s8(x + vectors * MUR_MVE_BYTES, vctp8q(rest));

    for (const int8_t *four = b; left > 0; left -= 4, out += 4, four += w->bytes) {
        int32x4_t sums =
            mur_mve_sums(x, vectors, last, rest, (const int32_t *)(const void *)four, four + 16);

        put_four(w, clamp, vsubq_n_s32(sums, offset), left, out);
    }
}

/* one row of int8 with rows of at least COLUMNS bytes, so many columns at a time, the last ones
 * ending with the row */
static void run_broad(const job *w, const int8_t *x, const int8_t *b, int32_t columns, uint8_t *out)
{
    const mur_matmul_s8 *layer = w->layer;
    const int32_t depth = layer->depth, zero = layer->a_zero, last = columns - COLUMNS;
    const int32x4_t start = vdupq_n_s32(layer->b_zero * (zero * depth - sum_of(x, depth)));

    for (int32_t c = 0; c < columns; c += COLUMNS) {
        const int32_t at = c < last ? c : last;
        int32x4_t s0 = start, s1 = start, s2 = start, s3 = start;
        const int8_t *p = x, *from = b + at;
        int32_t sums[COLUMNS], factor;

        __asm__ volatile("dls lr, %7\n"
                         "1: ldrsb %6, [%4], #1\n"
                         "vldrb.s32 q0, [%5]\n"
                         "sub %6, %6, %9\n"
                         "vldrb.s32 q1, [%5, #4]\n"
                         "vmla.s32 %q0, q0, %6\n"
                         "vldrb.s32 q2, [%5, #8]\n"
                         "vmla.s32 %q1, q1, %6\n"
                         "vldrb.s32 q3, [%5, #12]\n"
                         "vmla.s32 %q2, q2, %6\n"
                         "add %5, %5, %8\n"
                         "vmla.s32 %q3, q3, %6\n"
                         "le lr, 1b\n"
                         : "+w"(s0), "+w"(s1), "+w"(s2), "+w"(s3), "+r"(p), "+l"(from),
                           "=&r"(factor)
                         : "r"(depth), "r"(layer->b_row), "r"(zero)
                         : "lr", "q0", "q1", "q2", "q3", "memory");
        vstrwq_s32(sums, s0);
        vstrwq_s32(sums + 4, s1);
        vstrwq_s32(sums + 8, s2);
        vstrwq_s32(sums + 12, s3);
        for (int32_t i = 0; i < COLUMNS; i += 4)
            put_some(w, sums + i, 4, out + at + i);
    }
}

static int is_broad(const mur_matmul_s8 *layer)
{
    return layer->rows <= MUR_MVE_FEW && layer->b_column == 1 && !layer->b_flip &&
           layer->columns >= COLUMNS;
}

#else

static void put_some(const job *w, const int32_t sums[4], int32_t left, uint8_t *out)
{
    for (int32_t i = 0; i < left && i < 4; i++)
        out[i] = mur_matmul_output(w->layer, sums[i]);
}

static int is_broad(const mur_matmul_s8 *layer)
{
    (void)layer;
    return 0;
}

static void run_broad(const job *w, const int8_t *x, const int8_t *b, int32_t columns, uint8_t *out)
{
    (void)w, (void)x, (void)b, (void)columns, (void)out;
}

static void run_row(const job *w, const int8_t *x, const int8_t *b, int32_t columns, uint8_t *out)
{
    const mur_matmul_s8 *layer = w->layer;
    int32_t offset = layer->b_zero * sum_of(x, layer->depth);

    for (int32_t c = 0; c < columns; c++) {
        const int8_t *four = b + (c >> 2) * w->bytes;

        out[c] =
            mur_matmul_output(layer, mur_mve_sum(x, layer->depth, four + 16, c & 3) +
                                         ((const int32_t *)(const void *)four)[c & 3] - offset);
    }
}

#endif

/* one row of int8 with columns where they lie */
static void run_direct(const job *w, const int8_t *x, const int8_t *b, int32_t columns,
                       uint8_t *out)
{
    const mur_matmul_s8 *layer = w->layer;
    const int32_t depth = layer->depth, step = layer->b_column, zero = layer->a_zero;
    const int32_t start = layer->b_zero * (zero * depth - sum_of(x, depth));

    for (int32_t left = columns; left > 0; left -= 4, out += 4) {
        int32_t sums[4] = { 0 };

        for (int32_t i = 0; i < 4 && i < left; i++, b += step)
            sums[i] = mur_mve_dot_less_s8(b, x, (uint32_t)depth, zero, start);
        put_some(w, sums, left, out);
    }
}

/* one row of int8 with the panel, or with b's columns */
typedef void multiply_row(const job *w, const int8_t *x, const int8_t *b, int32_t columns,
                          uint8_t *out);

static inline __attribute__((always_inline)) void run_rows(const job *w, multiply_row *of,
                                                           const uint8_t *a, const int8_t *b,
                                                           int32_t columns, uint8_t *out)
{
    const mur_matmul_s8 *layer = w->layer;

    for (int32_t i = 0; i < layer->rows; i++, a += layer->a_pitch, out += layer->out_pitch) {
        const int8_t *x = (const int8_t *)a;

        if (layer->a_flip) {
            copy_flipped(w->x, a, layer->a_flip, layer->depth);
            x = w->x;
        }
        of(w, x, b, columns, out);
    }
}

void mur_mve_matmul_s8(const mur_matmul_s8 *layer, const void *a, const void *b, void *out,
                       void *scratch)
{
    const int32_t panel = 4 * mur_mve_matmul_fours(layer), all = layer->columns;
    job w;

    w.layer = layer;
    w.bytes = mur_mve_matmul_bytes(layer);
    w.panel = scratch;
    w.x = w.panel + mur_mve_matmul_panel(layer);
    w.simple = layer->output.kind == MUR_REQUANT_Q31 && layer->shift <= 0;
    if (mur_mve_matmul_is_direct(layer)) {
        run_rows(&w, run_direct, a, b, all, out);
        return;
    }
    if (is_broad(layer)) {
        run_rows(&w, run_broad, a, b, all, out);
        return;
    }
    for (int32_t column = 0; column < all; column += panel) {
        int32_t left = all - column, columns = left < panel ? left : panel;

        pack_panel(&w, (const uint8_t *)b + column * layer->b_column, columns);
        run_rows(&w, run_row, a, w.panel, columns, (uint8_t *)out + column);
    }
}
