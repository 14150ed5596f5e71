/* mur_mve_rows.h - how matrices of a decoder are multiplied in vectors: some rows at a time. */
#ifndef MUR_MVE_ROWS_H
#define MUR_MVE_ROWS_H

#include "mur_mve.h"

enum { MUR_MVE_SOME = 64 }; /* rows that are ended at once; MUR_MVE_FOUR are multiplied */

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

/* whether no number of so many rows is one that vectors flush to zero */
static inline int mur_mve_are_normal(float scale, const uint16_t *scales, uint32_t count)
{
    uint32_t least = MUR_LEAST_HALF;

    __asm__ volatile("wlstp.16 lr, %2, 2f\n"
                     "1: vldrh.16 q0, [%1], #16\n"
                     "vminv.u16 %0, q0\n"
                     "letp lr, 1b\n"
                     "2:"
                     : "+r"(least), "+l"(scales)
                     : "r"(count)
                     : "lr", "q0", "memory");
    return scale >= MUR_LEAST_VECTOR && least == MUR_LEAST_HALF;
}

/* out[i] = (float)sums[i] * (scale * scales[i]) of four such rows */
static inline void mur_mve_scale_halves(int32x4_t sums, float scale, const uint16_t *scales,
                                        float *out)
{
    uint32x4_t halves = vldrhq_u32(scales);
    float32x4_t factors = vreinterpretq_f32_u32(vaddq_n_u32(vshlq_n_u32(halves, 13), 112u << 23));

    vstrwq_f32(out, vmulq_f32(vcvtq_f32_s32(sums), vmulq_n_f32(factors, scale)));
}

#endif

#endif
