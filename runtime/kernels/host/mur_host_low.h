/* mur_host_low.h - matrices of few bits on the machine that runs the compiler: four rows become
 * int8 a part at a time, and are multiplied as such.
 */
#ifndef MUR_HOST_LOW_H
#define MUR_HOST_LOW_H

#include "mur_decoder.h"
#include "mur_host_dot.h"
#include "mur_low.h"
#include "mur_low_arith.h"

enum { PART = 1024 }; /* columns at once, a multiple of 32 */

/* Levels of `count` columns of a row from column `first`, a multiple of 32, on; the row has k. */
typedef void unpack_row(const uint8_t *row, uint32_t k, uint32_t first, uint32_t count, int8_t *q);

#if MUR_HAVE_X86

/* two levels of 4 bits from each of 16 bytes, in the order of their columns */
MUR_AVX2 static inline __m256i nibbles_of(const uint8_t *codes)
{
    __m256i wide = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)codes));

    return _mm256_and_si256(_mm256_or_si256(wide, _mm256_slli_epi16(wide, 4)),
                            _mm256_set1_epi8(15));
}

#endif

/* sums of four rows with up to four vectors */
static inline void multiply_rows(const uint8_t *rows[MUR_HOST_ROWS], unpack_row *unpack,
                                 const int8_t *vectors, uint32_t count, uint32_t k,
                                 int32_t (*sums)[MUR_HOST_ROWS])
{
    const uint32_t bytes = MUR_REF_VECTOR_BYTES(k);
    mur_host_product *product = mur_host_find_product();
    int8_t parts[MUR_HOST_ROWS][PART];
    const int8_t *w[MUR_HOST_ROWS] = { parts[0], parts[1], parts[2], parts[3] };

    for (uint32_t i = 0, columns; i < k; i += columns) {
        columns = k - i < PART ? k - i : PART;
        for (uint32_t r = 0; r < MUR_HOST_ROWS; r++)
            unpack(rows[r], k, i, columns, parts[r]);
        for (uint32_t v = 0, some; v < count; v += some) {
            some = count - v < MUR_HOST_VECTORS ? count - v : MUR_HOST_VECTORS;
            product(w, vectors + (size_t)v * bytes + i, bytes, some, columns, sums + v);
        }
    }
}

enum { MOST_VECTORS = 16 }; /* for which a row is unpacked once */

static inline void multiply(const mur_matrix_low *matrix, uint32_t row_bytes, unpack_row *unpack,
                            uint32_t rows, const void *vectors, const float *scales, float *out)
{
    const uint16_t *row_scales = matrix->packed;
    const uint8_t *codes = (const uint8_t *)matrix->packed + (size_t)(matrix->n + 1) / 2 * 4;
    const uint32_t bytes = MUR_REF_VECTOR_BYTES(matrix->k);

    for (uint32_t n = 0; n < matrix->n; n += MUR_HOST_ROWS) {
        uint32_t there = matrix->n - n < MUR_HOST_ROWS ? matrix->n - n : MUR_HOST_ROWS;
        const uint8_t *w[MUR_HOST_ROWS];

        for (uint32_t i = 0; i < MUR_HOST_ROWS;
             i++) /* rows that are not there are the first again */
            w[i] = codes + (size_t)(n + (i < there ? i : 0)) * row_bytes;
        for (uint32_t r = 0, count; r < rows; r += count) {
            int32_t sums[MOST_VECTORS][MUR_HOST_ROWS] = { { 0 } };

            count = rows - r < MOST_VECTORS ? rows - r : MOST_VECTORS;
            multiply_rows(w, unpack, (const int8_t *)vectors + (size_t)r * bytes, count, matrix->k,
                          sums);
            for (uint32_t v = 0; v < count; v++)
                for (uint32_t i = 0; i < there; i++) {
                    float y = (float)sums[v][i] * (scales[r + v] * mur_half(row_scales[n + i]));

                    out[(size_t)(r + v) * matrix->n + n + i] =
                        matrix->bias ? y + matrix->bias[n + i] : y;
                }
        }
    }
}

#endif
