/* mur_ref_add.c - additions in TensorFlow Lite's arithmetic. */
#include "mur_nn_arith.h"

void mur_ref_add_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    mur_add_plain(layer, a, b, out);
}

void mur_ref_line_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    const mur_add_s8 l = *layer; /* in registers: out might be anything */
    const int8_t *b_end = b + l.b_count;

    for (const int8_t *end = a + l.count; a != end; a++, out++) {
        *out = (int8_t)mur_clamp(mur_line(*a, l.a_mul, *b, l.b_mul, l.mul), l.min, l.max);
        if (++b == b_end)
            b -= l.b_count;
    }
}
