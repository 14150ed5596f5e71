/* mur_mve_lstm_peephole.c - the LSTM of integers with peepholes in vectors of Cortex-M55: see
 * mur_recurrent.h. */
#include "mur_mve_dot.h"
#define dot mur_mve_dot_s8
#include "mur_recurrent_int.h"

void mur_mve_lstm_peephole_s8_run(const mur_recurrent_s8 *layer, const mur_peepholes_s8 *peepholes,
                                  const mur_recurrent_s8_operands *operands, void *scratch)
{
    mur_recurrent_int_run(layer, peepholes, operands, MUR_LSTM, scratch);
}
