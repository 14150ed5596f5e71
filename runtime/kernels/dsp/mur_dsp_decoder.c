/* mur_dsp_decoder.c - matrices of a decoder on cores with SMLAD; see mur_dsp_pair.h.
 *
 * A matrix: groups of four rows; of each group, for every four columns, the words of pairs (rows 0
 * 1, columns 0 1), (0 1, 2 3), (2 3, 0 1), (2 3, 2 3).
 */
#include "mur_decoder.h"
#include "mur_dsp_pair.h"

enum { GROUP = 4, QUAD = 4 }; /* rows, columns */

/* What a column of groups of four rows is multiplied by, and where to. */
typedef struct groups {
    const uint32_t *w;
    const int16_t *x;
    const float *scales;
    float *y;
    uint32_t count;        /* of groups, at least 1 */
    uint32_t rounds, rest; /* quads of columns are 4 * rounds + rest */
    float scale;           /* of x */
} groups;

/* the sums of a group over all columns; returns where the next group begins */
static const uint32_t *sum_group(const groups *g, const uint32_t *w, int32_t *sums)
{
    const int16_t *x = g->x;
    uint32_t left = 4 * g->rounds + g->rest;

    while (left != 0) {
        uint32_t piece = left < MUR_PAIR_MOST / QUAD ? left : MUR_PAIR_MOST / QUAD;
        mur_pair_sum low = { 0, 0 }, high = { 0, 0 };

        left -= piece;
        for (; piece != 0; piece--, w += QUAD, x += QUAD) {
            mur_pair_step(&low, w[0], mur_two(x));
            mur_pair_step(&low, w[1], mur_two(x + 2));
            mur_pair_step(&high, w[2], mur_two(x));
            mur_pair_step(&high, w[3], mur_two(x + 2));
        }
        sums[0] += mur_pair_first(low);
        sums[1] += mur_pair_second(low);
        sums[2] += mur_pair_first(high);
        sums[3] += mur_pair_second(high);
    }
    return w;
}

/* any number of columns; ends as multiply_groups does */
static void multiply_long(groups *g)
{
    const uint32_t *w = g->w;

    for (; g->count != 0; g->count--, g->scales += GROUP, g->y += GROUP) {
        int32_t sums[GROUP] = { 0 };

        w = sum_group(g, w, sums);
        for (uint32_t i = 0; i < GROUP; i++)
            g->y[i] = (float)sums[i] * (g->scale * g->scales[i]);
    }
}

#if MUR_HAVE_DSP && defined(__ARM_FP) && (__ARM_FP & 4)

/* 14 instructions for 16 weights; r0: w, r1: x; sums of pairs: r3 and r9, r11 and r12 */
#define QUAD_STEP \
    "ldmia  r0!, {r4-r7}\n\t" \
    "ldrd   r8, r10, [r1], #8\n\t" \
    "smlad  r3, r4, r8, r3\n\t" \
    "sxtb16 r4, r4\n\t" \
    "smlad  r11, r6, r8, r11\n\t" \
    "sxtb16 r6, r6\n\t" \
    "smlad  r9, r4, r8, r9\n\t" \
    "smlad  r12, r6, r8, r12\n\t" \
    "smlad  r3, r5, r10, r3\n\t" \
    "sxtb16 r5, r5\n\t" \
    "smlad  r11, r7, r10, r11\n\t" \
    "sxtb16 r7, r7\n\t" \
    "smlad  r9, r5, r10, r9\n\t" \
    "smlad  r12, r7, r10, r12\n\t"

/* At most MUR_PAIR_MOST columns. Moves g->scales and g->y on; g->count ends as 0. A function of its
 * own, for all registers. */
