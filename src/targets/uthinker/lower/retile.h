/* retile.h - a BlockDialect sequence in tiles of another shape; its blocks keep their values. */
#ifndef MUC_UTHINKER_RETILE_H
#define MUC_UTHINKER_RETILE_H

#include "base/arena.h"
#include "base/bytes.h"

/* Rows along the reduction, a multiple of 32, and columns. */
typedef struct muc_tile_shape {
    uint32_t k, n;
} muc_tile_shape;

/* The sequence of a matrix of k rows and n columns, in arena, as of muc_large_new. A block that is
 * the first of a column in its new tile gets a header of its own. Fails with MUC_MALFORMED if the
 * blocks do not fill the bytes as their sizes say, and looks into no block otherwise. */
muc_status muc_retile(muc_context *ctx, muc_arena *arena, muc_bytes sequence, uint32_t k,
                      uint32_t n, muc_tile_shape from, muc_tile_shape to, muc_bytes *out);

#endif
