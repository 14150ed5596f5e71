/* patterns.h - operators that exporters wrote out in simpler ones. */
#ifndef MUC_PATTERNS_H
#define MUC_PATTERNS_H

#include "graph/graph.h"

/* Puts the graph's own operator where nodes compute it in steps (ops.def), and makes products
 * of quotients by constants. The steps' constants must be those of the operator, and nothing else
 * may read what the steps compute. Real numbers change within their rounding. */
muc_status muc_recognise(muc_context *ctx, muc_graph *graph);

#endif