__attribute__((naked, noinline)) static void multiply_groups(groups *g __attribute__((unused)))
{
    __asm__ volatile("push   {r4-r11, lr}\n\t"
                     "mov    lr, r0\n\t"
                     "vldr   s0, [lr, #28]\n\t"
                     "ldr    r0, [lr]\n"
                     "1:\n\t"
                     "ldr    r1, [lr, #4]\n\t"
                     "ldr    r2, [lr, #20]\n\t"
                     "movs   r3, #0\n\t"
                     "mov    r9, r3\n\t"
                     "mov    r11, r3\n\t"
                     "mov    r12, r3\n\t"
                     "cmp    r2, #0\n\t"
                     "beq.w  3f\n"
                     "2:\n\t" QUAD_STEP QUAD_STEP QUAD_STEP QUAD_STEP "subs   r2, #1\n\t"
                     "bne    2b\n"
                     "3:\n\t"
                     "ldr    r2, [lr, #24]\n\t"
                     "cbz    r2, 5f\n"
                     "4:\n\t" QUAD_STEP "subs   r2, #1\n\t"
                     "bne    4b\n"
                     "5:\n\t"
                     "subs   r3, r3, r9\n\t"
                     "asrs   r3, r3, #8\n\t"
                     "sub    r11, r11, r12\n\t"
                     "asr    r11, r11, #8\n\t"
                     "vmov   s4, s5, r9, r3\n\t"
                     "vmov   s6, s7, r12, r11\n\t"
                     "ldrd   r4, r5, [lr, #8]\n\t"
                     "ldr    r6, [lr, #16]\n\t"
                     "vldmia r4!, {s8-s11}\n\t"
                     "vcvt.f32.s32 s4, s4\n\t"
                     "vcvt.f32.s32 s5, s5\n\t"
                     "vcvt.f32.s32 s6, s6\n\t"
                     "vcvt.f32.s32 s7, s7\n\t"
                     "vmul.f32 s8, s8, s0\n\t"
                     "vmul.f32 s9, s9, s0\n\t"
                     "vmul.f32 s10, s10, s0\n\t"
                     "vmul.f32 s11, s11, s0\n\t"
                     "vmul.f32 s4, s4, s8\n\t"
                     "vmul.f32 s5, s5, s9\n\t"
                     "vmul.f32 s6, s6, s10\n\t"
                     "vmul.f32 s7, s7, s11\n\t"
                     "vstmia r5!, {s4-s7}\n\t"
                     "strd   r4, r5, [lr, #8]\n\t"
                     "subs   r6, #1\n\t"
                     "str    r6, [lr, #16]\n\t"
                     "bne    1b\n\t"
                     "pop    {r4-r11, pc}\n\t");
}

#else

static void multiply_groups(groups *g)
{
    multiply_long(g);
}

#endif

/* the last rows, fewer than a group, where g stands after the others */
static void multiply_rest(const groups *g, const uint32_t *w, uint32_t rows)
{
    int32_t sums[GROUP] = { 0 };

    sum_group(g, w, sums);
    for (uint32_t i = 0; i < rows; i++)
        g->y[i] = (float)sums[i] * (g->scale * g->scales[i]);
}

void mur_dsp_linear(const mur_matrix_q8 *matrix, uint32_t rows, const void *vectors,
                    const float *scales, float *out)
{
    uint32_t quads = (matrix->k + QUAD - 1) / QUAD, count = matrix->n / GROUP;
    const uint32_t *w = matrix->packed;
    const int16_t *x = vectors;

    for (; rows != 0; rows--, x += QUAD * quads, scales++, out += matrix->n) {
        groups g = { w, x, matrix->scales, out, count, quads / 4, quads % 4, *scales };

        if (count != 0 && matrix->k <= MUR_PAIR_MOST)
            multiply_groups(&g);
        else
            multiply_long(&g);
        if (matrix->n % GROUP != 0)
            multiply_rest(&g, w + (size_t)count * GROUP * quads, matrix->n % GROUP);
        for (uint32_t i = 0; matrix->bias && i < matrix->n; i++)
            out[i] += matrix->bias[i];
    }
}

void mur_dsp_embed(const mur_matrix_q8 *matrix, uint32_t rows, const int32_t *tokens, float *out)
{
    uint32_t quads = (matrix->k + QUAD - 1) / QUAD;

    for (; rows != 0; rows--, tokens++, out += matrix->k) {
        uint32_t row = (uint32_t)*tokens;
        const int16_t *w = (const int16_t *)matrix->packed + row / GROUP * quads * 8;
        float scale = matrix->scales[row];

        w += row % GROUP / 2 * 4;
        for (uint32_t i = 0; i < matrix->k; i++) {
            int16_t pair = w[i / QUAD * 8 + i % QUAD];
            int32_t q = row % 2 ? mur_pair_of_second(pair) : mur_pair_of_first(pair);

            out[i] = (float)q * scale;
        }
    }
}
