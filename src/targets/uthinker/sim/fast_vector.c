/* fast_vector.c - what the vector unit of the simulated machine does, with AVX2: the choices of
 * mur_block_encode for all 32 elements in one or two registers, and eight exponentials at once. */
#include "targets/uthinker/sim/fast_vector.h"

#include <string.h>

#include "quant/bd_table.h"
#include "targets/uthinker/sim/uthinker_sim_execute.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* A block in binary16, elements in order: the bits of magnitudes, all ones where negative. */
typedef struct halves {
    __m256i bits[2], negative[2];
} halves;

/* What a term makes of the elements; 16 bits each. */
typedef struct choices {
    __m256i mantissa[2], drop[2]; /* as in mur_block.c */
    __m256i m[2];
} choices;

AVX2 static __m256i set16(uint32_t value)
{
    return _mm256_set1_epi16((int16_t)value);
}

/* eight elements: binary16 in 32 bits each, as to_halves of mur_block.c rounds them */
AVX2 static __m256i halves_of(__m256i x)
{
    const __m256i largest = _mm256_set1_epi32(0x477fe000), least = _mm256_set1_epi32(0x387fffff);
    __m256i magnitude = _mm256_and_si256(x, _mm256_set1_epi32(0x7fffffff)), odd, rounded;

    magnitude = _mm256_min_epi32(magnitude, largest);
    odd = _mm256_and_si256(_mm256_srli_epi32(magnitude, 13), _mm256_set1_epi32(1));
    rounded = _mm256_add_epi32(_mm256_add_epi32(magnitude, _mm256_set1_epi32(0xfff)), odd);
    rounded = _mm256_sub_epi32(_mm256_srli_epi32(rounded, 13), _mm256_set1_epi32(112 << 10));
    return _mm256_and_si256(rounded, _mm256_cmpgt_epi32(magnitude, least));
}

/* sixteen numbers of 32 bits to 16 bits, in order */
AVX2 static __m256i narrow(__m256i low, __m256i high)
{
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
}

AVX2 static void to_halves(const float *x, halves *out)
{
    for (uint32_t i = 0; i < 2; i++) {
        __m256i low = _mm256_castps_si256(_mm256_loadu_ps(x + 16 * i));
        __m256i high = _mm256_castps_si256(_mm256_loadu_ps(x + 16 * i + 8));

        out->bits[i] = narrow(halves_of(low), halves_of(high));
        out->negative[i] = narrow(_mm256_srai_epi32(low, 31), _mm256_srai_epi32(high, 31));
    }
}

AVX2 static uint32_t largest(__m256i a, __m256i b)
{
    __m256i max = _mm256_max_epu16(a, b);
    __m128i x = _mm_max_epu16(_mm256_castsi256_si128(max), _mm256_extracti128_si256(max, 1));

    x = _mm_minpos_epu16(_mm_xor_si128(x, _mm_set1_epi16(-1)));
    return ~(uint32_t)_mm_cvtsi128_si32(x) & 0xffffu;
}

/* powers[drop] in each element; powers are eight, the last for all that drop more */
AVX2 static __m256i power_of_drop(__m256i drop, __m128i powers)
{
    __m256i at = _mm256_mullo_epi16(_mm256_min_epu16(drop, set16(7)), set16(0x0202));

    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(powers),
                               _mm256_add_epi16(at, set16(0x0100)));
}

/* Returns q, a byte each. */
AVX2 static __m256i truncate_all(const halves *x, uint32_t exponent, choices *out)
{
    __m256i q[2];

    for (uint32_t i = 0; i < 2; i++) {
        __m256i bits = x->bits[i], zero = _mm256_cmpeq_epi16(bits, _mm256_setzero_si256());
        __m256i mantissa = _mm256_or_si256(_mm256_and_si256(bits, set16(1023)), set16(1024));

        out->mantissa[i] = mantissa = _mm256_andnot_si256(zero, mantissa);
        out->drop[i] = _mm256_sub_epi16(set16(exponent + 2), _mm256_srli_epi16(bits, 10));
        /* mantissa >> (6 + drop), which is 0 from a drop of 5 on */
        q[i] = _mm256_mulhi_epu16(
            mantissa,
            power_of_drop(out->drop[i], _mm_setr_epi16(1024, 512, 256, 128, 64, 0, 0, 0)));
    }
    return _mm256_permute4x64_epi64(_mm256_packus_epi16(q[0], q[1]), 0xd8);
}

