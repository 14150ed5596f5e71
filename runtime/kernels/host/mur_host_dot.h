/* mur_host_dot.h - products of int8 rows on the machine that runs the compiler: by AVX-512 (VNNI)
 * or AVX2 where the processor has them, which is asked when the program runs, else in plain C. Sums
 * of integers are the same in any order.
 */
#ifndef MUR_HOST_DOT_H
#define MUR_HOST_DOT_H

#include <stdint.h>

enum { MUR_HOST_ROWS = 4, MUR_HOST_VECTORS = 4 }; /* multiplied at once, at most */

/* Adds to sums[v][r] the product of row r and vector v, of k columns; all four rows, and 1 to 4
 * vectors, each so many bytes after the one before. Elements are -127..127. */
typedef void mur_host_product(const int8_t *rows[MUR_HOST_ROWS], const int8_t *vectors,
                              uint32_t bytes, uint32_t count, uint32_t k,
                              int32_t sums[][MUR_HOST_ROWS]);

#if defined(__x86_64__) && defined(__GNUC__) && __STDC_HOSTED__

#include <immintrin.h>

#define MUR_HAVE_X86 1
#define MUR_AVX2 __attribute__((target("avx2")))
#define MUR_AVX512 __attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512vnni")))

/* What the processor has: 2 AVX-512, 1 AVX2, 0 neither. */
#ifndef MUR_HOST_LEVEL
#define MUR_HOST_LEVEL 2 /* the most that is used; tests set less */
#endif
static inline int mur_host_level(void)
{
    if (MUR_HOST_LEVEL > 1 && __builtin_cpu_supports("avx512vnni") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return 2;
    return MUR_HOST_LEVEL > 0 && __builtin_cpu_supports("avx2") ? 1 : 0;
}

/* the sum of each of four registers, added to four integers */
MUR_AVX2 static inline void mur_host_add(__m256i a, __m256i b, __m256i c, __m256i d, int32_t *sums)
{
    __m256i s = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    __m128i *to = (__m128i *)(void *)sums;

    _mm_storeu_si128(to, _mm_add_epi32(_mm_loadu_si128(to), four));
}

#define MUR_HOST_EACH(index, count) \
    _Pragma("GCC unroll 4") for (uint32_t index = 0; index < (count); index++)

MUR_AVX512 static inline __m256i mur_host_halves(__m512i a)
{
    return _mm256_add_epi32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
}

/* Rows become unsigned by 128, which is taken back by the sum of the vector's elements. */
#define MUR_HOST_STEP_512(COUNT, LOAD) \
    { \
        MUR_HOST_EACH(v_, COUNT) \
        { \
            x[v_] = LOAD(vectors + v_ * bytes + i); \
            sum[v_] = _mm512_dpbusd_epi32(sum[v_], flip, x[v_]); \
        } \
        MUR_HOST_EACH(r_, MUR_HOST_ROWS) \
        { \
            w = _mm512_xor_si512(LOAD(rows[r_] + i), flip); \
            MUR_HOST_EACH(v_, COUNT) s[v_][r_] = _mm512_dpbusd_epi32(s[v_][r_], w, x[v_]); \
        } \
    }
#define MUR_HOST_WHOLE(p) _mm512_loadu_si512(p)
#define MUR_HOST_REST(p) _mm512_maskz_loadu_epi8(rest, p)
#define MUR_HOST_TILE_512(COUNT) \
    { \
        __m512i s[COUNT][MUR_HOST_ROWS], sum[COUNT], x[COUNT], w; \
        uint32_t i = 0; \
        MUR_HOST_EACH(v_, COUNT) \
        { \
            sum[v_] = _mm512_setzero_si512(); \
            MUR_HOST_EACH(r_, MUR_HOST_ROWS) s[v_][r_] = _mm512_setzero_si512(); \
        } \
        for (; i + 64 <= k; i += 64) \
            MUR_HOST_STEP_512(COUNT, MUR_HOST_WHOLE) \
        if (i < k) \
            MUR_HOST_STEP_512(COUNT, MUR_HOST_REST) \
        MUR_HOST_EACH(v_, COUNT) \
        { \
            MUR_HOST_EACH(r_, MUR_HOST_ROWS) s[v_][r_] = _mm512_sub_epi32(s[v_][r_], sum[v_]); \
            mur_host_add(mur_host_halves(s[v_][0]), mur_host_halves(s[v_][1]), \
                         mur_host_halves(s[v_][2]), mur_host_halves(s[v_][3]), sums[v_]); \
        } \
    }

MUR_AVX512 static void mur_host_product_512(const int8_t *rows[MUR_HOST_ROWS],
                                            const int8_t *vectors, uint32_t bytes, uint32_t count,
                                            uint32_t k, int32_t sums[][MUR_HOST_ROWS])
{
    const __m512i flip = _mm512_set1_epi8((char)0x80);
    const __mmask64 rest = ((__mmask64)1 << k % 64) - 1;

    switch (count) {
    case 4:
        MUR_HOST_TILE_512(4)
        break;
    case 3:
        MUR_HOST_TILE_512(3)
        break;
    case 2:
        MUR_HOST_TILE_512(2)
        break;
    default:
        MUR_HOST_TILE_512(1)
        break;
    }
}

/* |w| times x with the sign of w: pairs of products have 16 bits. */
#define MUR_HOST_STEP_256(ROW, VECTOR) \
    { \
        __m256i ones = _mm256_set1_epi16(1), x = _mm256_loadu_si256((const __m256i *)(VECTOR)); \
        MUR_HOST_EACH(r_, MUR_HOST_ROWS) \
        { \
            __m256i w = _mm256_loadu_si256((const __m256i *)(ROW)); \
            __m256i two = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)); \
            s[r_] = _mm256_add_epi32(s[r_], _mm256_madd_epi16(two, ones)); \
        } \
    }

