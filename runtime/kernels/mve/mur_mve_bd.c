/* mur_mve_bd.c - BlockDialect matrices in vectors of 16 bytes: a table has the two levels of every
 * byte, for each dialect, so that eight bytes of codes gather sixteen levels. Two rows at once
 * share what is loaded of the vector.
 */
#include "mur_bd_arith.h"
#include "mur_decoder.h"
#include "mur_mve_rows.h"

#include <string.h>

#define MUR_BD_PAIR(a, b) ((uint16_t)(uint8_t)(a) | (uint16_t)((uint8_t)(b) << 8))

static const uint16_t level_pairs[MUR_BD_DIALECTS][256] = {
#include "mur_bd_pairs.h"
};

/* Rows of a matrix, two by two, times a vector. The assembly knows the offsets. */
typedef struct bd_pairs {
    const uint8_t *w; /* the first row */
    uint32_t row_bytes;
    const int8_t *x;
    uint32_t blocks, rest; /* whole ones, and columns after them */
    const int8_t *last;    /* [MUR_BD_ELEMS] these columns, filled up with zeros */
    int32_t *sums, *end;   /* of the rows, a whole number of pairs */
    const uint16_t (*pairs)[256];
} bd_pairs;

#if MUR_HAVE_MVE

/* 32 columns of two rows, at r0 and r1, times x, at r2; r9: the table, r3, r5: the rows' sums. r4,
 * r6: where a row's levels are, then the sum of its block */
#define BLOCK \
    "ldrb       r7, [r0], #1\n\t" \
    "ldrb       r8, [r1], #1\n\t" \
    "vldrb.u16  q2, [r0], #8\n\t" \
    "lsrs       r4, r7, #4\n\t" \
    "vldrb.u16  q3, [r1], #8\n\t" \
    "add        r4, r9, r4, lsl #9\n\t" \
    "lsr        r6, r8, #4\n\t" \
    "vldrh.u16  q6, [r4, q2, uxtw #1]\n\t" \
    "add        r6, r9, r6, lsl #9\n\t" \
    "vldrb.u16  q4, [r0], #8\n\t" \
    "vldrh.u16  q7, [r6, q3, uxtw #1]\n\t" \
    "vldrb.u16  q5, [r1], #8\n\t" \
    "vldrh.u16  q2, [r4, q4, uxtw #1]\n\t" \
    "and        r7, r7, #15\n\t" \
    "vldrh.u16  q3, [r6, q5, uxtw #1]\n\t" \
    "and        r8, r8, #15\n\t" \
    "vldrb.8    q0, [r2], #16\n\t" \
    "vmladav.s8 r4, q6, q0\n\t" \
    "vldrb.8    q1, [r2], #16\n\t" \
    "vmladav.s8 r6, q7, q0\n\t" \
    "vmladava.s8 r4, q2, q1\n\t" \
    "vmladava.s8 r6, q3, q1\n\t" \
    "mla        r3, r4, r7, r3\n\t" \
    "mla        r5, r6, r8, r5\n\t"

/* A function of its own, for all registers. */
__attribute__((naked, noinline)) static void sum_pairs(const bd_pairs *g __attribute__((unused)))
{
    __asm__ volatile("push       {r4-r11, lr}\n\t"
                     "vpush      {d8-d15}\n\t"
                     "mov        r10, r0\n\t"
                     "ldr        r9, [r10, #32]\n\t"
                     "ldr        r12, [r10]\n\t"
                     "ldr        r11, [r10, #24]\n"
                     "1:\n\t"
                     "ldr        r1, [r10, #4]\n\t"
                     "ldrd       r2, r7, [r10, #8]\n\t"
                     "mov        r0, r12\n\t"
                     "add        r1, r12, r1\n\t"
                     "movs       r3, #0\n\t"
                     "rsb        r12, r12, r1, lsl #1\n\t"
                     "movs       r5, #0\n\t"
                     "wls        lr, r7, 3f\n"
                     "2:\n\t" BLOCK "le         lr, 2b\n"
                     "3:\n\t"
                     "ldrd       r7, r2, [r10, #16]\n\t"
                     "cmp        r7, #0\n\t"
                     "beq        4f\n\t" BLOCK "4:\n\t"
                     "ldr        r7, [r10, #28]\n\t"
                     "strd       r3, r5, [r11], #8\n\t"
                     "cmp        r11, r7\n\t"
                     "bne        1b\n\t"
                     "vpop       {d8-d15}\n\t"
                     "pop        {r4-r11, pc}\n\t");
}

#else

static int32_t sum_block(const uint8_t *block, const uint16_t *levels, const int8_t *x,
                         uint32_t count)
{
    int32_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += (int8_t)(levels[block[1 + i / 2]] >> i % 2 * 8) * x[i];
    return sum * (*block & MUR_BD_FACTOR);
}

static void sum_pairs(const bd_pairs *g)
{
    const uint8_t *block, *row = g->w;

    for (int32_t *sum = g->sums; sum < g->end; sum++, row += g->row_bytes) {
        const int8_t *x = g->x;

        *sum = 0;
        for (block = row; x < g->x + g->blocks * MUR_BD_ELEMS; x += MUR_BD_ELEMS) {
            *sum += sum_block(block, g->pairs[*block >> 4], x, MUR_BD_ELEMS);
            block += MUR_BD_BYTES;
        }
        if (g->rest != 0)
            *sum += sum_block(block, g->pairs[*block >> 4], g->last, g->rest);
    }
}

#endif

/* out[i] = (float)sums[i] * (scale * scales[i]) of some rows */
static void finish(const int32_t sums[MUR_MVE_SOME], uint32_t count, float scale,
                   const uint16_t *scales, float *out)
{
    uint32_t n = 0;

#if MUR_HAVE_MVE && (__ARM_FEATURE_MVE & 2)
    if (mur_mve_are_normal(scale, scales, count))
        for (; n + 4 <= count; n += 4)
            mur_mve_scale_halves(vldrwq_s32(sums + n), scale, scales + n, out + n);
#endif
    for (; n < count; n++)
        out[n] = (float)sums[n] * (scale * mur_half(scales[n]));
}

static void multiply(const mur_matrix_low *matrix, const int8_t *x, float scale, float *out)
{
    uint32_t k = matrix->k, rest = k % MUR_BD_ELEMS;
    int8_t last[MUR_BD_ELEMS] = { 0 };
    int32_t sums[MUR_MVE_SOME];

    memcpy(last, x + k - rest, rest);
    for (uint32_t n = 0, count; n < matrix->n; n += count) {
        uint32_t left = matrix->n - n;
        bd_pairs g = { mur_bd_row(matrix, n),
                       mur_bd_row_bytes(k),
                       x,
                       k / MUR_BD_ELEMS,
                       rest,
                       last,
                       sums,
                       sums,
                       level_pairs };

        count = left < MUR_MVE_SOME ? left - left % 2 : MUR_MVE_SOME;
        if (count == 0) /* the last row twice */
            g.row_bytes = 0, count = 1;
        g.end += count + count % 2;
        sum_pairs(&g);
        finish(sums, count, scale, (const uint16_t *)matrix->packed + n, out + n);
    }
}

void mur_mve_linear_bd(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                       const float *scales, float *out)
{
    const int8_t *x = vectors;

    for (; rows != 0; rows--, x += MUR_REF_VECTOR_BYTES(matrix->k), out += matrix->n) {
        multiply(matrix, x, *scales++, out);
        for (uint32_t i = 0; matrix->bias && i < matrix->n; i++)
            out[i] += matrix->bias[i];
    }
}
