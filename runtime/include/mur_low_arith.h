/* mur_low_arith.h - what kernels of few bits share. */
#ifndef MUR_LOW_ARITH_H
#define MUR_LOW_ARITH_H

#include "mur_decoder_arith.h"

/* A 16-bit float that is not negative and finite: exact. */
static inline float mur_half(uint16_t bits)
{
    if (MUR_SOFT_FLOAT && bits >= 0x400) /* normal */
        return mur_float_of(((uint32_t)bits << 13) + (112u << 23));
    return mur_float_of((uint32_t)bits << 13) * 5.192296858534828e33f; /* 2^112 */
}

/* the largest level */
static inline int32_t mur_low_most(uint32_t bits)
{
    return (1 << bits) - 1;
}

#endif
