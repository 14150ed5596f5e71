/* mur_dsp_dot.h - mur_dot.h on SMLAD; the rows may lie anywhere. */
#ifndef MUR_DSP_DOT_H
#define MUR_DSP_DOT_H

#include "mur_dsp.h"

static inline int32_t mur_dsp_dot_s8(const int8_t *a, const int8_t *b, uint32_t count, int32_t sum)
{
    const int8_t *const end = a + count;

    for (const int8_t *const fours = a + (count & ~3u); a != fours; a += 4, b += 4) {
        const uint32_t x = mur_four(a), y = mur_four(b);

        sum = mur_smlad(mur_sxtb16(x), mur_sxtb16(y), sum);
        sum = mur_smlad(mur_sxtb16_odd(x), mur_sxtb16_odd(y), sum);
    }
    for (; a != end; a++, b++)
        sum = (int32_t)((uint32_t)sum + (uint32_t)(*a * *b));
    return sum;
}

static inline int32_t mur_dsp_dot_s16(const int16_t *a, const int16_t *b, uint32_t count,
                                      int32_t sum)
{
    uint32_t i = 0;

    for (; i + 2 <= count; i += 2) {
        uint32_t x, y;

        __builtin_memcpy(&x, a + i, sizeof(x));
        __builtin_memcpy(&y, b + i, sizeof(y));
        sum = mur_smlad(x, y, sum);
    }
    if (i < count)
        sum = (int32_t)((uint32_t)sum + (uint32_t)(a[i] * b[i]));
    return sum;
}

#endif
