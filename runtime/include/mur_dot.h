/* mur_dot.h - a sum and the products of two rows of integers, modulo 2^32. */
#ifndef MUR_DOT_H
#define MUR_DOT_H

#include <stdint.h>

static inline int32_t mur_dot_s8(const int8_t *a, const int8_t *b, uint32_t count, int32_t sum)
{
    uint32_t s0 = (uint32_t)sum, s1 = 0, i = 0;

    for (; i + 2 <= count; i += 2) {
        s0 += (uint32_t)(a[i] * b[i]);
        s1 += (uint32_t)(a[i + 1] * b[i + 1]);
    }
    if (i < count)
        s0 += (uint32_t)(a[i] * b[i]);
    return (int32_t)(s0 + s1);
}

static inline int32_t mur_dot_s16(const int16_t *a, const int16_t *b, uint32_t count, int32_t sum)
{
    uint32_t s = (uint32_t)sum;

    for (uint32_t i = 0; i < count; i++)
        s += (uint32_t)(a[i] * b[i]);
    return (int32_t)s;
}

/* of a and b less zero */
static inline int32_t mur_dot_less_s8(const int8_t *a, const int8_t *b, uint32_t count,
                                      int32_t zero, int32_t sum)
{
    uint32_t s = (uint32_t)sum;

    for (uint32_t i = 0; i < count; i++)
        s += (uint32_t)(a[i] * (b[i] - zero));
    return (int32_t)s;
}

#endif
