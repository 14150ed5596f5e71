/* mur_mve_half.c - halves element by element, by Helium's arithmetic on halves: to round a sum or a
 * product to binary32 and then to a half is to round it once. */
#include "mur_mve_half.h"

#if MUR_HAVE_MVE_HALF

void mur_mve_floats_of(int32_t count, const uint16_t *x, float *y)
{
    for (; count > 0; count -= 4, x += 4, y += 4) {
        mve_pred16_t inside = vctp32q((uint32_t)count);

        vstrwq_p_f32(y, mur_half_load_some(x, inside), inside);
    }
}

void mur_mve_halves_of(int32_t count, const float *x, uint16_t *y)
{
    for (; count > 0; count -= 4, x += 4, y += 4)
        mur_half_store(vldrwq_z_f32(x, vctp32q((uint32_t)count)), mur_half_floor(0), count, y);
}

/* form: of the vectors p and q */
#define ELEMENTS(form) \
    for (; count > 0; count -= 8, a += 8, b += 8, y += 8) { \
        mve_pred16_t inside = vctp16q((uint32_t)count); \
        float16x8_t p = vreinterpretq_f16_u16(vldrhq_z_u16(a, inside)); \
        float16x8_t q = vreinterpretq_f16_u16(vldrhq_z_u16(b, inside)); \
\
        vstrhq_p_u16(y, vreinterpretq_u16_f16(form), inside); \
    }

void mur_mve_sums_f16(int32_t count, const uint16_t *a, const uint16_t *b, uint16_t *y)
{
    ELEMENTS(vaddq_f16(p, q))
}

void mur_mve_differences_f16(int32_t count, const uint16_t *a, const uint16_t *b, uint16_t *y)
{
    ELEMENTS(vsubq_f16(p, q))
}

void mur_mve_products_f16(int32_t count, const uint16_t *a, const uint16_t *b, uint16_t *y)
{
    ELEMENTS(vmulq_f16(p, q))
}

void mur_mve_rectified_f16(int32_t count, const uint16_t *x, uint16_t *y)
{
    const float16x8_t zero = vdupq_n_f16(0);

    for (; count > 0; count -= 8, x += 8, y += 8) {
        mve_pred16_t inside = vctp16q((uint32_t)count);
        float16x8_t v = vreinterpretq_f16_u16(vldrhq_z_u16(x, inside));

        v = vpselq_f16(zero, v, vcmpgeq_f16(zero, v)); /* not of NaN */
        vstrhq_p_u16(y, vreinterpretq_u16_f16(v), inside);
    }
}

#else

void mur_mve_floats_of(int32_t count, const uint16_t *x, float *y)
{
    for (int32_t i = 0; i < count; i++)
        y[i] = mur_float_of_half(x[i]);
}

void mur_mve_halves_of(int32_t count, const float *x, uint16_t *y)
{
    for (int32_t i = 0; i < count; i++)
        y[i] = mur_half_of_float(x[i]);
}

void mur_mve_sums_f16(int32_t count, const uint16_t *a, const uint16_t *b, uint16_t *y)
{
    for (int32_t i = 0; i < count; i++)
        y[i] = mur_half_of_float(mur_float_of_half(a[i]) + mur_float_of_half(b[i]));
}

void mur_mve_differences_f16(int32_t count, const uint16_t *a, const uint16_t *b, uint16_t *y)
{
    for (int32_t i = 0; i < count; i++)
        y[i] = mur_half_of_float(mur_float_of_half(a[i]) - mur_float_of_half(b[i]));
}

void mur_mve_products_f16(int32_t count, const uint16_t *a, const uint16_t *b, uint16_t *y)
{
    for (int32_t i = 0; i < count; i++)
        y[i] = mur_half_of_float(mur_float_of_half(a[i]) * mur_float_of_half(b[i]));
}

void mur_mve_rectified_f16(int32_t count, const uint16_t *x, uint16_t *y)
{
    for (int32_t i = 0; i < count; i++)
        y[i] = mur_float_of_half(x[i]) <= 0 ? 0 : x[i];
}

#endif

void mur_mve_limited_f16(int32_t count, const float *limits, const uint16_t *x, uint16_t *y)
{
    mur_half_clip(count, limits, x, y);
}
