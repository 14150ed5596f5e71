/* mur_dsp_rnn.c - the RNN of integers on SMLAD: see mur_recurrent.h. */
#include "mur_dsp_dot.h"
#define dot mur_dsp_dot_s8
#include "mur_recurrent_int.h"

void mur_dsp_rnn_s8_run(const mur_recurrent_s8 *layer, const mur_recurrent_s8_operands *operands,
                        void *scratch)
{
    mur_recurrent_int_run(layer, NULL, operands, MUR_RNN, scratch);
}
