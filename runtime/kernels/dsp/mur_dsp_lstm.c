/* mur_dsp_lstm.c - the LSTM of integers on SMLAD: see mur_recurrent.h. */
#include "mur_dsp_dot.h"
#define dot mur_dsp_dot_s8
#include "mur_lstm_int.h"

void mur_dsp_lstm_s8_run(const mur_lstm_s8 *layer, const mur_lstm_s8_operands *operands,
                         void *scratch)
{
    mur_lstm_int_run(layer, operands, scratch);
}
