/* mur_linear.h - ONNX's linear quantization, one value at a time. */
#ifndef MUR_LINEAR_H
#define MUR_LINEAR_H

#include "mur_real.h"

/* x to the nearest integer, halves to even, + zero, within low..high; NaN: zero */
static inline int32_t mur_quantize_real(float x, int32_t zero, int32_t low, int32_t high)
{
    float n = mur_round_even(x) + (float)zero;

    if (n != n)
        return zero;
    return n <= (float)low ? low : n >= (float)high ? high : (int32_t)n;
}

/* The same for a sum of products, by a binary64 factor. */
static inline int32_t mur_quantize_sum(int32_t sum, double factor, int32_t zero, int32_t low,
                                       int32_t high)
{
    double x = (double)sum * factor, n;

    if (!(x > -4e9 && x < 4e9))
        return x != x ? zero : x < 0 ? low : high;
    /* 1.5 * 2^52: the last place of the sum is 1 */
    n = (x + 6755399441055744.0) - 6755399441055744.0 + zero;
    return n <= low ? low : n >= high ? high : (int32_t)n;
}

#endif
