/* mur_mve_decoder.c - matrices and vectors of a decoder in vectors of 16 bytes: vectors and
 * matrices lie as mur_ref_decoder.c has them.
 */
#include "mur_decoder.h"
#include "mur_decoder_arith.h"
#include "mur_mve.h"

enum { FOUR = 4 }; /* rows that are multiplied at once */

/* scales of rows and of vectors that are not smaller have a normal product */
#define LEAST_ROW 0x1p-30f
#define LEAST_VECTOR 0x1p-90f

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

/* The products of four rows of k elements, each where it begins, with x. */
static inline void multiply_four(const int8_t *const rows[FOUR], const int8_t *x, uint32_t k,
                                 int32_t sums[FOUR])
{
    const int8_t *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

    __asm__ volatile("dlstp.8    lr, %[k]\n"
                     "1:\n\t"
                     "vldrb.8    q0, [%[x]], #16\n\t"
                     "vldrb.8    q1, [%[a]], #16\n\t"
                     "vmladava.s8 %[s0], q0, q1\n\t"
                     "vldrb.8    q1, [%[b]], #16\n\t"
                     "vmladava.s8 %[s1], q0, q1\n\t"
                     "vldrb.8    q1, [%[c]], #16\n\t"
                     "vmladava.s8 %[s2], q0, q1\n\t"
                     "vldrb.8    q1, [%[d]], #16\n\t"
                     "vmladava.s8 %[s3], q0, q1\n\t"
                     "letp       lr, 1b"
                     : [x] "+r"(x), [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d),
                       [s0] "+Te"(s0), [s1] "+Te"(s1), [s2] "+Te"(s2), [s3] "+Te"(s3)
                     : [k] "r"(k)
                     : "q0", "q1", "lr", "memory");
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* out[i] = (float)sums[i] * (scale * scales[i]) where no product has to be rounded to what vectors
 * flush to zero; if there may be one, 0 and nothing is written */
static inline int finish_four(const int32_t sums[FOUR], float scale, const float *scales,
                              float *out)
{
    float32x4_t factors = vldrwq_f32(scales);

    if (vminnmvq_f32(LEAST_ROW, factors) < LEAST_ROW || scale < LEAST_VECTOR)
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

static inline void multiply_four(const int8_t *const rows[FOUR], const int8_t *x, uint32_t k,
                                 int32_t sums[FOUR])
{
    for (uint32_t r = 0; r < FOUR; r++) {
        sums[r] = 0;
        for (uint32_t i = 0; i < k; i++)
            sums[r] += rows[r][i] * x[i];
    }
}

static inline int finish_four(const int32_t sums[FOUR], float scale, const float *scales,
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
    uint32_t n = 0, k = matrix->k;
    int32_t sums[FOUR];

    for (; n + FOUR <= matrix->n; n += FOUR, w += FOUR * k) {
        const int8_t *const rows[FOUR] = { w, w + k, w + 2 * k, w + 3 * k };

        multiply_four(rows, x, k, sums);
        if (finish_four(sums, scale, matrix->scales + n, out + n))
            continue;
        for (uint32_t r = 0; r < FOUR; r++)
            out[n + r] = (float)sums[r] * (scale * matrix->scales[n + r]);
    }
    for (; n < matrix->n; n++, w += k) {
        const int8_t *const rows[FOUR] = { w, w, w, w };

        multiply_four(rows, x, k, sums);
        out[n] = (float)sums[0] * (scale * matrix->scales[n]);
    }
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
