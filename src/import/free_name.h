/* free_name.h - names for tensors of a graph in the making. */
#ifndef MUC_FREE_NAME_H
#define MUC_FREE_NAME_H

#include "graph/graph.h"

/* The name wanted where the graph does not have it yet, else with a mark and a number behind it:
 * "conv#2". It is wanted itself, or in the arena. */
muc_status muc_free_name(muc_context *ctx, const muc_graph *graph, muc_arena *arena,
                         const char *wanted, char mark, const char **out);

#endif
