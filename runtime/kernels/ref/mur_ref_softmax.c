/* mur_ref_softmax.c - softmax of int8 in plain C. */
#include "mur_softmax.h"

void mur_ref_softmax_s8(const mur_softmax_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_softmax_computed(layer, in, out);
}

void mur_ref_softmax_exps_s8(const mur_softmax_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_softmax_of_exps(layer, in, out);
}

void mur_ref_softmax_s16(const mur_softmax_s8 *layer, const int8_t *in, int16_t *out)
{
    int32_t held[MUR_SOFTMAX_HELD];

    for (int32_t y = 0; y < layer->rows; y++, in += layer->columns, out += layer->columns) {
        const mur_softmax_row r = mur_softmax_begin(layer, in, 16, held);

        for (int32_t i = 0; i < layer->columns; i++) {
            int32_t share = mur_softmax_share(&r, mur_softmax_exp(layer, &r, held, i, in));

            out[i] = (int16_t)((share < 65535 ? share : 65535) - 32768);
        }
    }
}
