/* mur_ref_add.c - additions in TensorFlow Lite's arithmetic. */
#include "mur_ref.h"

/* MUR_REQUANT_Q31 of x / 2, at most 2^30 in size; half: 2^right / 2 */
static inline int32_t scale(int32_t x, int32_t mul, int32_t right, int32_t half)
{
    int64_t product = (int64_t)x * mul;
    int32_t y = (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31); /* halves up */

    if (right == 0)
        return y;
    return mur_asr(y + mur_asr(y, 31) + half, right); /* halves away from zero */
}

static int32_t half_of(int32_t right)
{
    return (int32_t)((1u << right) >> 1);
}

void mur_ref_add_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    int32_t left = layer->left_shift + 1, a_right = -layer->a_shift, b_right = -layer->b_shift;
    int32_t right = -layer->shift, a_half = half_of(a_right), b_half = half_of(b_right);
    int32_t half = half_of(right), min = layer->min, max = layer->max;
    const int8_t *b_end = b + layer->b_count;

    for (const int8_t *end = a + layer->count; a != end; a++, out++) {
        int32_t x = mur_shift_left(*a - layer->a_zero, left);
        int32_t y = mur_shift_left(*b - layer->b_zero, left);

        x = scale(x, layer->a_mul, a_right, a_half);
        y = scale(y, layer->b_mul, b_right, b_half);
        x = scale(mur_shift_left(layer->subtract ? x - y : x + y, 1), layer->mul, right, half);
        x += layer->zero;
        if (x < min)
            x = min;
        if (x > max)
            x = max;
        *out = (int8_t)x;
        if (++b == b_end)
            b -= layer->b_count;
    }
}
