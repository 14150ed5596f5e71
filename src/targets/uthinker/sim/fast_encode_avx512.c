/* fast_encode_avx512.c - mur_block_encode with AVX-512: the 32 elements of a block in one register,
 * 16 bits each. */
#include "targets/uthinker/sim/fast_vector.h"

#include <string.h>

#include "quant/bd_table.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define AVX512 __attribute__((target("avx2,popcnt,avx512f,avx512vl,avx512bw,avx512dq")))
#define INLINE inline __attribute__((always_inline))

/* In binary16: the bits of magnitudes, and which are negative. */
typedef struct halves {
    __m512i bits;
    __mmask32 negative;
} halves;

AVX512 static INLINE __m512i set16(uint32_t value)
{
    return _mm512_set1_epi16((int16_t)value);
}

AVX512 static INLINE __m512i join(__m256i low, __m256i high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* sixteen magnitudes as to_halves of mur_block.c rounds them */
AVX512 static INLINE __m256i round_half(__m512i magnitude)
{
    const __m512i largest = _mm512_set1_epi32(0x477fe000), least = _mm512_set1_epi32(0x387fffff);

    magnitude = _mm512_min_epi32(magnitude, largest);
    return _mm512_maskz_cvtps_ph(_mm512_cmpgt_epi32_mask(magnitude, least),
                                 _mm512_castsi512_ps(magnitude),
                                 _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* n elements, and zeros */
AVX512 static INLINE halves to_halves(const float *x, uint32_t n)
{
    const __m512i magnitude = _mm512_set1_epi32(INT32_MAX);
    const __mmask32 in = UINT32_MAX >> (MUR_BLOCK_ELEMS - n);
    __m512i low = _mm512_maskz_loadu_epi32((__mmask16)in, x);
    __m512i high = _mm512_maskz_loadu_epi32((__mmask16)(in >> 16), x + 16);

    return (halves){ join(round_half(_mm512_and_si512(low, magnitude)),
                          round_half(_mm512_and_si512(high, magnitude))),
                     (uint32_t)_mm512_movepi32_mask(low) | (uint32_t)_mm512_movepi32_mask(high)
                                                               << 16 };
}

AVX512 static INLINE uint32_t largest(__m512i x)
{
    __m256i eight = _mm256_max_epu16(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    __m128i four = _mm_max_epu16(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));

    four = _mm_minpos_epu16(_mm_xor_si128(four, _mm_set1_epi16(-1)));
    return ~(uint32_t)_mm_cvtsi128_si32(four) & 0xffffu;
}

/* how many q are in low..high-1 */
AVX512 static INLINE uint32_t count_between(__m512i q, uint32_t low, uint32_t high)
{
    __mmask32 in = _mm512_cmpge_epu16_mask(q, set16(low));

    return (uint32_t)__builtin_popcount(_mm512_mask_cmplt_epu16_mask(in, q, set16(high)));
}

/* max: the largest q */
AVX512 static INLINE uint32_t choose_dialect(__m512i q, uint32_t max)
{
    uint32_t pair = max < 16 ? 7 : 15 - (max >> 1), i = pair < 7 ? 6 : 5, a_count, b_count;
    const uint8_t *a = muc_bd_dialects[2 * pair], *b = muc_bd_dialects[2 * pair + 1];
    uint32_t b_end = pair < 7 ? a[6] + b[6] : b[5] + b[6];

    a_count = count_between(q, pair < 7 ? a[6] + b[6] : a[5] + a[6], a[6] + a[7]);
    b_count = count_between(q, b[i - 1] + b[i], b_end);
    return 2 * pair + (b_count > a_count);
}

/* sixteen elements: rest * 2^(exponent - 25) in binary16, 0 below 2^-14 */
AVX512 static INLINE __m256i normalize(__m256i rest, __m256i exponent)
{
    /* a float's mantissa is the same; its exponent says by how far rest was shifted */
    __m512i e = _mm512_sub_epi32(_mm512_cvtepu16_epi32(exponent), _mm512_set1_epi32(137));
    __m512 value = _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(rest));
    __m512i bits = _mm512_srli_epi32(_mm512_castps_si512(value), 13);

    bits = _mm512_add_epi32(bits, _mm512_slli_epi32(e, 10));
    return _mm512_maskz_cvtepi32_epi16(_mm512_cmpgt_epi32_mask(bits, _mm512_set1_epi32(1023)),
                                       bits);
}

/* Writes header and 16 bytes of nibbles; of kind R leaves in x what the term does not cover. */
AVX512 static INLINE void encode_term(halves *x, uint32_t kind, uint8_t *out)
{
    uint32_t max = largest(x->bits), exponent = max >> 10 > 2 ? (max >> 10) - 2 : 0;
    uint32_t max_mantissa = max != 0 ? (max & 1023) | 1024 : 0;
    __m512i e16 = _mm512_srli_epi16(x->bits, 10), drop = _mm512_sub_epi16(set16(exponent + 2), e16);
    __m512i mantissa = _mm512_or_si512(_mm512_and_si512(x->bits, set16(1023)), set16(1024));
    __m512i q, index, nibble, value, rest;
    uint32_t dialect, header;
    int64_t values;

    mantissa = _mm512_maskz_mov_epi16(_mm512_test_epi16_mask(x->bits, x->bits), mantissa);
    q = _mm512_srlv_epi16(mantissa, _mm512_add_epi16(drop, set16(6)));
    dialect = choose_dialect(q, max_mantissa >> (8 + exponent - (max >> 10)));
    header = dialect << 12 | exponent << 7 | kind << 4;
    out[0] = (uint8_t)header;
    out[1] = (uint8_t)(header >> 8);
    index = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)muc_bd_nearest_index[dialect]));
    index = _mm512_permutexvar_epi16(q, index);
    nibble = _mm512_mask_add_epi16(index, x->negative & _mm512_test_epi16_mask(index, index), index,
                                   set16(8));
    nibble = _mm512_or_si512(nibble, _mm512_srli_epi32(nibble, 12));
    _mm_storeu_si128((void *)(out + 2), _mm512_cvtepi32_epi8(nibble));
    if (kind != MUR_BLOCK_R)
        return;
    memcpy(&values, muc_bd_dialects[dialect], sizeof(values));
    value = _mm512_cvtepu8_epi16(_mm256_castsi128_si256(_mm_cvtsi64_si128(values)));
    value = _mm512_permutexvar_epi16(index, value);
    rest = _mm512_sub_epi16(mantissa, _mm512_sllv_epi16(value, _mm512_add_epi16(drop, set16(7))));
    x->negative ^= _mm512_movepi16_mask(rest);
    rest = _mm512_abs_epi16(rest);
    x->bits =
        join(normalize(_mm512_castsi512_si256(rest), _mm512_castsi512_si256(e16)),
             normalize(_mm512_extracti64x4_epi64(rest, 1), _mm512_extracti64x4_epi64(e16, 1)));
}

AVX512 uint32_t muc_fast_encode_avx512(const float *x, uint32_t n, uint32_t terms, uint8_t *slot)
{
    const uint32_t term_bytes = 2 + (n + 1) / 2, size = 1 + terms * term_bytes;
    uint8_t term[2 + MUR_BLOCK_ELEMS / 2];
    halves h = to_halves(x, n);

    slot[0] = (uint8_t)(size - 1);
    if (n == MUR_BLOCK_ELEMS) {
        encode_term(&h, terms == 2 ? MUR_BLOCK_R : MUR_BLOCK_B4, slot + 1);
        if (terms == 2)
            encode_term(&h, MUR_BLOCK_B4, slot + 1 + sizeof(term));
        return size;
    }
    for (uint32_t t = 0; t < terms; t++) {
        encode_term(&h, terms == 2 && t == 0 ? MUR_BLOCK_R : MUR_BLOCK_B4, term);
        memcpy(slot + 1 + t * term_bytes, term, term_bytes);
    }
    return size;
}

#endif
