/* mur_ref_matmul.c - products of two computed matrices in plain C. */
#include "mur_nn_arith.h"

static int32_t sum_of(const mur_matmul_s8 *layer, const uint8_t *a, const uint8_t *b)
{
    int32_t sum = 0;

    for (int32_t k = 0; k < layer->depth; k++, b += layer->b_row)
        sum += ((int8_t)(a[k] ^ layer->a_flip) - layer->a_zero) *
               ((int8_t)(*b ^ layer->b_flip) - layer->b_zero);
    return sum;
}

void mur_ref_matmul_s8(const mur_matmul_s8 *layer, const void *a, const void *b, void *out,
                       void *scratch)
{
    (void)scratch;
    for (int32_t i = 0; i < layer->rows; i++)
        for (int32_t j = 0; j < layer->columns; j++)
            ((uint8_t *)out)[i * layer->out_pitch + j] =
                mur_matmul_output(layer, sum_of(layer, (const uint8_t *)a + i * layer->a_pitch,
                                                (const uint8_t *)b + j * layer->b_column));
}
