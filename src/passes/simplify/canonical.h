/* canonical.h - graphs as generators want them: no node that does nothing, constants folded into
 * the operators beside them. What a graph computes stays the same: integers bit for bit, real
 * numbers within the rounding of a factor that moved into weights. */
#ifndef MUC_CANONICAL_H
#define MUC_CANONICAL_H

#include "graph/graph.h"

/* The node's only output is its input 0, element by element, in all but name. */
bool muc_gives_input(const muc_graph *graph, const muc_node *node);
/* Drops nodes that no output depends on and nodes that do nothing, joins views and transposes in a
 * row, makes a view of a transpose that moves no element, a slice of a gather of neighbours, and
 * matrices of the vectors in products. */
muc_status muc_canonicalise(muc_context *ctx, muc_graph *graph);
/* Folds padding into convolutions, batch norms and biases into the weights before them, products
 * with constants into linear, and the bounds of quantized activations into what they bound. */
muc_status muc_fuse(muc_context *ctx, muc_graph *graph);
/* The same, but batch norms stay: for a machine with a stage of its own for them. */
muc_status muc_fuse_but_norms(muc_context *ctx, muc_graph *graph);
/* Makes float32 constants of integer ones that are only dequantized: what a network of float
 * arithmetic with integer weights computes with. */
muc_status muc_dequantize_constants(muc_context *ctx, muc_graph *graph);
/* Puts casts to f32 and back around arithmetic on 16-bit floats and on f64; constants become f32.
 */
muc_status muc_compute_in_f32(muc_context *ctx, muc_graph *graph);
/* Turns operators with channels first into channels last: constant weights are laid anew, and the
 * transposes that remain stand at inputs, outputs and operators that mix dimensions. */
muc_status muc_lay_channels_last(muc_context *ctx, muc_graph *graph);

#endif
