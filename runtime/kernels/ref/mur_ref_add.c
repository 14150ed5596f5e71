/* mur_ref_add.c - additions in TensorFlow Lite's arithmetic. */
#include "mur_nn_arith.h"

void mur_ref_add_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    mur_add_plain(layer, a, b, out);
}

void mur_ref_line_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    const mur_add_s8 l = *layer; /* in registers: out might be anything */

    for (const int8_t *end = a + l.count; a != end;)
        for (const int8_t *q = b, *b_end = b + l.b_count; q != b_end; q++)
            *out++ = (int8_t)mur_clamp_asr(mur_line(*a++, l.a_mul, *q, l.b_mul, l.mul),
                                           MUR_LINE_PLACES, l.min, l.max);
}
