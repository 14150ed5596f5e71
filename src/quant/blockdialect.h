/* blockdialect.h - BlockDialect blocks offline: least squares over every kind, dialect and scale.
 *
 * docs/SPEC-blockdialect.md fixes the bits. This is one of two implementations: the device's
 * parser (runtime/src/mur_block.c) shares only the table of dialects with it.
 */
#ifndef MUC_BLOCKDIALECT_H
#define MUC_BLOCKDIALECT_H

#include "base/base.h"

/* name, number in a block's header; Z has no header, its number only completes the list */
#define MUC_BD_KINDS(X) \
    X(B4, 0) \
    X(B5, 1) \
    X(R, 2) \
    X(Z, 3)

typedef enum muc_bd_kind {
#define MUC_BD_KIND(name, number) MUC_BD_##name = number,
    MUC_BD_KINDS(MUC_BD_KIND)
#undef MUC_BD_KIND
} muc_bd_kind;

enum {
    MUC_BD_KIND_COUNT = 4,
    MUC_BD_ELEMS = 32,     /* elements of a whole block */
    MUC_BD_LANES = 8,      /* columns that are chosen for together */
    MUC_BD_ROWS = 64,      /* of a tile: what one column has in it, in one block or two */
    MUC_BD_MAX_BYTES = 37, /* the largest block, its size byte included */
    MUC_BD_SHARED = 0x80,  /* of a size byte: the header is that of the block above */
    /* sets of kinds are of 1 << muc_bd_kind, Z always being there; this joins them: may a block
     * share the header above? */
    MUC_BD_SHARING = 1 << MUC_BD_KIND_COUNT,
    MUC_BD_ALL_KINDS = 1 << MUC_BD_B4 | 1 << MUC_BD_B5 | 1 << MUC_BD_R | MUC_BD_SHARING
};
#define MUC_BD_MAX_WEIGHT 65504.0f /* larger magnitudes are refused before they come here */

/* An element's code is s << 3 | index, for B5 s << 4 | m. */
typedef struct muc_bd_term {
    uint8_t dialect, exponent; /* 0..15, 0..31 */
    uint8_t code[MUC_BD_ELEMS];
} muc_bd_term;

/* A block's grid (kind, dialects, exponents) and where on it each element lies. Only R has a
 * second term, Z has none. */
typedef struct muc_bd_block {
    muc_bd_kind kind;
    bool shared; /* written without its header, which is that of the block above */
    muc_bd_term term[2];
} muc_bd_block;

/* The blocks of one column in one tile, from above: ceil(rows / 32) of them, the last one with what
 * is left. A grid is chosen for them together. */
typedef struct muc_bd_column {
    unsigned rows; /* 1..64 */
    muc_bd_block block[2];
} muc_bd_column;

static inline unsigned muc_bd_block_count(unsigned rows)
{
    return rows > MUC_BD_ELEMS ? 2 : 1;
}

/* elements of block b of a column of `rows` */
static inline unsigned muc_bd_block_elements(unsigned rows, unsigned b)
{
    return rows - b * MUC_BD_ELEMS < MUC_BD_ELEMS ? rows - b * MUC_BD_ELEMS : MUC_BD_ELEMS;
}

/* ---- choosing ---- */

/* What blocks may become. The price of a byte is a position on a scale of 2^19 steps (the upper
 * bits of a binary32), so that bytes can be counted exactly for every price at once. */
typedef struct muc_bd_rule {
    uint32_t kinds; /* set of 1 << muc_bd_kind and MUC_BD_SHARING; one of B4, B5, R at least */
    uint32_t price; /* 0: bytes are free, least error wins */
} muc_bd_rule;
enum { MUC_BD_PRICES = 0x7f800000 >> 12, MUC_BD_MAX_OFFERS = 7 };

/* What one column can take: sizes in rising order, each with the highest price at which it is worth
 * its bytes (the first one is taken at any price). */
