/* mur_host_low.c - matrices of 2 and 4 bits and of BlockDialect on the machine that runs the
 * compiler: four rows become int8 a part at a time, and are multiplied as such. All lie as
 * mur_ref_low.c and mur_bd_arith.h have them.
 */
#include "mur_bd_arith.h"
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

/* 2 c - most */
MUR_AVX2 static inline void store_levels(__m256i codes, char most, int8_t *q)
{
    _mm256_storeu_si256((void *)q,
                        _mm256_sub_epi8(_mm256_add_epi8(codes, codes), _mm256_set1_epi8(most)));
}

MUR_AVX2 static uint32_t unpack_4_256(const uint8_t *codes, uint32_t count, int8_t *q)
{
    uint32_t i = 0;

    for (; i + 32 <= count; i += 32)
        store_levels(nibbles_of(codes + i / 2), 15, q + i);
    return i;
}

MUR_AVX2 static uint32_t unpack_2_256(const uint8_t *codes, uint32_t count, int8_t *q)
{
    const __m256i three = _mm256_set1_epi8(3);
    uint32_t i = 0;

    for (; i + 32 <= count; i += 32) {
        __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(codes + i / 4)));

        wide = _mm256_or_si256(wide, _mm256_slli_epi32(wide, 12));
        wide = _mm256_or_si256(wide, _mm256_slli_epi32(wide, 6));
        store_levels(_mm256_and_si256(wide, three), 3, q + i);
    }
    return i;
}

MUR_AVX2 static uint32_t unpack_bd_256(const uint8_t *headers, const uint8_t *codes, uint32_t count,
                                       int8_t *q)
{
    uint32_t i = 0;

    for (; i + 32 <= count; i += 32) {
        const int8_t *levels = mur_bd_levels[headers[i / 32] >> 4];
        __m128i table = _mm_loadu_si128((const void *)levels);
        __m128i factor = _mm_set1_epi8((char)(0xff << (headers[i / 32] & 15)));

        /* no bit of a level leaves its byte by the shift */
        table = _mm_and_si128(_mm_slli_epi16(table, headers[i / 32] & 15), factor);
        _mm256_storeu_si256((void *)(q + i), _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table),
                                                                 nibbles_of(codes + i / 2)));
    }
    return i;
}

#else

static uint32_t unpack_4_256(const uint8_t *codes, uint32_t count, int8_t *q)
{
    (void)codes, (void)count, (void)q;
    return 0;
}

static uint32_t unpack_2_256(const uint8_t *codes, uint32_t count, int8_t *q)
{
    (void)codes, (void)count, (void)q;
    return 0;
}

static uint32_t unpack_bd_256(const uint8_t *headers, const uint8_t *codes, uint32_t count,
                              int8_t *q)
{
    (void)headers, (void)codes, (void)count, (void)q;
    return 0;
}

#endif

static void unpack_4(const uint8_t *row, uint32_t k, uint32_t first, uint32_t count, int8_t *q)
{
    const uint8_t *codes = row + first / 2;
    uint32_t i = mur_host_level() > 0 ? unpack_4_256(codes, count, q) : 0;

    (void)k;
    for (; i < count; i++)
        q[i] = (int8_t)(2 * (codes[i / 2] >> i % 2 * 4 & 15) - 15);
}

static void unpack_2(const uint8_t *row, uint32_t k, uint32_t first, uint32_t count, int8_t *q)
{
    const uint8_t *codes = row + first / 4;
    uint32_t i = mur_host_level() > 0 ? unpack_2_256(codes, count, q) : 0;

    (void)k;
    for (; i < count; i++)
        q[i] = (int8_t)(2 * (codes[i / 4] >> i % 4 * 2 & 3) - 3);
}

static void unpack_bd(const uint8_t *row, uint32_t k, uint32_t first, uint32_t count, int8_t *q)
{
    const uint8_t *headers = row + first / MUR_BD_ELEMS;
    const uint8_t *codes = row + mur_bd_headers(k) + first / 2;
    uint32_t i = mur_host_level() > 0 ? unpack_bd_256(headers, codes, count, q) : 0;

    for (; i < count; i++) {
        uint32_t header = headers[i / MUR_BD_ELEMS];

        q[i] = (int8_t)(mur_bd_levels[header >> 4][codes[i / 2] >> i % 2 * 4 & 15] *
                        (1 << (header & 15)));
    }
}

/* sums of four rows with up to four vectors */
static void multiply_rows(const uint8_t *rows[MUR_HOST_ROWS], unpack_row *unpack,
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

static void multiply(const mur_matrix_low *matrix, uint32_t row_bytes, unpack_row *unpack,
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

void mur_host_linear_q2(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                        const float *scales, float *out)
{
    multiply(matrix, (matrix->k + 3) / 4, unpack_2, rows, vectors, scales, out);
}

void mur_host_linear_q4(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                        const float *scales, float *out)
{
    multiply(matrix, (matrix->k + 1) / 2, unpack_4, rows, vectors, scales, out);
}

void mur_host_linear_bd(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                        const float *scales, float *out)
{
    multiply(matrix, mur_bd_row_bytes(matrix->k), unpack_bd, rows, vectors, scales, out);
}
