/* mur_dsp_pair.h - two int8 in one int16, so that three instructions multiply four of them.
 *
 * V = a + 256 b, a and b in -127..127. Over a sum of products with x,
 *     sum of V x = (sum of a x) + 256 (sum of b x)    modulo 2^32
 * and SXTB16 takes two a out of a word of two V. So SMLAD with V, SXTB16 and SMLAD with a do for
 * four numbers; b's sum is the difference / 256, exact while it has at most 24 bits.
 */
#ifndef MUR_DSP_PAIR_H
#define MUR_DSP_PAIR_H

#include "mur_dsp.h"

enum { MUR_PAIR_MOST = 512 }; /* elements of a sum with x in -127..127: 127 * 127 * 512 < 2^23 */

typedef struct mur_pair_sum {
    int32_t both, first; /* of V x modulo 2^32, of a x */
} mur_pair_sum;

static inline void mur_pair_step(mur_pair_sum *sum, uint32_t pairs, uint32_t x)
{
    sum->both = mur_smlad(pairs, x, sum->both);
    sum->first = mur_smlad(mur_sxtb16(pairs), x, sum->first);
}

static inline int32_t mur_pair_first(mur_pair_sum sum)
{
    return sum.first;
}

static inline int32_t mur_pair_second(mur_pair_sum sum)
{
    return (int32_t)((uint32_t)sum.both - (uint32_t)sum.first) >> 8;
}

/* V and its parts */
static inline int16_t mur_pair(int32_t a, int32_t b)
{
    return (int16_t)(a + 256 * b);
}

static inline int32_t mur_pair_of_first(int16_t pair)
{
    return (int8_t)pair;
}

static inline int32_t mur_pair_of_second(int16_t pair)
{
    return (pair - (int8_t)pair) >> 8;
}

#endif
