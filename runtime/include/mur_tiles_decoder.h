/* mur_tiles_decoder.h - a decoder's operators by tiles (mur_tiles.h): what comes and goes while the
 * cores compute. The arithmetic, and the kernels, are mur_decoder.h's.
 */
#ifndef MUR_TILES_DECODER_H
#define MUR_TILES_DECODER_H

#include "mur_decoder.h"
#include "mur_tiles.h"

typedef void mur_tiles_linear_kernel(const mur_matrix_q8 *matrix, uint32_t rows,
                                     const void *vectors, const float *scales, float *out);
typedef void mur_tiles_linear_low_kernel(const mur_matrix_low *matrix, uint32_t rows,
                                         const void *vectors, const float *scales, float *out);
typedef void mur_tiles_attention_kernel(const mur_attention_q8 *op, uint32_t pos, uint32_t rows,
                                        const float *q, const float *k, const float *v, void *keys,
                                        void *values, void *key_scales, void *value_scales,
                                        float *out, void *scratch);

typedef void mur_tiles_unary_kernel(uint32_t count, const float *x, float *y);
typedef void mur_tiles_binary_kernel(uint32_t count, const float *a, const float *b, float *y);

/* A matrix's product with 1..tiles->rows vectors; channels are the matrix's rows. packed is in
 * parts, each packed as a matrix of its own. Operands: vectors, their scales, packed, the rows'
 * scales, the bias if there is one, result. */
void mur_tiles_linear(const mur_tiles *tiles, const mur_matrix_q8 *matrix,
                      mur_tiles_linear_kernel *kernel, uint32_t rows, const void *vectors,
                      const float *scales, float *out, uint8_t *small);
/* Likewise, without scales of the rows. */
void mur_tiles_linear_low(const mur_tiles *tiles, const mur_matrix_low *matrix,
                          mur_tiles_linear_low_kernel *kernel, uint32_t rows, const void *vectors,
                          const float *scales, float *out, uint8_t *small);

/* Attention of 1..tiles->rows tokens; channels are the heads of keys and values, in at least two
 * parts, since a token's rows are computed in order. The caches stay in the large memory; each is
 * [kv_heads][..], as ref's. Operands: q, k, v, result. */
void mur_tiles_attention(const mur_tiles *tiles, const mur_attention_q8 *op,
                         mur_tiles_attention_kernel *kernel, uint32_t pos, uint32_t rows,
                         const float *q, const float *k, const float *v, void *keys, void *values,
                         void *key_scales, void *value_scales, float *out, uint8_t *small);

/* Element by element; rows are elements, 1..tiles->rows of them, one pixel of one channel each. y
 * may be an input. Operands: inputs, result. */
void mur_tiles_unary_f32(const mur_tiles *tiles, mur_tiles_unary_kernel *kernel, uint32_t count,
                         const float *x, float *y, uint8_t *small);
void mur_tiles_binary_f32(const mur_tiles *tiles, mur_tiles_binary_kernel *kernel, uint32_t count,
                          const float *a, const float *b, float *y, uint8_t *small);

#endif
