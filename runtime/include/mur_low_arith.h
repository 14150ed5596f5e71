/* mur_low_arith.h - what kernels of few bits share. */
#ifndef MUR_LOW_ARITH_H
#define MUR_LOW_ARITH_H

#include "mur_decoder_arith.h"

/* A 16-bit float that is not negative and finite: exact. */
static inline float mur_half(uint16_t bits)
{
    return mur_float_of((uint32_t)bits << 13) * 5.192296858534828e33f; /* 2^112 */
}

/* the largest level */
static inline int32_t mur_low_most(uint32_t bits)
{
    return (1 << bits) - 1;
}

/* The functions of mur_low.h for 2 and 4 bits, of an instruction set's own multiply and embed. */
#define MUR_LOW_FUNCTIONS(isa, bits) \
    void mur_##isa##_linear_q##bits(const mur_matrix_low *matrix, uint32_t rows, \
                                    const void *vectors, const float *scales, float *out) \
    { \
        multiply(bits, matrix, rows, vectors, scales, out); \
    } \
    void mur_##isa##_embed_q##bits(const mur_matrix_low *matrix, uint32_t rows, \
                                   const int32_t *tokens, float *out) \
    { \
        embed(bits, matrix, rows, tokens, out); \
    }

#endif
