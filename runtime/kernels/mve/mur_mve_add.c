/* mur_mve_add.c - additions and products of two tensors in TensorFlow Lite's arithmetic, four at a
 * time. */
#include "mur_mve.h"

#if MUR_HAVE_MVE

/* a side: four of (q - zero) << left_shift, scaled */
static inline int32x4_t side(const int8_t *q, int32_t zero, int32_t left_shift, int32_t mul,
                             int32_t shift, mve_pred16_t some)
{
    int32x4_t x = vsubq_n_s32(vldrbq_z_s32(q, some), zero);

    x = vqrdmulhq_n_s32(vshlq_r_s32(x, left_shift), mul);
    return mur_mve_round(x, vdupq_n_s32(shift));
}

/* as many as b has */
static void add(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    int32x4_t min = vdupq_n_s32(layer->min), max = vdupq_n_s32(layer->max);
    int32x4_t shift = vdupq_n_s32(layer->shift);

    for (int32_t left = layer->b_count; left > 0; left -= 4, a += 4, b += 4, out += 4) {
        mve_pred16_t some = vctp32q((uint32_t)left);
        int32x4_t x = side(a, layer->a_zero, layer->left_shift, layer->a_mul, layer->a_shift, some);
        int32x4_t y = side(b, layer->b_zero, layer->left_shift, layer->b_mul, layer->b_shift, some);

        x = layer->subtract ? vsubq_s32(x, y) : vaddq_s32(x, y);
        x = mur_mve_round(vqrdmulhq_n_s32(x, layer->mul), shift);
        x = vminq_s32(vmaxq_s32(vaddq_n_s32(x, layer->zero), min), max);
        vstrbq_p_s32(out, x, some);
    }
}

/* as many as b has */
static void multiply(const mur_mul_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    const mur_output_s8 *to = &layer->output;
    int32x4_t min = vdupq_n_s32(to->min), max = vdupq_n_s32(to->max);
    int32x4_t shift = vdupq_n_s32(layer->shift);

    for (int32_t left = layer->b_count; left > 0; left -= 4, a += 4, b += 4, out += 4) {
        mve_pred16_t some = vctp32q((uint32_t)left);
        int32x4_t x = vsubq_n_s32(vldrbq_z_s32(a, some), layer->a_zero);

        x = vmulq_s32(x, vsubq_n_s32(vldrbq_z_s32(b, some), layer->b_zero));
        x = mur_mve_round(vqrdmulhq_n_s32(x, layer->mul), shift);
        x = vminq_s32(vmaxq_s32(vaddq_n_s32(x, to->zero), min), max);
        vstrbq_p_s32(out, x, some);
    }
}

void mur_mve_add_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    for (int32_t i = 0; i < layer->count; i += layer->b_count)
        add(layer, a + i, b, out + i);
}

void mur_mve_mul_s8(const mur_mul_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    if (!mur_mul_is_short(layer)) {
        mur_mul_plain(*layer, a, b, out);
        return;
    }
    for (int32_t i = 0; i < layer->count; i += layer->b_count)
        multiply(layer, a + i, b, out + i);
}

#else

void mur_mve_add_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    mur_add_plain(layer, a, b, out);
}

void mur_mve_mul_s8(const mur_mul_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    mur_mul_plain(*layer, a, b, out);
}

#endif
