/* mur_bd_arith.h - what kernels of BlockDialect matrices share.
 *
 * A packed matrix is the scales [n], 16-bit floats, to a multiple of 4 bytes, and rows: a header
 * for every 32 columns, dialect << 4 | shift, then two codes a byte, the first one in the low bits.
 * Code s << 3 | i of a block is the level m[i] of its dialect (mur_dialect.def), negative if s is
 * 1, times 2^shift; shifts are 0..3, so that every level is an int8 number. MUR_BD_SLACK bytes at
 * the end may be read.
 */
#ifndef MUR_BD_ARITH_H
#define MUR_BD_ARITH_H

#include "mur_low.h"
#include "mur_low_arith.h"

enum { MUR_BD_ELEMS = 32, MUR_BD_SLACK = 16, MUR_BD_SHIFTS = 4, MUR_BD_DIALECTS = 16 };

/* levels of codes */
extern const int8_t mur_bd_levels[MUR_BD_DIALECTS][16];

static inline uint32_t mur_bd_headers(uint32_t k)
{
    return (k + MUR_BD_ELEMS - 1) / MUR_BD_ELEMS;
}

static inline uint32_t mur_bd_row_bytes(uint32_t k)
{
    return mur_bd_headers(k) + (k + 1) / 2;
}

/* where row n begins */
static inline const uint8_t *mur_bd_row(const mur_matrix_low *matrix, uint32_t n)
{
    return (const uint8_t *)matrix->packed + (size_t)(matrix->n + 1) / 2 * 4 +
           (size_t)n * mur_bd_row_bytes(matrix->k);
}

/* columns of the block that begins at column i */
static inline uint32_t mur_bd_count(uint32_t k, uint32_t i)
{
    return k - i < MUR_BD_ELEMS ? k - i : MUR_BD_ELEMS;
}

#endif
