/* mur_lstm_s8.c - the int8 LSTM of mur_recurrent.h in plain C. */
#include "mur_dot.h"
#define dot mur_dot_s8
#include "mur_recurrent_int.h"

void mur_lstm_s8_run(const mur_recurrent_s8 *layer, const mur_recurrent_s8_operands *operands,
                     void *scratch)
{
    mur_recurrent_int_run(layer, NULL, operands, MUR_LSTM, scratch);
}
