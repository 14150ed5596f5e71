/* dot_avx512.c - the float32 product of dot.c for processors with AVX-512: the same sums, two at a
 * time. */
#include "ref/dot_avx512.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512dq,avx512vl")))

/* A register holds the eight sums of two rows of w. */
enum { LANES = 8, PAIRS = MUC_DOT_PANEL / 2, X_ROWS = 4, AHEAD = 16384, STREAM_AHEAD = 4096 };

bool muc_dot_has_avx512(void)
{
    return __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

/* The sums of four rows: eight lanes of each added as a tree. */
AVX512 static inline __m128 finish(__m512 a, __m512 b)
{
    __m512 s = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));

    s = _mm512_add_ps(s, _mm512_shuffle_ps(s, s, 0x4e));
    s = _mm512_add_ps(s, _mm512_shuffle_ps(s, s, 0xb1));
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(
        _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0), s));
}

/* elements i.. of two rows of weights beside each other, from where they lie */
AVX512 static inline __m512 packed_pair(const float *w, size_t k, size_t pair, size_t i)
{
    (void)k;
    return _mm512_loadu_ps(w + i * MUC_DOT_PANEL + pair * 2 * LANES);
}

AVX512 static inline __m512 f32_pair(const float *w, size_t k, size_t pair, size_t i)
{
    const float *at = w + 2 * pair * k + i;

    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(at)), _mm256_loadu_ps(at + k),
                              1);
}

AVX512 static inline __m512 bf16_pair(const uint16_t *w, size_t k, size_t pair, size_t i)
{
    const uint16_t *at = w + 2 * pair * k + i;
    __m256i halves = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i_u *)(const void *)at)),
        _mm_loadu_si128((const __m128i_u *)(const void *)(at + k)), 1);

    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

/* The weights that follow this panel, as many bytes as each step reads. */
#define FETCH(w, i) \
    for (size_t at = 0; at < MUC_DOT_PANEL * LANES * sizeof(*(w)); at += 64) \
        __builtin_prefetch((const char *)((w) + (i)*MUC_DOT_PANEL) + AHEAD + at);
#define KEEP(w, i)

AVX512 static void pack_f32(const float *w, size_t k, float *packed)
{
    for (size_t i = 0; i < k; i += LANES) {
        FETCH(w, i)
        for (size_t r = 0; r < MUC_DOT_PANEL; r++, packed += LANES)
            _mm256_storeu_ps(packed, _mm256_loadu_ps(w + r * k + i));
    }
}

AVX512 static void pack_bf16(const uint16_t *w, size_t k, float *packed)
{
    for (size_t i = 0; i < k; i += LANES) {
        FETCH(w, i)
        for (size_t r = 0; r < MUC_DOT_PANEL; r += 2, packed += 2 * LANES)
            _mm512_storeu_ps(packed, bf16_pair(w, k, r / 2, i));
    }
}

void muc_dot_pack(muc_dot_weights kind, const void *w, size_t k, float *packed)
{
    if (kind == MUC_DOT_BF16)
        pack_bf16(w, k, packed);
    else
        pack_f32(w, k, packed);
}

#define EACH(index, count) _Pragma("GCC unroll 4") for (size_t index = 0; index < (count); index++)
#define TILE(ROWS, PAIR, AHEAD_OF) \
    { \
        __m512 s[ROWS][PAIRS], a[ROWS], b; \
        EACH(r_, ROWS) EACH(p_, PAIRS) s[r_][p_] = _mm512_setzero_ps(); \
        for (size_t i = 0; i < k; i += LANES) { \
            AHEAD_OF(w, i) \
            EACH(r_, ROWS) a[r_] = _mm512_broadcast_f32x8(_mm256_loadu_ps(x + r_ * k + i)); \
            EACH(p_, PAIRS) \
            { \
                b = PAIR(w, k, p_, i); \
                EACH(r_, ROWS) s[r_][p_] = _mm512_add_ps(s[r_][p_], _mm512_mul_ps(a[r_], b)); \
            } \
        } \
        EACH(r_, ROWS) \
        { \
            _mm_storeu_ps(out + r_ * out_stride, finish(s[r_][0], s[r_][1])); \
            _mm_storeu_ps(out + r_ * out_stride + 4, finish(s[r_][2], s[r_][3])); \
        } \
        break; \
    }

#define MULTIPLY(name, type, PAIR, AHEAD_OF) \
    AVX512 static void name(const float *x, size_t rows, const type *w, size_t k, float *out, \
                            size_t out_stride) \
    { \
        for (size_t r = 0, step; r < rows; r += step, x += step * k, out += step * out_stride) { \
            step = rows - r < X_ROWS ? rows - r : X_ROWS; \
            switch (step) { \
            case 4: \
                TILE(4, PAIR, AHEAD_OF) \
            case 3: \
                TILE(3, PAIR, AHEAD_OF) \
            case 2: \
                TILE(2, PAIR, AHEAD_OF) \
            case 1: \
                TILE(1, PAIR, AHEAD_OF) \
            } \
        } \
    }

/* The same of one row of x and long rows of w, two at a time. */
AVX512 static void stream_bf16(const float *x, const uint16_t *w, size_t k, float *out)
{
    for (size_t r = 0; r < MUC_DOT_PANEL; r += 4) {
        __m512 s[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() };

        EACH(p_, 2)
        for (size_t i = 0; i < k; i += LANES) {
            const uint16_t *pair = w + (r + 2 * p_) * k;

            __builtin_prefetch((const char *)(pair + 2 * i) + STREAM_AHEAD);
            s[p_] =
                _mm512_add_ps(s[p_], _mm512_mul_ps(_mm512_broadcast_f32x8(_mm256_loadu_ps(x + i)),
                                                   bf16_pair(pair, k, 0, i)));
        }
        _mm_storeu_ps(out + r, finish(s[0], s[1]));
    }
}

MULTIPLY(multiply_packed, float, packed_pair, KEEP)
MULTIPLY(multiply_f32, float, f32_pair, FETCH)
MULTIPLY(multiply_bf16, uint16_t, bf16_pair, FETCH)

void muc_dot_multiply(muc_dot_weights kind, const float *x, size_t rows, const void *w, size_t k,
                      float *out, size_t out_stride)
{
    if (kind == MUC_DOT_PACKED)
        multiply_packed(x, rows, w, k, out, out_stride);
    else if (kind == MUC_DOT_BF16 && rows == 1 && k >= MUC_DOT_STREAMED)
        stream_bf16(x, w, k, out);
    else if (kind == MUC_DOT_F32)
        multiply_f32(x, rows, w, k, out, out_stride);
    else
        multiply_bf16(x, rows, w, k, out, out_stride);
}

#else

bool muc_dot_has_avx512(void)
{
    return false;
}

void muc_dot_pack(muc_dot_weights kind, const void *w, size_t k, float *packed)
{
    (void)kind, (void)w, (void)k, (void)packed;
}

void muc_dot_multiply(muc_dot_weights kind, const float *x, size_t rows, const void *w, size_t k,
                      float *out, size_t out_stride)
{
    (void)kind, (void)x, (void)rows, (void)w, (void)k, (void)out, (void)out_stride;
}

#endif
