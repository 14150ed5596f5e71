/* bd_sequence.h - whole matrices as BlockDialect tile sequences, docs/SPEC-blockdialect.md
 * section 5.
 *
 * A matrix has n columns of k elements along the reduction axis. A published weight [n][k] is such
 * a matrix with its row r as column r; the word "column" is used throughout.
 */
#ifndef MUC_BD_SEQUENCE_H
#define MUC_BD_SEQUENCE_H

#include "base/bytes.h"
#include "quant/blockdialect.h"

enum { MUC_BD_TILE_K = 64, MUC_BD_TILE_N = 8 };

/* A matrix to be quantized. Borrows everything. */
typedef struct muc_bd_matrix muc_bd_matrix;
struct muc_bd_matrix {
    const char *name; /* for messages */
    uint32_t n, k;    /* both at least 1 */
    /* Puts a column's k elements into out. Called by several threads at once. */
    muc_status (*read)(muc_context *ctx, const muc_bd_matrix *matrix, uint32_t column, float *out);
    const void *data; /* read's own */
    const float
        *importance; /* [k], what an element's squared error counts: >= 0, finite; or NULL */
    bool unmeasured; /* the sequence's error and energy are left 0, which takes less time */
    uint64_t *kept;  /* [muc_bd_kept_count(n, k)], zeroed, or NULL. Planning keeps here what it
                      * found of each column in each tile, and muc_bd_quantize with the rule of that
                      * planning need not look for it again. The bytes are the same. */
};

/* A matrix that lies in memory as float [n][k]. */
muc_bd_matrix muc_bd_matrix_of(const char *name, const float *values, uint32_t n, uint32_t k);

uint64_t muc_bd_kept_count(uint32_t n, uint32_t k);
/* Bytes of the index in front of a sequence of such a matrix. */
uint64_t muc_bd_index_bytes(uint32_t n, uint32_t k);
/* Fewest bytes of a column of k elements without a block of zeros: B4, headers shared. */
uint64_t muc_bd_least_column_bytes(uint32_t k);

typedef struct muc_bd_sequence {
    uint8_t *data; /* of muc_large_new, owned: muc_bd_sequence_free */
    uint32_t bytes;
    uint64_t blocks[MUC_BD_KIND_COUNT]; /* how many of each kind */
    uint64_t shared;                    /* how many lack their header */
    double error, energy;               /* sum importance * (w - v)^2, and with v = 0 */
} muc_bd_sequence;

/* The rule under which all the matrices' sequences together, their indices included, take at most
 * bits_per_weight: one price for a byte everywhere, the lowest that the budget bears.
 * Fails with MUC_NOFIT if even the smallest blocks are too many bytes. */
muc_status muc_bd_plan(muc_context *ctx, const muc_bd_matrix *matrices, size_t count,
                       uint32_t kinds, double bits_per_weight, muc_bd_rule *out);

/* The same with the kinds that serve a budget best (docs/QUANTIZATION.md): B4 and B5 while they can
 * use the bytes, B5 and R beyond. */
muc_status muc_bd_afford(muc_context *ctx, const muc_bd_matrix *matrices, size_t count,
                         double bits_per_weight, muc_bd_rule *out);

/* The same bytes at any thread count. Fails with MUC_UNSUPPORTED on an element that is not finite
 * or beyond MUC_BD_MAX_WEIGHT, MUC_NOFIT if the sequence would be 4 GiB or more. */
muc_status muc_bd_quantize(muc_context *ctx, const muc_bd_matrix *matrix, const muc_bd_rule *rule,
                           muc_bd_sequence *out);

/* Chooses the blocks of a column with the elements w [k] for all its tiles, downward
 * [ceil(k / 64)]; their rows are set. Called by several threads at once. */
typedef muc_status muc_bd_chooser(void *arg, uint32_t column, const float *w, muc_bd_column *tiles);
/* muc_bd_quantize with another way to choose; the sequence's error is still that to w. */
muc_status muc_bd_encode(muc_context *ctx, const muc_bd_matrix *matrix, muc_bd_chooser *choose,
                         void *arg, muc_bd_sequence *out);

void muc_bd_sequence_free(muc_bd_sequence *sequence);

/* Proves that bytes are exactly one well-formed sequence for n columns of k elements. Messages give
 * base_offset + position in the sequence. */
muc_status muc_bd_check(muc_context *ctx, muc_bytes bytes, uint64_t base_offset, uint32_t n,
                        uint32_t k);

/* Decodes one column of a sequence that muc_bd_check has passed. */
muc_status muc_bd_decode_column(muc_context *ctx, muc_bytes bytes, uint32_t n, uint32_t k,
                                uint32_t column, float *out);

#endif
