/* mur_host_bd.c - matrices of BlockDialect on the machine that runs the compiler. They lie as
 * mur_bd_arith.h has them.
 */
#include "mur_bd_arith.h"
#include "mur_host_low.h"

#if MUR_HAVE_X86

MUR_AVX2 static uint32_t unpack_bd_256(const uint8_t *block, uint32_t count, int8_t *q)
{
    uint32_t i = 0;

    for (; i + MUR_BD_ELEMS <= count; i += MUR_BD_ELEMS, block += MUR_BD_BYTES) {
        __m128i table = _mm_loadu_si128((const void *)mur_bd_levels[*block >> 4]);
        __m128i wide = _mm_cvtepi8_epi16(table), factor = _mm_set1_epi16(*block & MUR_BD_FACTOR);
        __m128i high = _mm_cvtepi8_epi16(_mm_srli_si128(table, 8));

        table = _mm_packs_epi16(_mm_mullo_epi16(wide, factor), _mm_mullo_epi16(high, factor));
        _mm256_storeu_si256((void *)(q + i), _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table),
                                                                 nibbles_of(block + 1)));
    }
    return i;
}

#else

static uint32_t unpack_bd_256(const uint8_t *block, uint32_t count, int8_t *q)
{
    (void)block, (void)count, (void)q;
    return 0;
}

#endif

static void unpack_bd(const uint8_t *row, uint32_t k, uint32_t first, uint32_t count, int8_t *q)
{
    const uint8_t *block = row + first / MUR_BD_ELEMS * MUR_BD_BYTES;
    uint32_t i = mur_host_level() > 0 ? unpack_bd_256(block, count, q) : 0;

    (void)k;
    for (; i < count; i++)
        q[i] = (int8_t)mur_bd_level(block + i / MUR_BD_ELEMS * MUR_BD_BYTES, i % MUR_BD_ELEMS);
}

void mur_host_linear_bd(const mur_matrix_low *matrix, uint32_t rows, const void *vectors,
                        const float *scales, float *out)
{
    multiply(matrix, mur_bd_row_bytes(matrix->k), unpack_bd, rows, vectors, scales, out);
}
