/* fold.h - what a graph computes of constants alone is computed once. */
#ifndef MUC_FOLD_H
#define MUC_FOLD_H

#include "graph/graph.h"

/* Changes the graph in place: results of nodes that read constants alone become constants, by the
 * reference's kernels, unless they would be much larger than what they are made of; nodes that give
 * their input unchanged are passed by; what nothing needs any more is taken out. Names of inputs
 * and outputs stay, indices change. The graph owns the new bytes. */
muc_status muc_fold(muc_context *ctx, muc_graph *graph);
/* The same for who needs every constant: results may be as large as they like, together at most
 * most_bytes, which is not 0. */
muc_status muc_fold_up_to(muc_context *ctx, muc_graph *graph, uint64_t most_bytes);

#endif
