/* quantize_blocks.h - the matrices of a graph become BlockDialect tile sequences under one byte
 * budget. */
#ifndef MUC_QUANTIZE_H
#define MUC_QUANTIZE_H

#include "graph/graph.h"
#include "passes/weights/calibrate.h"

/* The budget if none is asked for; where blocks are too short for it, what B4 blocks take. */
#define MUC_QUANTIZE_BITS 4.8

typedef struct muc_quantize_options {
    double bits_per_weight; /* most bits per stored weight, all bytes counted; 0: the default */
    const muc_calibration *calibration; /* texts for error feedback, or NULL: least squares */
    uint32_t shard, shards; /* only every shards-th matrix gets a sequence, from the shard-th of
                             * them on, of a plan for all; 0 shards: all. Without calibration. */
} muc_quantize_options;

typedef struct muc_quantize_result {
    uint64_t weights, bytes; /* of the sequences made, their tile indices included */
    uint64_t blocks[MUC_BD_KIND_COUNT], shared;
    double error, energy; /* sums of (w - v)^2 and w^2 */
    muc_bd_rule rule;     /* for all */
} muc_quantize_result;

/* Is the tensor a constant that becomes blocks? */
bool muc_becomes_blocks(const muc_graph *graph, uint32_t tensor);

/* Quantizes every matrix that a LINEAR multiplies by or an EMBED looks up, and attaches its
 * sequence to the tensor; the graph owns it. Same bytes at any thread count. out NULL: nobody asks
 * for the errors, whose measurement takes time.
 *
 * The kinds are those that muc_bd_afford finds for the budget; the least is all B4 with shared
 * headers, 4.56 bits per weight in whole tiles.
 *
 * Fails with MUC_NOFIT if even the smallest blocks exceed the budget, MUC_UNSUPPORTED on a weight
 * that is not finite or above 65504, or a matrix without data. */
muc_status muc_quantize_weights(muc_context *ctx, muc_graph *graph,
                                const muc_quantize_options *options, muc_quantize_result *out);

#endif
