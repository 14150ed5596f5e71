/* mur_mve_matmul.h - scratch of mur_mve_matmul_s8: a panel of b's columns by fours, of each
 * int32 [4], what a's zero point takes from their sums, then the columns as mur_mve_sums.h wants
 * weights; 16 bytes behind the panel may be read. No panel if columns are multiplied where they
 * lie. Then a row of a, for uint8. */
#ifndef MUR_MVE_MATMUL_H
#define MUR_MVE_MATMUL_H

#include "mur_mve.h"

enum {
    MUR_MVE_PANEL = 4, /* fours of columns */
    MUR_MVE_FEW = 4    /* most rows for which columns that lie side by side are not packed */
};

static inline int mur_mve_matmul_is_direct(const mur_matmul_s8 *layer)
{
    return layer->rows <= MUR_MVE_FEW && layer->b_row == 1 && !layer->b_flip;
}

/* of four columns */
static inline int32_t mur_mve_matmul_bytes(const mur_matmul_s8 *layer)
{
    return 16 + 4 * layer->depth;
}

static inline int32_t mur_mve_matmul_fours(const mur_matmul_s8 *layer)
{
    int32_t fours = (layer->columns + 3) / 4;

    return fours < MUR_MVE_PANEL ? fours : MUR_MVE_PANEL;
}

static inline int32_t mur_mve_matmul_panel(const mur_matmul_s8 *layer)
{
    return mur_mve_matmul_is_direct(layer)
               ? 0
               : mur_mve_matmul_fours(layer) * mur_mve_matmul_bytes(layer) + MUR_MVE_BYTES;
}

#endif
