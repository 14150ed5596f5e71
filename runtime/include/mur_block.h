/* mur_block.h - one BlockDialect block: parsed, decoded, or encoded online.
 *
 * docs/SPEC-blockdialect.md fixes every bit. Integer arithmetic throughout; float appears only as
 * the type of the values handed in and out. No state, no allocation, stack under 800 bytes.
 */
#ifndef MUR_BLOCK_H
#define MUR_BLOCK_H

#include <stddef.h>
#include <stdint.h>

enum {
    MUR_BLOCK_ELEMS = 32,     /* elements of a whole block; a tail block has fewer */
    MUR_BLOCK_TERMS = 2,      /* terms of the largest kind */
    MUR_BLOCK_MAX_BYTES = 37, /* the largest block, its size byte included */
    MUR_BLOCK_EXPONENT_BIAS = 16,
    MUR_BLOCK_NO_HEADER = 0xffff, /* of a zero block, or above the first block of a column */
    MUR_BLOCK_SHARED = 0x80       /* bit of the size byte: the header is the block's above */
};

/* The kind field of a block's header, SPEC section 4. A zero block has no header, so no kind. */
enum { MUR_BLOCK_B4, MUR_BLOCK_B5, MUR_BLOCK_R };

/* Element i of a term is m[i] * 2^(exponent - MUR_BLOCK_EXPONENT_BIAS). */
typedef struct mur_block_term {
    uint8_t exponent;          /* 0..31 */
    int8_t m[MUR_BLOCK_ELEMS]; /* -15..15; 0 beyond the block's n elements */
} mur_block_term;

/* What the multipliers see: element i is the sum of its terms' elements i. */
typedef struct mur_block {
    uint32_t terms;  /* 0 for a zero block, 2 for kind R, otherwise 1 */
    uint32_t header; /* its first header, own or shared; MUR_BLOCK_NO_HEADER for a zero block */
    mur_block_term term[MUR_BLOCK_TERMS];
} mur_block;

/* Reads the block of n elements, 1 <= n <= 32, that starts at bytes[0], looking at no byte beyond
 * size. above: the header member of the block above it in the same column and tile, or
 * MUR_BLOCK_NO_HEADER where there is none. Returns the bytes that it takes (at least 1), or 0 if it
 * is malformed or cut short; out is then undefined. Only terms in use are written. */
size_t mur_block_parse(const uint8_t *bytes, size_t size, uint32_t n, uint32_t above,
                       mur_block *out);

/* The n elements' values. Exact, but for a sum of two terms whose exponents are so far apart that
 * it takes the one rounding of a binary32 addition. */
void mur_block_values(const mur_block *block, uint32_t n, float *values);

/* Both at once, for a small core, at a tenth of the instructions: the values of the block that
 * mur_block_parse would read. *header is `above`, and becomes the block's header member. Returns
 * what mur_block_parse does; header and values are undefined after 0. */
size_t mur_block_decode(const uint8_t *bytes, size_t size, uint32_t n, uint32_t *header,
                        float *values);

/* Bytes of a fixed slot for n elements in 1 or 2 terms. */
uint32_t mur_block_slot_bytes(uint32_t n, uint32_t terms);

/* Encodes n elements, 1 <= n <= 32, into a fixed slot by the two-stage rule of SPEC section 3.
 * terms is 1 (kind B4) or 2 (kind R). Writes and returns mur_block_slot_bytes(n, terms) bytes.
 * Magnitudes above 65504, infinities and NaNs saturate to 65504 with x's sign. */
uint32_t mur_block_encode(const float *x, uint32_t n, uint32_t terms, uint8_t *slot);

#endif
