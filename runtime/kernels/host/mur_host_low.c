/* mur_host_low.c - matrices of 2 and 4 bits on the machine that runs the compiler. They lie as
 * mur_ref_low.c has them.
 */
#include "mur_host_low.h"

#if MUR_HAVE_X86

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