/* how many q are in low..high-1 */
AVX2 static uint32_t count_between(__m256i q, int low, int high)
{
    __m256i in = _mm256_and_si256(_mm256_cmpgt_epi8(q, _mm256_set1_epi8((int8_t)(low - 1))),
                                  _mm256_cmpgt_epi8(_mm256_set1_epi8((int8_t)high), q));

    return (uint32_t)__builtin_popcount((uint32_t)_mm256_movemask_epi8(in));
}

AVX2 static uint32_t choose_dialect(__m256i q)
{
    __m256i zero = _mm256_setzero_si256();
    uint32_t max = largest(_mm256_unpacklo_epi8(q, zero), _mm256_unpackhi_epi8(q, zero));
    uint32_t pair = max < 16 ? 7 : 15 - (max >> 1), a_count, b_count;
    const uint8_t *a = muc_bd_dialects[2 * pair], *b = muc_bd_dialects[2 * pair + 1];

    if (pair < 7) {
        a_count = count_between(q, a[6] + b[6], a[6] + a[7]);
        b_count = count_between(q, b[5] + b[6], a[6] + b[6]);
    } else {
        a_count = count_between(q, a[5] + a[6], a[6] + a[7]);
        b_count = count_between(q, b[4] + b[5], b[5] + b[6]);
    }
    return 2 * pair + (b_count > a_count);
}

AVX2 static __m256i load_twice(const uint8_t *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p));
}

/* indices of the nearest values, a byte each */
AVX2 static __m256i choose_values(__m256i q, uint32_t dialect)
{
    return _mm256_blendv_epi8(
        _mm256_shuffle_epi8(load_twice(muc_bd_nearest_index[dialect]), q),
        _mm256_shuffle_epi8(load_twice(muc_bd_nearest_index[dialect] + 16), q),
        _mm256_cmpgt_epi8(q, _mm256_set1_epi8(15)));
}

/* eight elements, 32 bits each: rest * 2^(exponent - 25) in binary16, 0 below 2^-14 */
AVX2 static __m256i normalize(__m256i rest, __m256i exponent)
{
    /* a float's mantissa is the same; its exponent says by how far rest was shifted */
    __m256i bits = _mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(rest)), 13);

    bits = _mm256_add_epi32(
        bits, _mm256_slli_epi32(_mm256_sub_epi32(exponent, _mm256_set1_epi32(137)), 10));
    return _mm256_and_si256(bits, _mm256_cmpgt_epi32(bits, _mm256_set1_epi32(1023)));
}

/* takes the chosen values from the elements, as subtract_all of mur_block.c does */
AVX2 static void subtract_all(halves *x, const choices *term)
{
    for (uint32_t i = 0; i < 2; i++) {
        __m256i value = _mm256_mullo_epi16(
            term->m[i],
            power_of_drop(term->drop[i], _mm_setr_epi16(128, 256, 512, 1024, 2048, 0, 0, 0)));
        __m256i rest = _mm256_sub_epi16(term->mantissa[i], value);
        __m256i exponent = _mm256_srli_epi16(x->bits[i], 10), low, high;

        x->negative[i] = _mm256_xor_si256(x->negative[i], _mm256_srai_epi16(rest, 15));
        rest = _mm256_abs_epi16(rest);
        low = normalize(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(rest)),
                        _mm256_cvtepu16_epi32(_mm256_castsi256_si128(exponent)));
        high = normalize(_mm256_cvtepu16_epi32(_mm256_extracti128_si256(rest, 1)),
                         _mm256_cvtepu16_epi32(_mm256_extracti128_si256(exponent, 1)));
        x->bits[i] = narrow(low, high);
    }
}

