/* train_real.h - the number that training computes with, and its matrix product.
 *
 * float. Tests compile this room a second time with MUC_TRAIN_DOUBLE, so that gradients can be
 * held against finite differences with more digits than float32 has.
 */
#ifndef MUC_TRAIN_REAL_H
#define MUC_TRAIN_REAL_H

#include <cblas.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/real.h"
#include "base/vector_loop.h"

#ifdef MUC_TRAIN_DOUBLE
typedef double muc_scalar;
typedef __typeof__(cblas_dgemm) muc_train_gemm_function;
#else
typedef float muc_scalar;
typedef __typeof__(cblas_sgemm) muc_train_gemm_function;
#endif

extern muc_train_gemm_function *muc_train_blas_gemm; /* NULL before muc_train_open_blas */

static inline muc_scalar muc_train_sqrt(muc_scalar x)
{
#ifdef MUC_TRAIN_DOUBLE
    return sqrt(x);
#else
    return sqrtf(x);
#endif
}

/* e^x for x <= 88; 0 below -87. Without branches, so that loops over it become vector code; the
 * error is below 2 units in the last place of a float. */
static inline muc_scalar muc_train_exp(muc_scalar x)
{
#ifdef MUC_TRAIN_DOUBLE
    return muc_exp(x);
#else
    const float rounder = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    float low = x < -87.0f ? 0.0f : 1.0f, clamped = x < -87.0f ? -87.0f : x;
    float n = clamped * 1.44269504f + rounder, r, y, power;
    int32_t bits;

    n -= rounder;
    r = clamped -
        n * 0.693359375f; /* ln 2 in two parts; the first has 9 bits, products are exact */
    r -= n * -2.12194440e-4f;
    y = 1.9875691500e-4f;
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * r * r + r + 1;
    bits = ((int32_t)n + 127) * (1 << 23);
    memcpy(&power, &bits, sizeof(power));
    return y * power * low;
#endif
}

/* C [m][n] = alpha A B + beta C, row-major, on the calling thread alone; A is stored transposed
 * ([k][m]) if a_turned, B ([n][k]) if b_turned. */
static inline void muc_train_gemm(bool a_turned, bool b_turned, size_t m, size_t n, size_t k,
                                  muc_scalar alpha, const muc_scalar *a, size_t a_stride,
                                  const muc_scalar *b, size_t b_stride, muc_scalar beta,
                                  muc_scalar *c, size_t c_stride)
{
    muc_train_blas_gemm(CblasRowMajor, a_turned ? CblasTrans : CblasNoTrans,
                        b_turned ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, alpha, a,
                        (int)a_stride, b, (int)b_stride, beta, c, (int)c_stride);
}

#endif
