/* mur_mve_decoder.c - matrices and vectors of a decoder in vectors of 16 bytes: vectors and
 * matrices lie as mur_ref_decoder.c has them.
 */
#include "mur_decoder.h"
#include "mur_decoder_arith.h"
#include "mur_mve_dot.h"
#include "mur_mve_rows.h"

/* scales of rows that are not smaller have a normal product with one of a vector that is not,
 * either */
#define LEAST_ROW 0x1p-30f

#if MUR_HAVE_MVE && (__ARM_FEATURE_MVE & 2)

/* Lanes that flush small numbers to zero do no harm here: what they flush rounds to zero. */
static float quantize(const float *x, uint32_t count, int8_t *q)
{
    uint32_t most_bits = 0, i = 0;
    float most, inverse;

    for (; i + 4 <= count; i += 4)
        most_bits = vmaxvq_u32(most_bits,
                               vshlq_n_u32(vldrwq_u32((const uint32_t *)(const void *)(x + i)), 1));
    for (; i < count; i++)
        most_bits = mur_greater(most_bits, x[i]);
    most = mur_float_of(most_bits >> 1);
    inverse = most < MUR_LEAST ? 0.0f : 127.0f / most;
    for (i = 0; i + 4 <= count; i += 4)
        vstrbq_s32(q + i, vreinterpretq_s32_f32(
                              vaddq_n_f32(vmulq_n_f32(vldrwq_f32(x + i), inverse), MUR_SNAP)));
    for (; i < count; i++)
        q[i] = (int8_t)mur_round(x[i] * inverse);
    return most < MUR_LEAST ? 0.0f : most / 127.0f;
}

/* The sums of four rows of k elements. sp: x. A function of its own, for all registers. */
__attribute__((naked, noinline)) static void multiply_fours(const mur_mve_fours *g
                                                            __attribute__((unused)))
{
    __asm__ volatile("push       {r4-r11, lr}\n\t"
                     "sub        sp, #4\n\t"
                     "ldrd       r2, r3, [r0, #16]\n\t"
                     "ldrd       r4, r12, [r0, #8]\n\t"
                     "ldr        r1, [r0]\n\t"
                     "str        r4, [sp]\n"
                     "1:\n\t"
                     "ldr        r0, [sp]\n\t"
                     "mov        r7, r1\n\t"
                     "add        r11, r1, r12\n\t"
                     "movs       r4, #0\n\t"
                     "add        r9, r11, r12\n\t"
                     "movs       r6, #0\n\t"
                     "add        r5, r9, r12\n\t"
                     "mov        r8, r4\n\t"
                     "add        r1, r5, r12\n\t"
                     "mov        r10, r4\n\t"
                     "dlstp.8    lr, r12\n"
                     "2:\n\t"
                     "vldrb.8    q0, [r0], #16\n\t"
                     "vldrb.8    q1, [r7], #16\n\t"
                     "vmladava.s8 r4, q0, q1\n\t"
                     "vldrb.8    q1, [r11], #16\n\t"
                     "vmladava.s8 r6, q0, q1\n\t"
                     "vldrb.8    q1, [r9], #16\n\t"
                     "vmladava.s8 r8, q0, q1\n\t"
                     "vldrb.8    q1, [r5], #16\n\t"
                     "vmladava.s8 r10, q0, q1\n\t"
                     "letp       lr, 2b\n\t"
                     "stm        r2!, {r4, r6, r8, r10}\n\t"
                     "cmp        r2, r3\n\t"
                     "bne        1b\n\t"
                     "add        sp, #4\n\t"
                     "pop        {r4-r11, pc}\n\t");
}

/* out[i] = (float)sums[i] * (scale * scales[i]) where no product has to be rounded to what vectors
 * flush to zero; if there may be one, 0 and nothing is written */
static inline int finish_four(const int32_t sums[MUR_MVE_FOUR], float scale, const float *scales,
                              float *out)
{
    float32x4_t factors = vldrwq_f32(scales);

    if (vminnmvq_f32(LEAST_ROW, factors) < LEAST_ROW || scale < MUR_LEAST_VECTOR)
        return 0;
    vstrwq_f32(out, vmulq_f32(vcvtq_f32_s32(vldrwq_s32(sums)), vmulq_n_f32(factors, scale)));
    return 1;
}

#else

static float quantize(const float *x, uint32_t count, int8_t *q)
{
    float most = mur_most(x, count), inverse = most < MUR_LEAST ? 0.0f : 127.0f / most;

    for (uint32_t i = 0; i < count; i++)
        q[i] = (int8_t)mur_round(x[i] * inverse);
    return most < MUR_LEAST ? 0.0f : most / 127.0f;
}

static void multiply_fours(const mur_mve_fours *g)
{
    const int8_t *w = g->w;

    for (int32_t *sum = g->sums; sum < g->end; sum++, w += g->k) {
        *sum = 0;
        for (uint32_t i = 0; i < g->k; i++)
            *sum += w[i] * g->x[i];
    }
}

static inline int finish_four(const int32_t sums[MUR_MVE_FOUR], float scale, const float *scales,
                              float *out)
{
    (void)sums, (void)scale, (void)scales, (void)out;
    return 0;
}

#endif

void mur_mve_quantize(uint32_t rows, uint32_t k, const float *x, void *vectors, float *scales)
{
    int8_t *q = vectors;

    for (uint32_t r = 0; r < rows; r++, x += k, q += MUR_REF_VECTOR_BYTES(k)) {
        scales[r] = quantize(x, k, q);
        for (uint32_t i = k; i < MUR_REF_VECTOR_BYTES(k); i++)
            q[i] = 0;
    }
}

static void multiply(const mur_matrix_q8 *matrix, const int8_t *x, float scale, float *out)
{
    const int8_t *w = matrix->packed;
    const float *scales = matrix->scales;
    uint32_t k = matrix->k, whole = matrix->n / MUR_MVE_FOUR * MUR_MVE_FOUR;
    int32_t sums[MUR_MVE_SOME];

    for (uint32_t n = 0, count; n < whole; n += count, w += count * k) {
        mur_mve_fours g = { w, MUR_MVE_FOUR * k, x, k, sums, sums };

        count = whole - n < MUR_MVE_SOME ? whole - n : MUR_MVE_SOME;
        g.end += count;
        multiply_fours(&g);
        for (uint32_t r = 0; r < count; r += MUR_MVE_FOUR) {
            if (finish_four(sums + r, scale, scales + n + r, out + n + r))
                continue;
            for (uint32_t i = r; i < r + MUR_MVE_FOUR; i++)
                out[n + i] = (float)sums[i] * (scale * scales[n + i]);
        }
    }
    for (uint32_t n = whole; n < matrix->n; n++, w += k)
        out[n] = (float)mur_mve_dot_s8(w, x, k, 0) * (scale * scales[n]);
}

void mur_mve_linear(const mur_matrix_q8 *matrix, uint32_t rows, const void *vectors,
                    const float *scales, float *out)
{
    const int8_t *x = vectors;

    for (; rows != 0; rows--, x += MUR_REF_VECTOR_BYTES(matrix->k), out += matrix->n) {
        multiply(matrix, x, *scales++, out);
        for (uint32_t i = 0; matrix->bias && i < matrix->n; i++)
            out[i] += matrix->bias[i];
    }
}
