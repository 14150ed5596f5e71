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
#include "mur_mve_halves.h"
#include "mur_mve_low.h"

enum { FOUR = 4 }; /* rows that are multiplied at once */

#if MUR_HAVE_MVE

static inline int32_t total_of(const int8_t *x, uint32_t k)
{
    int32_t total = 0;

    for (; k >= MUR_MVE_BYTES; k -= MUR_MVE_BYTES, x += MUR_MVE_BYTES)
        total = vaddvaq_s8(total, vldrbq_s8(x));
    return vaddvaq_s8(total, vldrbq_z_s8(x, vctp8q(k)));
}

/* sums[i]: of four rows, with as many of them as lie below row i + 1 */
static inline void masked_2(const int8_t *w, const int8_t *x, uint32_t k, int32_t sums[FOUR])
{
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

    __asm__ volatile(
        "vmov.i8    q2, #0x3f\n\t"
        "vmov.i8    q3, #0x0f\n\t"
        "vmov.i8    q4, #0x03\n\t"
        "dlstp.8    lr, %[k]\n"
        "1:\n\t"
        "vldrb.8    q0, [%[x]], #16\n\t"
        "vldrb.8    q1, [%[w]], #16\n\t"
        "vmladava.s8 %[s3], q0, q1\n\t"
        "vand       q1, q1, q2\n\t"
        "vmladava.s8 %[s2], q0, q1\n\t"
        "vand       q1, q1, q3\n\t"
        "vmladava.s8 %[s1], q0, q1\n\t"
        "vand       q1, q1, q4\n\t"
        "vmladava.s8 %[s0], q0, q1\n\t"
        "letp       lr, 1b"
        : [x] "+r"(x), [w] "+r"(w), [s0] "+Te"(s0), [s1] "+Te"(s1), [s2] "+Te"(s2), [s3] "+Te"(s3)
        : [k] "r"(k)
        : "q0", "q1", "q2", "q3", "q4", "lr", "memory");
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* sums[0] and sums[2]: of rows 0 and 2; sums[1] and sums[3]: with rows 1 and 3 */
static inline void masked_4(const int8_t *w, const int8_t *x, uint32_t k, int32_t sums[FOUR])
{
    const int8_t *high = w + k;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

    __asm__ volatile("vmov.i8    q2, #0x0f\n\t"
                     "dlstp.8    lr, %[k]\n"
                     "1:\n\t"
                     "vldrb.8    q0, [%[x]], #16\n\t"
                     "vldrb.8    q1, [%[w]], #16\n\t"
                     "vmladava.s8 %[s1], q0, q1\n\t"
                     "vand       q1, q1, q2\n\t"
                     "vmladava.s8 %[s0], q0, q1\n\t"
                     "vldrb.8    q1, [%[high]], #16\n\t"
                     "vmladava.s8 %[s3], q0, q1\n\t"
                     "vand       q1, q1, q2\n\t"
                     "vmladava.s8 %[s2], q0, q1\n\t"
                     "letp       lr, 1b"
                     : [x] "+r"(x), [w] "+r"(w), [high] "+r"(high), [s0] "+Te"(s0), [s1] "+Te"(s1),
                       [s2] "+Te"(s2), [s3] "+Te"(s3)
                     : [k] "r"(k)
                     : "q0", "q1", "q2", "lr", "memory");
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
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

static inline void masked_2(const int8_t *w, const int8_t *x, uint32_t k, int32_t sums[FOUR])
{
    for (uint32_t r = 0; r < FOUR; r++)
        sums[r] = masked_sum(w, x, k, (4 << 2 * r) - 1);
}

static inline void masked_4(const int8_t *w, const int8_t *x, uint32_t k, int32_t sums[FOUR])
{
    for (uint32_t r = 0; r < FOUR; r++)
        sums[r] = masked_sum(w + r / 2 * k, x, k, r % 2 ? 255 : 15);
}

#endif

/* sums of levels of four rows of masked ones */
static inline void unmask(uint32_t bits, const int32_t s[FOUR], int32_t total, int32_t sums[FOUR])
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

#if MUR_HAVE_MVE && (__ARM_FEATURE_MVE & 2)

/* the same, and mur_mve_scale_halves */
static inline int finish_four(uint32_t bits, const int32_t s[FOUR], int32_t total, float scale,
                              const uint16_t *scales, float *out)
{
    static const int32_t masks[2][FOUR] = { { 0, -1, -1, -1 }, { 0, -1, 0, -1 } };
    static const int32_t shifts[2][FOUR] = { { 1, -1, -3, -5 }, { 1, -3, 1, -3 } };
    static const int32_t times[2][FOUR] = { { -3, -3, -3, 1 }, { -15, 1, -15, 1 } };
    int32x4_t sums = vldrwq_s32(s), before = vldrwq_s32(s - 1);

    /* what is not before row 0, and row 2 of 4 bits, is left out */
    sums = vsubq_s32(sums, vandq_s32(before, vldrwq_s32(masks[bits == 4])));
    sums = vshlq_s32(sums, vldrwq_s32(shifts[bits == 4]));
    sums = vmlaq_n_s32(sums, vldrwq_s32(times[bits == 4]), total);
    return mur_mve_scale_halves(sums, scale, scales, out);
}

#else

static inline int finish_four(uint32_t bits, const int32_t s[FOUR], int32_t total, float scale,
                              const uint16_t *scales, float *out)
{
    (void)bits, (void)s, (void)total, (void)scale, (void)scales, (void)out;
    return 0;
}

#endif

static inline void multiply_vector(uint32_t bits, const mur_matrix_low *matrix, const int8_t *x,
                                   float scale, float *out)
{
    const int8_t *w = (const int8_t *)matrix->packed + mur_mve_low_streams(matrix->n);
    const uint16_t *scales = matrix->packed;
    uint32_t n = 0, k = matrix->k, step = FOUR * bits / 8 * k;
    int32_t masked[1 + FOUR] = { 0 }, sums[FOUR], total = total_of(x, k);

    for (; n < matrix->n; n += FOUR, w += step) {
        if (bits == 2)
            masked_2(w, x, k, masked + 1);
        else
            masked_4(w, x, k, masked + 1);
        if (n + FOUR <= matrix->n &&
            finish_four(bits, masked + 1, total, scale, scales + n, out + n))
            continue;
        unmask(bits, masked + 1, total, sums);
        for (uint32_t r = 0; r < FOUR && n + r < matrix->n; r++)
            out[n + r] = (float)sums[r] * (scale * mur_half(scales[n + r]));
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
