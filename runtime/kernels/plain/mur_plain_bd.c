/* mur_plain_bd.c - BlockDialect matrices in plain C: four rows at once, so that two columns of the
 * vector are loaded once for eight products.
 */
#include "mur_bd_arith.h"
#include "mur_decoder.h"

enum { FOUR = 4 };

/* columns 0 and 1 of a row */
#define PRODUCTS(sum, row) \
    sum += levels_##row[row[i] & 15] * first + levels_##row[row[i] >> 4] * second

/* A block of `count` columns of four rows; an odd last column's partner is zero. */
static void add_block(const uint8_t *const rows[FOUR], uint32_t block, const int8_t *x,
                      uint32_t count, int32_t sums[FOUR])
{
    uint32_t at = block * MUR_BD_BYTES, bytes = (count + 1) / 2;
    const uint8_t *a = rows[0] + at, *b = rows[1] + at, *c = rows[2] + at, *d = rows[3] + at;
    uint32_t header_a = *a++, header_b = *b++, header_c = *c++, header_d = *d++;
    const int8_t *levels_a = mur_bd_levels[header_a >> 4];
    const int8_t *levels_b = mur_bd_levels[header_b >> 4];
    const int8_t *levels_c = mur_bd_levels[header_c >> 4];
    const int8_t *levels_d = mur_bd_levels[header_d >> 4];
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

    for (uint32_t i = 0; i < bytes; i++, x += 2) {
        int32_t first = x[0], second = x[1];

        PRODUCTS(s0, a);
        PRODUCTS(s1, b);
        PRODUCTS(s2, c);
        PRODUCTS(s3, d);
    }
    sums[0] += s0 * (int32_t)(header_a & MUR_BD_FACTOR);
    sums[1] += s1 * (int32_t)(header_b & MUR_BD_FACTOR);
    sums[2] += s2 * (int32_t)(header_c & MUR_BD_FACTOR);
    sums[3] += s3 * (int32_t)(header_d & MUR_BD_FACTOR);
}

void mur_plain_linear_bd(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                         const float *scales, float *out)
{
    uint32_t k = matrix->k, row_bytes = mur_bd_row_bytes(k);
    const uint16_t *row_scales = matrix->packed;
    const int8_t *x = vectors;

    for (; rows != 0; rows--, x += MUR_REF_VECTOR_BYTES(k), scales++, out += matrix->n) {
        const uint8_t *w = mur_bd_row(matrix, 0);

        for (uint32_t n = 0; n < matrix->n; n += FOUR, w += FOUR * row_bytes) {
            uint32_t count = matrix->n - n < FOUR ? matrix->n - n : FOUR;
            /* rows that are not there are the first again */
            const uint8_t *const four[FOUR] = { w, count > 1 ? w + row_bytes : w,
                                                count > 2 ? w + 2 * row_bytes : w,
                                                count > 3 ? w + 3 * row_bytes : w };
            int32_t sums[FOUR] = { 0 };

            for (uint32_t b = 0, i = 0; i < k; b++, i += MUR_BD_ELEMS)
                add_block(four, b, x + i, mur_bd_count(k, i), sums);
            for (uint32_t r = 0; r < count; r++) {
                float y = mur_scaled(sums[r], *scales, mur_half(row_scales[n + r]));

                out[n + r] = matrix->bias ? y + matrix->bias[n + r] : y;
            }
        }
    }
}
