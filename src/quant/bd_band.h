/* bd_band.h - a matrix by rows of tiles, and the elements of one of them. Not for other rooms.
 *
 * A band is the 8 columns of one row of tiles. Bands are independent and follow each other in the
 * sequence, so they are the unit of parallel work, and only 8 columns are ever held as floats.
 */
#ifndef MUC_BD_BAND_H
#define MUC_BD_BAND_H

#include "quant/bd_sequence.h"

typedef struct muc_bd_bands {
    uint32_t n, k, bands, tiles_down; /* tiles_down: tiles in a band */
    uint32_t tiles;
} muc_bd_bands;

/* A tile: its columns, and where its elements lie in them. */
typedef struct muc_bd_tile {
    uint32_t columns, first_k, rows;
} muc_bd_tile;

static inline uint32_t muc_bd_pieces(uint32_t length, uint32_t piece)
{
    return length / piece + (length % piece != 0);
}

static inline uint32_t muc_bd_bands_index_bytes(const muc_bd_bands *g)
{
    return (uint32_t)muc_bd_index_bytes(g->n, g->k);
}

static inline const float *muc_bd_importance_at(const muc_bd_matrix *matrix, uint32_t k)
{
    return matrix->importance ? matrix->importance + k : NULL;
}

/* Where a column of a tile is among the matrix's, of which every tile has one. */
static inline size_t muc_bd_column_at(const muc_bd_bands *g, uint32_t band, uint32_t down,
                                      uint32_t column)
{
    return ((size_t)band * MUC_BD_TILE_N + column) * g->tiles_down + down;
}

/* Fails with MUC_MALFORMED where there is no element, with MUC_NOFIT where the index alone would be
 * too large; messages say name and offset. */
muc_status muc_bd_bands_of(muc_context *ctx, const char *name, uint64_t offset, uint32_t n,
                           uint32_t k, muc_bd_bands *out);

muc_bd_tile muc_bd_tile_at(const muc_bd_bands *g, uint32_t band, uint32_t down);

/* Into out [columns of the band][k]. Fails with MUC_UNSUPPORTED on an element that no block holds.
 */
muc_status muc_bd_read_band(muc_context *ctx, const muc_bd_matrix *matrix, const muc_bd_bands *g,
                            uint32_t band, float *out);

#endif
