/* mur_mve_halves.h - how matrices whose rows' scales are 16-bit floats end, in vectors. */
#ifndef MUR_MVE_HALVES_H
#define MUR_MVE_HALVES_H

#include "mur_mve.h"

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
