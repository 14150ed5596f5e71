/* bd_golden.h - BlockDialect as docs/SPEC-blockdialect.md has it, written from that page alone: the
 * device and the offline quantizer have code of their own, to be compared with this. */
#ifndef MUC_REF_BLOCKS_H
#define MUC_REF_BLOCKS_H

#include "base/base.h"

enum { MUC_GOLDEN_BLOCK = 32, MUC_GOLDEN_TILE_ROWS = 64, MUC_GOLDEN_TILE_COLUMNS = 8 };

/* Element i is the sum over the terms of m[i] * 2^(exponent - 16); a zero block has no terms. */
typedef struct muc_golden_block {
    uint8_t terms, exponent[2];
    uint8_t dialect[2];            /* of encoded values only */
    int8_t m[2][MUC_GOLDEN_BLOCK]; /* zero beyond the block's elements */
} muc_golden_block;

/* Blocks of a column of k elements. */
static inline size_t muc_golden_blocks(size_t k)
{
    return (k + MUC_GOLDEN_BLOCK - 1) / MUC_GOLDEN_BLOCK;
}

/* A matrix of k rows and n columns as a sequence, borrowed. */
typedef struct muc_golden_matrix {
    const uint8_t *sequence;
    size_t bytes, k, n;
} muc_golden_matrix;

/* Bands of n columns: of 8 each, but the last. */
static inline size_t muc_golden_bands(size_t n)
{
    return (n + MUC_GOLDEN_TILE_COLUMNS - 1) / MUC_GOLDEN_TILE_COLUMNS;
}

/* Section 5: the blocks of a band's columns, out[8][muc_golden_blocks(k)]. Fails with MUC_MALFORMED
 * naming the matrix and the byte; where no band fails, the whole sequence is well-formed. */
muc_status muc_golden_decode(muc_context *ctx, const char *name, const muc_golden_matrix *matrix,
                             size_t band, muc_golden_block *out);
/* Where a band that is decoded without failure begins; of muc_golden_bands(n): where the last ends.
 */
size_t muc_golden_start(const muc_golden_matrix *matrix, size_t band);
/* Section 3: k values in 1 or 2 terms, out[muc_golden_blocks(k)]. */
void muc_golden_encode(const float *x, size_t k, unsigned terms, muc_golden_block *out);
/* The block's n values, a block's terms added first term first. */
void muc_golden_values(const muc_golden_block *block, size_t n, float *out);
/* Section 6: start plus the dot product of count weight and activation blocks. */
float muc_golden_dot(const muc_golden_block *weights, const muc_golden_block *activations,
                     size_t count, float start);
/* Section 4's fixed slots of encoded values; returns the bytes written: what the buffers hold. */
size_t muc_golden_slots(const muc_golden_block *blocks, size_t k, uint8_t *out);

#endif
