/* mur_ref_matmul.c - products of two computed matrices in plain C. */
#include "mur_nn_arith.h"

void mur_ref_matmul_s8(const mur_matmul_s8 *layer, const void *a, const void *b, void *out,
                       void *scratch)
{
    (void)scratch;
    mur_matmul_plain(layer, a, b, out);
}