typedef struct muc_bd_offer {
    uint32_t bytes, price;
    uint32_t grids; /* in a word of their own kind; 0 where one is R, which has two */
} muc_bd_offer;
typedef struct muc_bd_offers {
    unsigned count; /* at least 1 */
    muc_bd_offer offer[MUC_BD_MAX_OFFERS];
} muc_bd_offers;

/* Chooses kinds, dialects and exponents for a column's rows (finite, at most MUC_BD_MAX_WEIGHT in
 * magnitude) and puts every element on the nearest value v. The error is the sum of
 * importance[i] * (w[i] - v)^2; importance is >= 0 and finite, NULL means all 1. Of equal errors
 * the fewer bytes win, then the lower exponent, then the lower dialect. A block where no grid is
 * better than zeros becomes Z. */
void muc_bd_choose(const muc_bd_rule *rule, const float *w, const float *importance, unsigned rows,
                   muc_bd_column *out);

/* The same for the columns w[0..count-1], 1 to MUC_BD_LANES of them, of as many rows. */
void muc_bd_choose_columns(const muc_bd_rule *rule, const float *const *w, unsigned count,
                           const float *importance, unsigned rows, muc_bd_column *const *out);

/* The sizes among which muc_bd_choose_columns decides by price. */
void muc_bd_offer_columns(uint32_t kinds, const float *const *w, unsigned count,
                          const float *importance, unsigned rows, muc_bd_offers *out);

/* What a column becomes at the prices from lowest to highest, in a word: of one offer or two. 0:
 * there are more, or one with R. */
uint64_t muc_bd_keep_offers(const muc_bd_offers *offers, uint32_t lowest, uint32_t highest);

/* What muc_bd_choose_columns makes of that column with the same kinds at one of these prices; kept
 * is not 0. */
void muc_bd_take_kept(uint64_t kept, const muc_bd_rule *rule, const float *w, unsigned rows,
                      muc_bd_column *out);

/* A row of k finite weights as int8 numbers times *scale, a power of two of 2^-16..2^12: blocks of
 * 32 of them, each on the magnitudes of one dialect, times 1, 2, 4 or 8, by least squares. So a
 * block is one of kind B4, and exponents of a row differ by 3 at most. */
void muc_bd_row_levels(size_t k, const float *w, int8_t *levels, float *scale);

/* ---- elements ---- */

/* Puts element i on the block's nearest value to w, ties to the larger magnitude, and returns it.
 */
float muc_bd_round(muc_bd_block *block, unsigned i, float w);

/* Puts the first n elements on the nearest values. */
void muc_bd_round_block(muc_bd_block *block, unsigned n, const float *w);

/* The first n elements' values; exact for one term, rounded once to binary32 for two. */
void muc_bd_values(const muc_bd_block *block, unsigned n, float *values);

/* sum importance[i] * (w[i] - value)^2 over the first n elements, in double; and into *energy, if
 * it is not NULL, the same for values of 0 */
double muc_bd_error(const muc_bd_block *block, const float *w, const float *importance, unsigned n,
                    double *energy);

/* ---- bytes ---- */

/* Gives the blocks the smallest form of their values: Z for all zero and, if kinds has
 * MUC_BD_SHARING, one header for two equal ones. */
void muc_bd_pack(muc_bd_column *column, uint32_t kinds);

/* Bytes of a block of n elements with a header of its own, size byte included. */
unsigned muc_bd_kind_bytes(muc_bd_kind kind, unsigned n);

/* Writes a block of n elements, returns its bytes. */
unsigned muc_bd_write(const muc_bd_block *block, unsigned n, uint8_t out[MUC_BD_MAX_BYTES]);

/* Reads a block of n elements (1..32); above is the block above it in its column and tile, or NULL.
 * Returns the bytes that it takes, or 0 and in *reason what is wrong. Looks at no byte beyond
 * size. */
unsigned muc_bd_read(const uint8_t *bytes, size_t size, unsigned n, const muc_bd_block *above,
                     muc_bd_block *out, const char **reason);

#endif
