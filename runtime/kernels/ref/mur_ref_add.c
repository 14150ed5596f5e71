/* mur_ref_add.c - additions in TensorFlow Lite's arithmetic. */
#include "mur_nn_arith.h"

void mur_ref_add_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    mur_add_plain(layer, a, b, out);
}

void mur_ref_line_s8(const mur_add_s8 *layer, const int8_t *a, const int8_t *b, int8_t *out)
{
    mur_line_plain(layer, a, b, out);
}
