/* mur_mve_low.h - how matrices of 2 and 4 bits lie for mur_mve_low.c.
 *
 * The scales [n], to a multiple of 4 bytes; then streams of k bytes, a byte a column. A stream is
 * four rows of 2 bits or two of 4, the first in the low bits; rows are filled up to a multiple of
 * four. The uppermost index of a byte is less by half its range: the byte is a signed number.
 */
#ifndef MUR_MVE_LOW_H
#define MUR_MVE_LOW_H

#include <stddef.h>
#include <stdint.h>

/* where the streams begin */
static inline size_t mur_mve_low_streams(uint32_t n)
{
    return (size_t)(n + 1) / 2 * 4;
}

/* The byte of an index, counted from the first stream; *flip is what its bits are xored with. */
static inline size_t mur_mve_low_place(uint32_t bits, uint32_t k, uint32_t row, uint32_t column,
                                       uint32_t *shift, uint32_t *flip)
{
    uint32_t stream_rows = 8 / bits, place = row % stream_rows;

    *shift = bits * place;
    *flip = place + 1 == stream_rows ? 1u << (bits - 1) : 0;
    return (size_t)(row / stream_rows) * k + column;
}

#endif
