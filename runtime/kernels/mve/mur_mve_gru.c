/* mur_mve_gru.c - the GRU of integers in vectors of Cortex-M55: see mur_recurrent.h. */
#include "mur_mve_dot.h"
#define dot mur_mve_dot_s8
#include "mur_recurrent_int.h"

void mur_mve_gru_s8_run(const mur_recurrent_s8 *layer, const mur_recurrent_s8_operands *operands,
                        void *scratch)
{
    mur_recurrent_int_run(layer, NULL, operands, MUR_GRU, scratch);
}
