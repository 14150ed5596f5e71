/* quantlib.h - the integer operators of QuantLib's networks (what Deeploy runs), as pure functions.
 *
 * Rows of n int32 values, each the true value of an element whatever type holds it. '/' truncates
 * toward zero, '>>' is arithmetic (rounds toward minus infinity), floor is said where it is meant.
 * Everything inside is exact: no function overflows for arguments in the ranges given, and results
 * beyond 32 bits wrap. out may be x. Source: Deeploy's kernels, bit for bit.
 */
#ifndef MUC_REF_QUANTLIB_H
#define MUC_REF_QUANTLIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clip((x * mul + add + div / 2) >> shift, lo, hi), div = 2^shift, 0 <= shift <= 31: halves go up.
 */
int32_t muc_quantlib_requant(int32_t x, int32_t mul, int32_t add, unsigned shift, int32_t lo,
                             int32_t hi);

/* s = floor(sqrt(sum of squares / n + 1)), out = clip((x * weight / s) >> shift, lo, hi).
 * |x| < 2^15, n < 2^32, 0 <= shift <= 31. */
void muc_quantlib_rmsnorm(const int32_t *x, const int32_t *weight, size_t n, unsigned shift,
                          int32_t lo, int32_t hi, int32_t *out);

/* t = x - (sum / n), s as above of t, out = (t * weight / s + bias) >> shift, wrapped to 8 bits.
 * |x| < 2^15. */
void muc_quantlib_layernorm(const int32_t *x, const int32_t *weight, const int32_t *bias, size_t n,
                            unsigned shift, int32_t *out);

/* The second order polynomial e = ((p + b)^2 + c) >> z of p = x - max + z * log2 and
 * z = min((max - x) / log2, 31); out = e * (levels - 1) / sum of e, in 0..levels-1 (0 if all e
 * are). coefficients: b, c, log2, |b| <= 2^15, 0 <= c < 2^30, 1 <= log2 <= 2^15. |x| < 2^24, 1 <= n
 * < 2^24. */
void muc_quantlib_softmax(const int32_t *x, const int32_t coefficients[3], size_t n, int32_t levels,
                          int32_t *out);

/* sh = (max - x + 16) >> 5, r = (levels - 1) * 256 / sum of (256 >> sh), out = r >> sh.
 * |x| < 2^24, 1 <= n < 2^24. */
void muc_quantlib_itamax(const int32_t *x, size_t n, int32_t levels, int32_t *out);
/* The same with a running maximum over groups of `group` elements, whose sum is shifted down as
 * the maximum grows, and levels / 2 - 1 in levels' place. */
void muc_quantlib_itapartialmax(const int32_t *x, size_t n, int32_t levels, size_t group,
                                int32_t *out);

/* x * (clip(x + three, 0, six) * one_over_six); coefficients: one_over_six, three, six. */
int32_t muc_quantlib_hardswish(int32_t x, const int32_t coefficients[3]);
/* q = min(|x|, -b), l = sign(x) * (one - (q + b)^2), x * ((one + l) >> 1); coefficients: b, one.
 * -2^15 <= b <= 0, |one| < 2^30. */
int32_t muc_quantlib_gelu(int32_t x, const int32_t coefficients[2]);

/* (delta * eta * a + sign * (d >> 1)) / d of d = eta * b + eps, sign that of the numerator; 0 if
 * d is 0. a and b saturate at 30 bits and a sign; 0 <= delta, eta, eps < 2^31, delta * eta < 2^32.
 */
int32_t muc_quantlib_div(int32_t a, int32_t b, int64_t delta, int64_t eta, int64_t eps);

/* floor(x / 2^shift), 0 <= shift <= 62 */
int64_t muc_quantlib_shift_right(int64_t x, unsigned shift);
/* floor(sqrt(x)) */
uint32_t muc_quantlib_sqrt(uint64_t x);

#endif
