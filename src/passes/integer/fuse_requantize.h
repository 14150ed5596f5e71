/* fuse_requantize.h - QuantLib's sums and what requantizes them as one operator. */
#ifndef MUC_REQUANTIZE_H
#define MUC_REQUANTIZE_H

#include "graph/graph.h"

/* Makes one node of a convolution, a product of matrices (with a bias or without), a sum or a
 * product of two narrow tensors and the requant_shift that alone reads it, and a lookup of
 * functions of one byte. Bit for bit the same; no sum of 32 bits is a tensor any more. */
muc_status muc_fuse_requantizations(muc_context *ctx, muc_graph *graph);
/* Whether the node is a REQUANT_SHIFT by constants that gives its first input unchanged: mul is
 * 2^shift, add 0, the type the same and all its values within the clamp. */
bool muc_requant_is_identity(const muc_graph *graph, const muc_node *node);

#endif
