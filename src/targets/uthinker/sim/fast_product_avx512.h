/* fast_product_avx512.h - sums of sixteen columns in a register of AVX-512, for the forms of the
 * fast product that multiply so. */
#ifndef UTHINKER_FAST_PRODUCT_AVX512_H
#define UTHINKER_FAST_PRODUCT_AVX512_H

#include "targets/uthinker/sim/fast_product_parts.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>
#include <string.h>

#define AVX512 __attribute__((target("avx2,avx512f,avx512vl,avx512bw,avx512dq,avx512vnni")))
#define INLINE inline __attribute__((always_inline))
/* whose body is written out for each index, so that arrays of registers are registers */
#define EACH(index, count) \
    _Pragma("GCC unroll 8") for (uint32_t index = 0; index < (count); index++)

/* One block of each of sixteen columns. */
typedef struct sixteen {
    __m512i w[8]; /* in lane c four bytes of column c: plus BIAS, by place */
    __m512 scale;
} sixteen;

static INLINE int32_t four_bytes(const int8_t *from)
{
    int32_t four;

    memcpy(&four, from, sizeof(four));
    return four;
}

AVX512 static INLINE __m512 add_term(__m512 sum, const sixteen *of, const left_block *left,
                                     uint32_t t)
{
    /* two chains, which wait for their own sums alone */
    __m512i dot = _mm512_set1_epi32(left->start[t]), other = _mm512_setzero_si512();

    EACH(i, 4)
    {
        dot = _mm512_dpbusd_epi32(dot, of->w[i], _mm512_set1_epi32(four_bytes(left->m[t] + 4 * i)));
        other = _mm512_dpbusd_epi32(other, of->w[4 + i],
                                    _mm512_set1_epi32(four_bytes(left->m[t] + 16 + 4 * i)));
    }
    dot = _mm512_add_epi32(dot, other);
    return _mm512_add_ps(sum,
                         _mm512_mul_ps(_mm512_cvtepi32_ps(dot),
                                       _mm512_mul_ps(of->scale, _mm512_set1_ps(left->scale[t]))));
}

/* Adds a block's products to the sums of all rows. */
AVX512 static INLINE void add_rows(const sixteen *of, const left_block *left, uint32_t rows,
                                   uint32_t terms, float (*sums)[LANES])
{
    if (terms == 2)
        for (uint32_t row = 0; row < rows; row++)
            _mm512_store_ps(sums[row],
                            add_term(add_term(_mm512_load_ps(sums[row]), of, left + row, 0), of,
                                     left + row, 1));
    else
        for (uint32_t row = 0; row < rows; row++)
            _mm512_store_ps(sums[row], add_term(_mm512_load_ps(sums[row]), of, left + row, 0));
}

#endif
#endif
