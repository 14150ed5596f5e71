/* mur_dsp_matmul.h - scratch of mur_dsp_matmul_s8: a panel of b's columns by pairs, packed as
 * mur_dsp_four.h wants them, then four rows of a, widened; of one row alone that. */
#ifndef MUR_DSP_MATMUL_H
#define MUR_DSP_MATMUL_H

#include "mur_nn.h"

enum { MUR_DSP_PANEL = 8 }; /* pairs of columns */

/* of a pair of columns, or of a row of a */
static inline int32_t mur_dsp_matmul_words(const mur_matmul_s8 *layer)
{
    return (layer->depth + 3) / 4 * 2;
}

static inline int32_t mur_dsp_matmul_pairs(const mur_matmul_s8 *layer)
{
    int32_t pairs = (layer->columns + 1) / 2;

    if (layer->rows == 1)
        return 0;
    return pairs < MUR_DSP_PANEL ? pairs : MUR_DSP_PANEL;
}

#endif
