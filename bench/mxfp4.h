/* mxfp4.h - MXFP4 of the OCP Microscaling specification 1.0, with which BlockDialect is compared.
 *
 * A block of 32 elements shares a power of two, that of the specification's section 6.3; an element
 * is a sign and one of the magnitudes of E2M1.
 */
#ifndef MXFP4_H
#define MXFP4_H

#include <math.h>

#include "base/half.h"

enum { MXFP4_ELEMS = 32, E2M1_TOP_EXPONENT = 2 };

/* the magnitude nearest to y, ties to even codes, 6 beyond 6 */
static inline float mxfp4_nearest(float y)
{
    static const float e2m1[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
    unsigned i = 0;

    /* past a midpoint, or on it with an odd code below, the next code is taken */
    while (i < 7 && (2 * y > e2m1[i] + e2m1[i + 1] || (2 * y == e2m1[i] + e2m1[i + 1] && i % 2)))
        i++;
    return e2m1[i];
}

/* Replaces count finite values, in blocks from the first on, by what their encoding decodes to. */
static inline void mxfp4_round(float *values, size_t count)
{
    for (size_t at = 0; at < count; at += MXFP4_ELEMS) {
        size_t end = count - at < MXFP4_ELEMS ? count : at + MXFP4_ELEMS;
        float max = 0, scale;
        uint32_t biased;

        for (size_t i = at; i < end; i++)
            max = fabsf(values[i]) > max ? fabsf(values[i]) : max;
        biased = muc_f32_bits(max) >> 23;
        /* 2^-127 is subnormal in binary32 */
        scale = muc_f32_of_bits(biased > E2M1_TOP_EXPONENT ? (biased - E2M1_TOP_EXPONENT) << 23
                                                           : 0x400000);
        for (size_t i = at; i < end; i++)
            values[i] = copysignf(mxfp4_nearest(fabsf(values[i]) / scale) * scale, values[i]);
    }
}

#endif
