/* fixed.h - integer arithmetic of quantized networks, as TFLite's reference kernels define it.
 *
 * A number in Qi.f is an int32 that stands for itself times 2^-f, f = 31 - i. Halves are rounded
 * away from zero, except in muc_fixed_high_mul, which rounds them up. Every function is exact for
 * every argument: what does not fit saturates where TFLite saturates, and wraps where it shifts.
 */
#ifndef MUC_FIXED_H
#define MUC_FIXED_H

#include "base/base.h"

/* A real factor, mantissa * 2^(shift - 31), 2^30 <= mantissa < 2^31 or both 0. */
typedef struct muc_multiplier {
    int32_t mantissa;
    int32_t shift;
} muc_multiplier;

/* The multiplier nearest to factor >= 0; below about 2^-32 it is 0. factor < 2^31. */
muc_multiplier muc_multiplier_of(double factor);
/* x * multiplier with two roundings: of the product with the mantissa to 32 bits, then of the
 * shift to the right. (A shift to the left comes before both and wraps.) */
int32_t muc_multiply(int32_t x, muc_multiplier multiplier);
/* The same for the wide sums of 16-bit activations: a mantissa of 16 bits, halves up, once.
 * -2^47 <= x < 2^47, multiplier.shift < 8. */
int32_t muc_multiply_wide(int64_t x, muc_multiplier multiplier);

/* a * b / 2^31, halves up; -2^31 squared saturates. */
int32_t muc_fixed_high_mul(int32_t a, int32_t b);
/* x / 2^n, halves away from zero; 0 <= n <= 31. */
int32_t muc_fixed_divide_pot(int32_t x, int n);

/* e^x in Q0.31 of x <= 0 in Q5.26. */
int32_t muc_fixed_exp(int32_t x);
/* 1 / x of x > 0 in Qi.(31-i): the result in Q0.31 is 1 / x times 2^*shift, *shift = i - leading
 * zeros of x. */
int32_t muc_fixed_reciprocal(int32_t x, int integer_bits, int *shift);

#endif
