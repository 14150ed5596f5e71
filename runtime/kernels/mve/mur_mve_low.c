/* mur_mve_low.c - matrices of 2 and 4 bits in vectors of 16 bytes; mur_mve_low.h has their form.
 *
 * A byte of indices is a signed number itself: a + 4 b + 16 c + 64 d, d in -2..1, or a + 16 b, b in
 * -8..7. Its products with x are summed as they are, and again with the uppermost index masked
 * off, and so on; the differences are the rows' sums. A load, three ANDs and four multiply-adds do
 * 64 weights of 2 bits.
 */
#include "mur_decoder.h"
#include "mur_low.h"
#include "mur_low_arith.h"
#include "mur_mve.h"
#include "mur_mve_rows.h"
#include "mur_mve_low.h"

#if MUR_HAVE_MVE

static inline int32_t total_of(const int8_t *x, uint32_t k)
{
    int32_t total = 0;

    for (; k >= MUR_MVE_BYTES; k -= MUR_MVE_BYTES, x += MUR_MVE_BYTES)
        total = vaddvaq_s8(total, vldrbq_s8(x));
    return vaddvaq_s8(total, vldrbq_z_s8(x, vctp8q(k)));
}

/* g to r0 to r3, r9 and r12, zero sums to r4, r6, r8 and r10; then the next four's w in r1 */
#define BEGIN \
    "push       {r4-r11, lr}\n\t" \
    "vpush      {d8-d9}\n\t" \
    "ldrd       r2, r3, [r0, #16]\n\t" \
    "ldrd       r5, r12, [r0, #8]\n\t" \
    "ldrd       r1, r9, [r0]\n"
#define FOUR \
    "1:\n\t" \
    "movs       r4, #0\n\t" \
    "movs       r6, #0\n\t" \
    "mov        r8, r4\n\t" \
    "mov        r10, r4\n\t" \
    "mov        r0, r5\n\t" \
    "mov        r7, r1\n\t" \
    "add        r11, r1, r12\n\t" \
    "add        r1, r1, r9\n\t" \
    "dlstp.8    lr, r12\n" \
    "2:\n\t"
#define END \
    "letp       lr, 2b\n\t" \
    "stm        r2!, {r4, r6, r8, r10}\n\t" \
    "cmp        r2, r3\n\t" \
    "bne        1b\n\t" \
    "vpop       {d8-d9}\n\t" \
    "pop        {r4-r11, pc}\n\t"

/* Sum i of four rows: with as many of them as lie below row i + 1. Functions of their own, for all
 * registers. */
__attribute__((naked, noinline)) static void masked_2(const mur_mve_fours *g
                                                      __attribute__((unused)))
{
    __asm__ volatile(BEGIN "vmov.i8    q2, #0x3f\n\t"
                           "vmov.i8    q3, #0x0f\n\t"
                           "vmov.i8    q4, #0x03\n" FOUR "vldrb.8    q0, [r0], #16\n\t"
                           "vldrb.8    q1, [r7], #16\n\t"
                           "vmladava.s8 r10, q0, q1\n\t"
                           "vand       q1, q1, q2\n\t"
                           "vmladava.s8 r8, q0, q1\n\t"
                           "vand       q1, q1, q3\n\t"
                           "vmladava.s8 r6, q0, q1\n\t"
                           "vand       q1, q1, q4\n\t"
                           "vmladava.s8 r4, q0, q1\n\t" END);
}

/* Sums 0 and 2: of rows 0 and 2; sums 1 and 3: with rows 1 and 3. */
__attribute__((naked, noinline)) static void masked_4(const mur_mve_fours *g
                                                      __attribute__((unused)))
{
    __asm__ volatile(BEGIN "vmov.i8    q2, #0x0f\n" FOUR "vldrb.8    q0, [r0], #16\n\t"
                           "vldrb.8    q1, [r7], #16\n\t"
                           "vmladava.s8 r6, q0, q1\n\t"
                           "vand       q1, q1, q2\n\t"
                           "vmladava.s8 r4, q0, q1\n\t"
                           "vldrb.8    q1, [r11], #16\n\t"
                           "vmladava.s8 r10, q0, q1\n\t"
                           "vand       q1, q1, q2\n\t"
                           "vmladava.s8 r8, q0, q1\n\t" END);
}

