/* mur_bd_arith.h - what kernels of BlockDialect matrices share.
 *
 * A packed matrix is the scales [n], 16-bit floats, to a multiple of 4 bytes, and rows: for every
 * 32 columns a header, dialect << 4 | factor, then two codes a byte, the first one in the low bits.
 * Code s << 3 | i of a block is the level m[i] of its dialect (mur_dialect.def), negative if s is
 * 1, times the factor; factors are 1, 2, 4 and 8, so that every level is an int8 number.
 * MUR_BD_SLACK bytes at the end may be read.
 */
#ifndef MUR_BD_ARITH_H
#define MUR_BD_ARITH_H

#include "mur_low.h"
#include "mur_low_arith.h"

enum { MUR_BD_ELEMS = 32, MUR_BD_SLACK = 16, MUR_BD_DIALECTS = 16, MUR_BD_FACTOR = 15 };
enum { MUR_BD_BYTES = 1 + MUR_BD_ELEMS / 2 }; /* of a whole block */

/* levels of codes */
extern const int8_t mur_bd_levels[MUR_BD_DIALECTS][16];

static inline uint32_t mur_bd_row_bytes(uint32_t k)
{
    return (k + MUR_BD_ELEMS - 1) / MUR_BD_ELEMS + (k + 1) / 2;
}

/* where row n begins */
static inline const uint8_t *mur_bd_row(const mur_matrix_low *matrix, uint32_t n)
{
    return (const uint8_t *)matrix->packed + (size_t)(matrix->n + 1) / 2 * 4 +
           (size_t)n * mur_bd_row_bytes(matrix->k);
}

/* the level of a block's column */
static inline int32_t mur_bd_level(const uint8_t *block, uint32_t column)
{
    return mur_bd_levels[*block >> 4][block[1 + column / 2] >> column % 2 * 4 & 15] *
           (*block & MUR_BD_FACTOR);
}

/* columns of the block that begins at column i */
static inline uint32_t mur_bd_count(uint32_t k, uint32_t i)
{
    return k - i < MUR_BD_ELEMS ? k - i : MUR_BD_ELEMS;
}

#endif
