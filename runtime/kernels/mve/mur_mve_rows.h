/* mur_mve_rows.h - how matrices of a decoder are multiplied in vectors: some rows at a time. */
#ifndef MUR_MVE_ROWS_H
#define MUR_MVE_ROWS_H

#include "mur_mve.h"

enum { MUR_MVE_FOUR = 4, MUR_MVE_SOME = 32 }; /* rows that are multiplied, and ended, at once */

/* Rows of a matrix by fours, which lie `step` bytes apart, times a vector of k elements. Their
 * sums, four for each four, go to sums up to end. The assembly of kernels knows the offsets. */
typedef struct mur_mve_fours {
    const int8_t *w;
    uint32_t step;
    const int8_t *x;
    uint32_t k;
    int32_t *sums, *end;
} mur_mve_fours;

#if MUR_HAVE_MVE && (__ARM_FEATURE_MVE & 2)

/* scales of rows (16-bit floats) and of vectors that are not smaller have a normal product */
#define MUR_LEAST_HALF 0x400u
#define MUR_LEAST_VECTOR 0x1p-90f

/* out[i] = (float)sums[i] * (scale * scales[i]) of four rows where no number is one that vectors
 * flush to zero; if there may be one, 0 and nothing is written. */
static inline int mur_mve_scale_halves(int32x4_t sums, float scale, const uint16_t *scales,
                                       float *out)
{
    uint32x4_t halves = vldrhq_u32(scales);
    float32x4_t factors;

    if (scale < MUR_LEAST_VECTOR || vminvq_u32(MUR_LEAST_HALF, halves) < MUR_LEAST_HALF)
        return 0;
    factors = vreinterpretq_f32_u32(vaddq_n_u32(vshlq_n_u32(halves, 13), 112u << 23));
    vstrwq_f32(out, vmulq_f32(vcvtq_f32_s32(sums), vmulq_n_f32(factors, scale)));
    return 1;
}

#endif

#endif