#else

static inline int32_t total_of(const int8_t *x, uint32_t k)
{
    int32_t total = 0;

    for (uint32_t i = 0; i < k; i++)
        total += x[i];
    return total;
}

static inline int32_t masked_sum(const int8_t *w, const int8_t *x, uint32_t k, int32_t mask)
{
    int32_t sum = 0;

    for (uint32_t i = 0; i < k; i++)
        sum += (int8_t)(w[i] & mask) * x[i];
    return sum;
}

static void masked_2(const mur_mve_fours *g)
{
    const int8_t *w = g->w;

    for (int32_t *s = g->sums; s < g->end; s += MUR_MVE_FOUR, w += g->step)
        for (uint32_t r = 0; r < MUR_MVE_FOUR; r++)
            s[r] = masked_sum(w, g->x, g->k, (4 << 2 * r) - 1);
}

static void masked_4(const mur_mve_fours *g)
{
    const int8_t *w = g->w;

    for (int32_t *s = g->sums; s < g->end; s += MUR_MVE_FOUR, w += g->step)
        for (uint32_t r = 0; r < MUR_MVE_FOUR; r++)
            s[r] = masked_sum(w + r / 2 * g->k, g->x, g->k, r % 2 ? 255 : 15);
}

#endif

/* sums of levels of four rows of masked ones */
static inline void unmask(uint32_t bits, const int32_t s[MUR_MVE_FOUR], int32_t total,
                          int32_t sums[MUR_MVE_FOUR])
{
    if (bits == 2) {
        sums[0] = 2 * s[0] - 3 * total;
        sums[1] = (s[1] - s[0]) / 2 - 3 * total;
        sums[2] = (s[2] - s[1]) / 8 - 3 * total;
        sums[3] = (s[3] - s[2]) / 32 + total;
    } else {
        sums[0] = 2 * s[0] - 15 * total;
        sums[1] = (s[1] - s[0]) / 8 + total;
        sums[2] = 2 * s[2] - 15 * total;
        sums[3] = (s[3] - s[2]) / 8 + total;
    }
}

/* out[i] = (float)sum i * (scale * scales[i]) of four rows, or of those that are left */
static inline void finish_some(uint32_t bits, const int32_t s[MUR_MVE_FOUR], int32_t total,
                               float scale, const uint16_t *scales, uint32_t left, float *out)
{
    int32_t sums[MUR_MVE_FOUR];

    unmask(bits, s, total, sums);
    for (uint32_t r = 0; r < MUR_MVE_FOUR && r < left; r++)
        out[r] = (float)sums[r] * (scale * mur_half(scales[r]));
}

#if MUR_HAVE_MVE && (__ARM_FEATURE_MVE & 2)

/* The same of whole fours of `count` rows if they can be ended in vectors; returns how many rows
 * are done. */
static inline uint32_t finish_fours(uint32_t bits, const int32_t *s, uint32_t count, int32_t total,
                                    float scale, const uint16_t *scales, float *out)
{
    static const int32_t masks[2][MUR_MVE_FOUR] = { { 0, -1, -1, -1 }, { 0, -1, 0, -1 } };
    static const int32_t shifts[2][MUR_MVE_FOUR] = { { 1, -1, -3, -5 }, { 1, -3, 1, -3 } };
    static const int32_t times[2][MUR_MVE_FOUR] = { { -3, -3, -3, 1 }, { -15, 1, -15, 1 } };
    const int32x4_t mask = vldrwq_s32(masks[bits == 4]), shift = vldrwq_s32(shifts[bits == 4]);
    const int32x4_t more = vmulq_n_s32(vldrwq_s32(times[bits == 4]), total);

    if (!mur_mve_are_normal(scale, scales, count))
        return 0;
    /* what is not before row 0, and row 2 of 4 bits, is left out */
    for (uint32_t left = count / MUR_MVE_FOUR; left > 0; left--) {
        int32x4_t sums = vsubq_s32(vldrwq_s32(s), vandq_s32(vldrwq_s32(s - 1), mask));

        mur_mve_scale_halves(vaddq_s32(vshlq_s32(sums, shift), more), scale, scales, out);
        s += MUR_MVE_FOUR, scales += MUR_MVE_FOUR, out += MUR_MVE_FOUR;
    }
    return count & ~(MUR_MVE_FOUR - 1u);
}

