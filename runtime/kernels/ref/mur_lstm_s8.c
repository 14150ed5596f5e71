/* mur_lstm_s8.c - the int8 LSTM of mur_recurrent.h in plain C. */
#include "mur_dot.h"
#define dot mur_dot_s8
#include "mur_lstm_int.h"

void mur_lstm_s8_run(const mur_lstm_s8 *layer, const mur_lstm_s8_operands *operands, void *scratch)
{
    mur_lstm_int_run(layer, operands, scratch);
}
