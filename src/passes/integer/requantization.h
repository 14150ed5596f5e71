/* requantization.h - what requantizations do, known from their constants. */
#ifndef MUC_REQUANT_H
#define MUC_REQUANT_H

#include "graph/graph.h"

/* Whether the node is a REQUANT_SHIFT by constants that gives its first input unchanged: mul is
 * 2^shift, add 0, the type the same and all its values within the clamp. */
bool muc_requant_is_identity(const muc_graph *graph, const muc_node *node);

#endif
