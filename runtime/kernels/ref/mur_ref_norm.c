/* mur_ref_norm.c - norms and logarithms of softmax of int8 rows by integers alone. */
#include "mur_log_softmax.h"
#include "mur_norm.h"

void mur_ref_norm_s8(const mur_norm_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_norm_plain(layer, in, out);
}

void mur_ref_log_softmax_s8(const mur_log_softmax_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_log_softmax_plain(layer, in, out);
}
