/* mur_mve_silu.c - SiLU of four numbers at a time; only the division is one by one. */
#include "mur_decoder.h"
#include "mur_mve.h"
#include "mur_real.h"

#if MUR_HAVE_MVE && (__ARM_FEATURE_MVE & 2)

/* mur_exp of four. Lanes that flush small numbers to zero do no harm here: what they flush is added
 * to what is greater by far, and no result is small enough. */
static inline float32x4_t exps_of(float32x4_t x)
{
    float32x4_t shifted, n, r, p;
    int32x4_t exponent;

    x = vdupq_m_n_f32(x, -87.0f, vcmpltq_n_f32(x, -87.0f));
    x = vdupq_m_n_f32(x, 88.0f, vcmpgtq_n_f32(x, 88.0f));
    shifted = vaddq_n_f32(vmulq_n_f32(x, 1.44269504f), MUR_SNAP);
    n = vsubq_n_f32(shifted, MUR_SNAP);
    r = vaddq_f32(vsubq_f32(x, vmulq_n_f32(n, 0.693359375f)), vmulq_n_f32(n, 2.12194440e-4f));
    p = vaddq_n_f32(vmulq_n_f32(r, 1 / 5040.0f), 1 / 720.0f);
    p = vaddq_n_f32(vmulq_f32(p, r), 1 / 120.0f);
    p = vaddq_n_f32(vmulq_f32(p, r), 1 / 24.0f);
    p = vaddq_n_f32(vmulq_f32(p, r), 1 / 6.0f);
    p = vaddq_n_f32(vmulq_f32(p, r), 0.5f);
    p = vaddq_n_f32(vaddq_f32(vmulq_f32(vmulq_f32(p, r), r), r), 1.0f);
    exponent = vsubq_n_s32(vreinterpretq_s32_f32(shifted), (int32_t)MUR_SNAP_BITS - 127);
    return vmulq_f32(p, vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23)));
}

void mur_mve_silu_f32(uint32_t count, const float *x, float *y)
{
    for (; count >= 4; count -= 4, x += 4, y += 4) {
        float sums[4];

        vstrwq_f32(sums, vaddq_n_f32(exps_of(vnegq_f32(vldrwq_f32(x))), 1.0f));
        y[0] = x[0] / sums[0];
        y[1] = x[1] / sums[1];
        y[2] = x[2] / sums[2];
        y[3] = x[3] / sums[3];
    }
    for (; count != 0; count--, x++)
        *y++ = *x / (1.0f + mur_exp(-*x));
}

#else

void mur_mve_silu_f32(uint32_t count, const float *x, float *y)
{
    for (; count != 0; count--, x++)
        *y++ = *x / (1.0f + mur_exp(-*x));
}

#endif
