/* mur_plain_decoder.c - a decoder's matrices in plain C: four rows at once, so that an element of
 * the vector is loaded once for four products. Vectors and matrices lie as mur_ref_decoder.c has
 * them.
 */
#include "mur_decoder.h"
#include "mur_decoder_arith.h"

enum { FOUR = 4, STEP = 4 }; /* rows and columns at once */

/* products of column i of four rows */
#define COLUMN(i) \
    do { \
        int32_t e = x[i]; \
        s0 += a[i] * e; \
        s1 += b[i] * e; \
        s2 += c[i] * e; \
        s3 += d[i] * e; \
    } while (0)

static void multiply_four(const int8_t *const rows[FOUR], const int8_t *x, uint32_t k,
                          int32_t sums[FOUR])
{
    const int8_t *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    const int8_t *steps_end = x + k / STEP * STEP, *end = x + k;
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

    for (; x != steps_end; x += STEP, a += STEP, b += STEP, c += STEP, d += STEP) {
        COLUMN(0);
        COLUMN(1);
        COLUMN(2);
        COLUMN(3);
    }
    for (; x != end; x++, a++, b++, c++, d++)
        COLUMN(0);
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

static void multiply(const mur_matrix_q8 *matrix, const int8_t *x, float scale, float *out)
{
    const int8_t *w = matrix->packed;
    uint32_t n = 0, k = matrix->k;
    int32_t sums[FOUR];

    while (n < matrix->n) {
        uint32_t count = matrix->n - n < FOUR ? matrix->n - n : FOUR;
        /* rows that are not there are the first again */
        const int8_t *const rows[FOUR] = { w, count > 1 ? w + k : w, count > 2 ? w + 2 * k : w,
                                           count > 3 ? w + 3 * k : w };

        multiply_four(rows, x, k, sums);
        for (uint32_t r = 0; r < count; r++, n++)
            out[n] = mur_scaled(sums[r], scale, matrix->scales[n]);
        w += FOUR * k;
    }
}

void mur_plain_linear(const mur_matrix_q8 *matrix, uint32_t rows, const void *vectors,
                      const float *scales, float *out)
{
    const int8_t *x = vectors;

    for (; rows != 0; rows--, x += MUR_REF_VECTOR_BYTES(matrix->k), out += matrix->n) {
        multiply(matrix, x, *scales++, out);
        for (uint32_t i = 0; matrix->bias && i < matrix->n; i++)
            out[i] += matrix->bias[i];
    }
}
