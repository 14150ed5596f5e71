/* mur_host_bd.c - matrices of BlockDialect on the machine that runs the compiler. They lie as
 * mur_bd_arith.h has them.
 */
#include "mur_bd_arith.h"
#include "mur_host_low.h"

#if MUR_HAVE_X86

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

static uint32_t unpack_bd_256(const uint8_t *headers, const uint8_t *codes, uint32_t count,
                              int8_t *q)
{
    (void)headers, (void)codes, (void)count, (void)q;
    return 0;
}

#endif

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

void mur_host_linear_bd(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                        const float *scales, float *out)
{
    multiply(matrix, mur_bd_row_bytes(matrix->k), unpack_bd, rows, vectors, scales, out);
}
