/* mur_ref_softmax.c - softmax of int8 in plain C. */
#include "mur_softmax.h"

void mur_ref_softmax_s8(const mur_softmax_s8 *layer, const int8_t *in, int8_t *out)
{
    mur_softmax_plain(layer, in, out);
}

void mur_ref_softmax_s16(const mur_softmax_s8 *layer, const int8_t *in, int16_t *out)
{
    int32_t held[MUR_SOFTMAX_HELD];

    for (int32_t y = 0; y < layer->rows; y++, in += layer->columns, out += layer->columns) {
        const mur_softmax_row r = mur_softmax_begin(layer, in, 16, held);

        for (int32_t i = 0; i < layer->columns; i++)
            out[i] = (int16_t)mur_clamp(mur_softmax_share(layer, &r, held, i, in[i]) - 32768,
                                        INT16_MIN, INT16_MAX);
    }
}