/* Writes header and 16 bytes of nibbles; of kind R leaves in x what the term does not cover. */
AVX2 static void encode_term(halves *x, uint32_t kind, uint8_t *out)
{
    uint32_t max = largest(x->bits[0], x->bits[1]) >> 10, exponent = max > 2 ? max - 2 : 0;
    choices term;
    __m256i q = truncate_all(x, exponent, &term), index, m, nibble, negative;
    uint32_t dialect = choose_dialect(q), header = dialect << 12 | exponent << 7 | kind << 4;
    int64_t values;

    out[0] = (uint8_t)header;
    out[1] = (uint8_t)(header >> 8);
    index = choose_values(q, dialect);
    negative = _mm256_packs_epi16(x->negative[0], x->negative[1]);
    negative = _mm256_and_si256(_mm256_permute4x64_epi64(negative, 0xd8), _mm256_set1_epi8(8));
    nibble = _mm256_andnot_si256(_mm256_cmpeq_epi8(index, _mm256_setzero_si256()), negative);
    nibble = _mm256_maddubs_epi16(_mm256_or_si256(nibble, index), set16(0x1001));
    nibble = _mm256_permute4x64_epi64(_mm256_packus_epi16(nibble, nibble), 0xd8);
    _mm_storeu_si128((__m128i *)(void *)(out + 2), _mm256_castsi256_si128(nibble));
    if (kind != MUR_BLOCK_R)
        return;
    memcpy(&values, muc_bd_dialects[dialect], sizeof(values));
    m = _mm256_shuffle_epi8(_mm256_set1_epi64x(values), index);
    term.m[0] = _mm256_cvtepu8_epi16(_mm256_castsi256_si128(m));
    term.m[1] = _mm256_cvtepu8_epi16(_mm256_extracti128_si256(m, 1));
    subtract_all(x, &term);
}

AVX2 uint32_t muc_fast_encode(const float *x, uint32_t n, uint32_t terms, uint8_t *slot)
{
    const uint32_t size = mur_block_slot_bytes(n, terms), term_bytes = (size - 1) / terms;
    float room[MUR_BLOCK_ELEMS];
    uint8_t term[2 + MUR_BLOCK_ELEMS / 2];
    halves h;

    if (n < MUR_BLOCK_ELEMS) {
        memset(room, 0, sizeof(room));
        memcpy(room, x, n * sizeof(*x));
    }
    to_halves(n < MUR_BLOCK_ELEMS ? room : x, &h);
    slot[0] = (uint8_t)(size - 1);
    for (uint32_t t = 0; t < terms; t++) {
        encode_term(&h, terms == 2 && t == 0 ? MUR_BLOCK_R : MUR_BLOCK_B4, term);
        memcpy(slot + 1 + t * term_bytes, term, term_bytes);
    }
    return size;
}

/* The operations of mur_sim_exp, in its order. */
AVX2 static __m256 exps(__m256 x)
{
    const __m256 log2e = _mm256_castsi256_ps(_mm256_set1_epi32((int32_t)mur_sim_log2e_bits));
    __m256 in = _mm256_cmp_ps(x, _mm256_set1_ps(-80.0f), _CMP_GE_OQ);
    __m256 t = _mm256_mul_ps(_mm256_and_ps(x, in), log2e), f, p;
    __m256 up = _mm256_add_ps(t, _mm256_set1_ps(0.5f)), below;
    __m256i n = _mm256_cvttps_epi32(up);

    below = _mm256_cmp_ps(_mm256_cvtepi32_ps(n), up, _CMP_GT_OQ);
    n = _mm256_add_epi32(n, _mm256_castps_si256(below));
    f = _mm256_sub_ps(t, _mm256_cvtepi32_ps(n));
    p = _mm256_castsi256_ps(_mm256_set1_epi32((int32_t)mur_sim_exp_bits[6]));
    for (uint32_t i = 6; i-- > 0;)
        p = _mm256_add_ps(_mm256_mul_ps(p, f),
                          _mm256_castsi256_ps(_mm256_set1_epi32((int32_t)mur_sim_exp_bits[i])));
    n = _mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23);
    return _mm256_and_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(n)), in);
}

AVX2 void muc_fast_exps(float *x, uint32_t n)
{
    float room[8] = { 0 };

    for (; n >= 8; n -= 8, x += 8)
        _mm256_storeu_ps(x, exps(_mm256_loadu_ps(x)));
    memcpy(room, x, n * sizeof(*x));
    _mm256_storeu_ps(room, exps(_mm256_loadu_ps(room)));
    memcpy(x, room, n * sizeof(*x));
}

#endif
