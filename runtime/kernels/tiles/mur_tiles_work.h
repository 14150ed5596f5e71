/* mur_tiles_work.h - what the loops over tiles and over chains have in common. Private to them. */
#ifndef MUR_TILES_WORK_H
#define MUR_TILES_WORK_H

#include <stddef.h>

#include "mur_hal.h"
#include "mur_tiles.h"

/* one tile's place in the result */
typedef struct mur_tiles_box {
    uint32_t row_index, channel_index;
    uint32_t row, rows;
    uint32_t part, parts; /* the first part, counted through the layer */
    uint32_t depth_index, depth, depths;
} mur_tiles_box;

/* What cores share: a tile whose operands are in the small memory. Row first[i] of operand i begins
 * at small + at[i], which may lie before what is there. */
typedef struct mur_tiles_work {
    const mur_tiles *tiles;
    const void *layer;
    mur_tiles_compute *compute;
    const void *kernel;
    uint8_t *small;
    const mur_tiles_box *box;
    ptrdiff_t at[MUR_TILES_OPERANDS];
    uint32_t first[MUR_TILES_OPERANDS];
} mur_tiles_work;

static inline uint32_t mur_tiles_smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The operand's rows for some of the result, in a tile: the first; how many. */
uint32_t mur_tiles_rows(const mur_tiles_operand *operand, const mur_tiles_box *b, uint32_t row,
                        uint32_t rows, uint32_t *first);
/* Starts the moves of some rows of operand i, as wide as the tile, between where it begins in the
 * large memory and where these rows lie in the small one; the last one's ticket, or 0. */
mur_hal_ticket mur_tiles_move(const mur_tiles *t, uint32_t i, const mur_tiles_box *b,
                              uint32_t first, uint32_t rows, uint8_t *large, uint8_t *small);
/* All cores compute the tile. */
void mur_tiles_share(mur_tiles_work *work);

#endif
