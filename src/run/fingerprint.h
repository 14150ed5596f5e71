/* fingerprint.h - which network something was compiled from. */
#ifndef MUC_RUN_FINGERPRINT_H
#define MUC_RUN_FINGERPRINT_H

#include "base/json.h"
#include "graph/graph.h"

/* Tells graphs apart, but for their names: of what muc_graph_print writes and all constants. */
muc_status muc_graph_fingerprint(muc_context *ctx, const muc_graph *graph, uint32_t *out);

/* A folder's description tells the fingerprint of the graph that it was made of, and the options
 * that made that. MUC_MISMATCH naming the options if this graph, of the file `network`, has
 * another. */
muc_status muc_check_fingerprint(muc_context *ctx, const char *path, const json_t *json,
                                 const muc_graph *graph, const char *network);
/* MUC_MISMATCH, in the same words. */
muc_status muc_other_network(muc_context *ctx, const char *path, const json_t *json,
                             const char *network);

#endif
