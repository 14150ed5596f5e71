/* bounds.h - which integers an operator's inputs may hold: a run with others is refused. */
#ifndef MUC_BOUNDS_H
#define MUC_BOUNDS_H

#include "graph/graph.h"

enum { MUC_MOST_BOUNDS = MUC_GRAPH_MAX_RANK };

/* Elements first, first + apart, .. of an input are extents[0] * n + ends[0] to
 * extents[1] * n + ends[1], n the elements along dimension dim of input `of`. */
typedef struct muc_bound {
    uint32_t input, first, apart;
    uint32_t of, dim;
    int64_t extents[2], ends[2];
} muc_bound;

/* How many there are, none of an absent input; tuple: the last dimension of input 1, where it holds
 * tuples of indices. */
uint32_t muc_bounds_of(const muc_node *node, uint32_t tuple, muc_bound out[MUC_MOST_BOUNDS]);

#endif