MUR_AVX2 static void mur_host_product_256(const int8_t *rows[MUR_HOST_ROWS], const int8_t *vectors,
                                          uint32_t bytes, uint32_t count, uint32_t k,
                                          int32_t sums[][MUR_HOST_ROWS])
{
    for (uint32_t v = 0; v < count; v++, vectors += bytes) {
        int8_t w_rest[MUR_HOST_ROWS][32] = { { 0 } }, x_rest[32] = { 0 };
        __m256i s[MUR_HOST_ROWS];
        uint32_t i = 0;

        MUR_HOST_EACH(r, MUR_HOST_ROWS) s[r] = _mm256_setzero_si256();
        for (; i + 32 <= k; i += 32)
            MUR_HOST_STEP_256((const void *)(rows[r_] + i), (const void *)(vectors + i))
        for (uint32_t at = i; at < k; at++) {
            x_rest[at - i] = vectors[at];
            for (uint32_t r = 0; r < MUR_HOST_ROWS; r++)
                w_rest[r][at - i] = rows[r][at];
        }
        if (i < k)
            MUR_HOST_STEP_256((const void *)w_rest[r_], (const void *)x_rest)
        mur_host_add(s[0], s[1], s[2], s[3], sums[v]);
    }
}

#else

#define MUR_HAVE_X86 0

static inline int mur_host_level(void)
{
    return 0;
}

#endif

static void mur_host_product_plain(const int8_t *rows[MUR_HOST_ROWS], const int8_t *vectors,
                                   uint32_t bytes, uint32_t count, uint32_t k,
                                   int32_t sums[][MUR_HOST_ROWS])
{
    for (uint32_t v = 0; v < count; v++, vectors += bytes)
        for (uint32_t r = 0; r < MUR_HOST_ROWS; r++) {
            int32_t sum = 0;

            for (uint32_t i = 0; i < k; i++)
                sum += rows[r][i] * vectors[i];
            sums[v][r] += sum;
        }
}

static inline mur_host_product *mur_host_find_product(void)
{
#if MUR_HAVE_X86
    switch (mur_host_level()) {
    case 2:
        return mur_host_product_512;
    case 1:
        return mur_host_product_256;
    }
#endif
    return mur_host_product_plain;
}

#endif
