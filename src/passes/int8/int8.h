/* int8.h - a float32 network becomes one of int8, in the arithmetic of TFLite's kernels. */
#ifndef MUC_PASSES_INT8_H
#define MUC_PASSES_INT8_H

#include "passes/int8/ranges.h"

typedef struct muc_int8_result {
    uint32_t integer_nodes, float_nodes; /* of operators: what runs how, conversions not counted */
    uint64_t weights;                    /* that became int8 */
} muc_int8_result;

/* The list of names to keep for a graph that passes change before muc_int8_quantize: behind each
 * name of a node, and '\n', those of the nodes after it that it may be merged with. In arena; NULL
 * of an empty list. */
muc_status muc_int8_trace(muc_context *ctx, const muc_graph *graph, const char *keep,
                          muc_arena *arena, const char **out);

/* Writes operators of float32 that have no int8 form as several that have one: sums and extremes of
 * many, products of computed matrices, norms of length, reductions of squares, and others. keep: of
 * muc_int8_trace, what is left as it is. */
muc_status muc_int8_decompose(muc_context *ctx, muc_graph *graph, const char *keep);

/* Changes the graph in place, which ranges (of this graph, one run or more) describe. Activations
 * become int8 with a scale and a zero point, weights of convolutions and linear int8 with a scale a
 * channel (of linear a power of 2^(1/8)), their biases int32. Bounds of activations (relu, clip)
 * become bounds of the node before. Inputs and outputs stay float32, beside nodes QUANTIZE and
 * DEQUANTIZE; so do operators without INT8 in graph/ops.def. An int8 tensor has its float tensor's
 * name, or "NAME.int8" where that is one of the graph's inputs or outputs or is computed in float.
 * Run it on what muc_canonicalise, muc_fuse, muc_lay_channels_last and muc_int8_decompose gave.
 * MUC_UNSUPPORTED if nothing can be int8. keep: what stays float32, of muc_int8_keep. */
muc_status muc_int8_quantize(muc_context *ctx, muc_graph *graph, const muc_ranges *ranges,
                             const char *keep, muc_int8_result *out);

#endif
