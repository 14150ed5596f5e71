/* mur_low.h - a decoder's matrices of 2 or 4 bits a weight: levels 2 c - (2^bits - 1), odd numbers
 * -3..3 or -15..15, times the row's scale, a 16-bit float.
 *
 * The arithmetic is mur_decoder.h's: a level is an int8 number. So a matrix gives the same bits
 * whether it is stored in 2, 4 or 8 bits. What a vector is, and its alignment, stand there too; mve
 * and plain have ref's.
 */
#ifndef MUR_LOW_H
#define MUR_LOW_H

#include <stddef.h>
#include <stdint.h>

/* A matrix [n][k] of the number of bits that the function's name says. May lie in flash. */
typedef struct mur_matrix_low {
    uint32_t n, k;
    const void *packed; /* what mur_ISA_low_pack made */
    const float *bias;  /* [n] or NULL */
} mur_matrix_low;

#define MUR_LINEAR_LOW(isa) \
    /* As mur_##isa##_linear on the levels. */ \
    void mur_##isa##_linear_q2(const mur_matrix_low *matrix, uint32_t rows, const void *vectors, \
                               const float *scales, float *out); \
    void mur_##isa##_linear_q4(const mur_matrix_low *matrix, uint32_t rows, const void *vectors, \
                               const float *scales, float *out);

#define MUR_LOW(isa) \
    MUR_LINEAR_LOW(isa) \
    /* As mur_##isa##_embed on the levels. */ \
    void mur_##isa##_embed_q2(const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens, \
                              float *out); \
    void mur_##isa##_embed_q4(const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens, \
                              float *out); \
    /* On the host: bytes of a packed matrix of 2 or 4 bits, a multiple of 4, and the packing of \
     * levels [n][k] with scales [n], 16-bit floats above 0. */ \
    size_t mur_##isa##_low_bytes(uint32_t bits, uint32_t n, uint32_t k); \
    void mur_##isa##_low_pack(uint32_t bits, uint32_t n, uint32_t k, const int8_t *levels, \
                              const uint16_t *scales, void *packed);

MUR_LOW(ref)
MUR_LOW(dsp)
MUR_LOW(mve)
MUR_LOW(plain)
MUR_LINEAR_LOW(host) /* of ref's matrices */

/* ---- BlockDialect ----
 *
 * Levels in blocks of 32 columns: each the magnitudes of one of sixteen dialects (mur_dialect.def),
 * either sign, times 1, 2, 4 or 8; times the row's scale, a 16-bit float. These are int8 numbers
 * again, and every instruction set has the same form of a matrix. */

#define MUR_LINEAR_BD(isa) \
    /* As mur_##isa##_linear on the levels. */ \
    void mur_##isa##_linear_bd(const mur_matrix_low *matrix, uint32_t rows, const void *vectors, \
                               const float *scales, float *out);

MUR_LINEAR_BD(ref)
MUR_LINEAR_BD(dsp)
MUR_LINEAR_BD(mve)
MUR_LINEAR_BD(plain)
MUR_LINEAR_BD(host)

/* As mur_ref_embed on the levels. */
void mur_ref_embed_bd(const mur_matrix_low *matrix, uint32_t rows, const int32_t *tokens,
                      float *out);

/* On the host: a header (mur_bd_arith.h) under which a block has these levels, 1 to 32 of them, or
 * -1; bytes of a packed matrix, and its packing, with every block under a header and scales [n]
 * above 0. */
int mur_bd_header(const int8_t *levels, uint32_t count);
size_t mur_bd_bytes(uint32_t n, uint32_t k);
void mur_bd_pack(uint32_t n, uint32_t k, const int8_t *levels, const uint16_t *scales,
                 void *packed);

#endif