#else

static inline uint32_t finish_fours(uint32_t bits, const int32_t *s, uint32_t count, int32_t total,
                                    float scale, const uint16_t *scales, float *out)
{
    (void)bits, (void)s, (void)count, (void)total, (void)scale, (void)scales, (void)out;
    return 0;
}

#endif

static inline void multiply_vector(uint32_t bits, const mur_matrix_low *matrix, const int8_t *x,
                                   float scale, float *out)
{
    const int8_t *w = (const int8_t *)matrix->packed + mur_mve_low_streams(matrix->n);
    const uint16_t *scales = matrix->packed;
    uint32_t k = matrix->k, step = MUR_MVE_FOUR * bits / 8 * k;
    int32_t masked[1 + MUR_MVE_SOME], total = total_of(x, k), *const sums = masked + 1;

    masked[0] = 0; /* what is before row 0 */
    for (uint32_t n = 0; n < matrix->n; n += MUR_MVE_SOME, scales += MUR_MVE_SOME) {
        uint32_t count = matrix->n - n < MUR_MVE_SOME ? matrix->n - n : MUR_MVE_SOME;
        const mur_mve_fours g = { w + n / MUR_MVE_FOUR * step,
                                  step,
                                  x,
                                  k,
                                  sums,
                                  sums + (count + 3) / MUR_MVE_FOUR * MUR_MVE_FOUR };

        if (bits == 2)
            masked_2(&g);
        else
            masked_4(&g);
        for (uint32_t r = finish_fours(bits, sums, count, total, scale, scales, out + n); r < count;
             r += MUR_MVE_FOUR)
            finish_some(bits, sums + r, total, scale, scales + r, count - r, out + n + r);
    }
}

static inline void multiply(uint32_t bits, const mur_matrix_low *matrix, uint32_t rows,
                            const void *vectors, const float *scales, float *out)
{
    const int8_t *x = vectors;

    for (; rows != 0; rows--, x += MUR_REF_VECTOR_BYTES(matrix->k), out += matrix->n) {
        multiply_vector(bits, matrix, x, *scales++, out);
        for (uint32_t i = 0; matrix->bias && i < matrix->n; i++)
            out[i] += matrix->bias[i];
    }
}

void mur_mve_linear_q2(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                       const float *scales, float *out)
{
    multiply(2, matrix, rows, vectors, scales, out);
}

void mur_mve_linear_q4(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                       const float *scales, float *out)
{
    multiply(4, matrix, rows, vectors, scales, out);
}

static void embed(uint32_t bits, const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens,
                  float *out)
{
    const uint8_t *streams = (const uint8_t *)matrix->packed + mur_mve_low_streams(matrix->n);
    const uint16_t *scales = matrix->packed;
    int32_t most = mur_low_most(bits);

    for (; rows != 0; rows--, tokens++, out += matrix->k) {
        uint32_t shift, flip, row = (uint32_t)*tokens;
        const uint8_t *w = streams + mur_mve_low_place(bits, matrix->k, row, 0, &shift, &flip);
        float scale = mur_half(scales[row]);

        for (uint32_t i = 0; i < matrix->k; i++)
            out[i] = (float)(2 * ((w[i] >> shift & most) ^ (int32_t)flip) - most) * scale;
    }
}

void mur_mve_embed_q2(const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens,
                      float *out)
{
    embed(2, matrix, rows, tokens, out);
}

void mur_mve_embed_q4(const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens,
                      float *out)
{
    embed(4, matrix, rows, tokens, out);
}
