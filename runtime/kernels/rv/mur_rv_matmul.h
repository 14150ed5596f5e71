/* mur_rv_matmul.h - scratch of mur_rv_matmul_s8: a panel of b's columns by fours, as mur_rv_four.h
 * wants them, then four rows of a by pairs. */
#ifndef MUR_RV_MATMUL_H
#define MUR_RV_MATMUL_H

#include "mur_rv.h"

enum { MUR_RV_PANEL = 4 }; /* fours of columns */

static inline int32_t mur_rv_matmul_inputs(const mur_matmul_s8 *layer)
{
    return (layer->depth + 1) & ~1;
}

/* of four columns */
static inline int32_t mur_rv_matmul_bytes(const mur_matmul_s8 *layer)
{
    return MUR_RV_CHANNELS * ((int32_t)sizeof(mur_ref_channel) + mur_rv_matmul_inputs(layer));
}

static inline int32_t mur_rv_matmul_fours(const mur_matmul_s8 *layer)
{
    int32_t fours = (layer->columns + MUR_RV_CHANNELS - 1) / MUR_RV_CHANNELS;

    return fours < MUR_RV_PANEL ? fours : MUR_RV_PANEL;
}

#endif
