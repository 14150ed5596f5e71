/* bd_table.h - the dialects' values and scales, for the codec and the search. Not for other rooms.
 */
#ifndef MUC_BD_TABLE_H
#define MUC_BD_TABLE_H

#include <stdint.h>

#include "base/half.h"

enum { MUC_BD_DIALECTS = 16 };

extern const uint8_t muc_bd_dialects[MUC_BD_DIALECTS][8];

/* For every dialect the index nearest to a magnitude of q/2 to (q+1)/2, q = 0..31 and 31 for what
 * is above: boundaries are integers in q, ties go up. */
extern const uint8_t muc_bd_nearest_index[MUC_BD_DIALECTS][32];

/* 2^(exponent - 16), and its inverse */
static inline float muc_bd_unit(unsigned exponent)
{
    return muc_f32_of_bits((exponent + 111) << 23);
}

static inline float muc_bd_per_unit(unsigned exponent)
{
    return muc_f32_of_bits((143 - exponent) << 23);
}

#endif
