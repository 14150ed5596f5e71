/* graph_check.h - checks shared by building and verifying; status is what a failure returns. */
#ifndef MUC_GRAPH_CHECK_H
#define MUC_GRAPH_CHECK_H

#include "graph/graph.h"

/* Kind, rank, dimensions, bytes of a constant: all but the name's uniqueness. */
muc_status muc_tensor_check(muc_context *ctx, const muc_graph *graph, const muc_tensor *tensor,
                            muc_status status);
/* Operator, number and indices of inputs, states, attributes: all but shapes. */
muc_status muc_node_check(muc_context *ctx, const muc_graph *graph, const muc_node *node,
                          muc_status status);
/* Which of the node's outputs may, or must, carry quantization. */
muc_status muc_node_check_quantization(muc_context *ctx, const muc_graph *graph,
                                       const muc_node *node, const muc_tensor *outputs,
                                       muc_status status);
/* Rank and dimensions are the same. */
bool muc_tensor_same_dims(const muc_tensor *a, const muc_tensor *b);
/* The same kind of shape: dtype, rank and equal dimensions. */
bool muc_tensor_same_shape(const muc_tensor *a, const muc_tensor *b);
/* Makes names find tensors again, after tensors have moved; there are no more than before. */
void muc_graph_index_names(muc_graph *graph);

#endif
