/* outline.h - a copy of a graph that has shapes alone of its large constants: for plans. */
#ifndef MUC_OUTLINE_H
#define MUC_OUTLINE_H

#include "graph/graph.h"

/* Constants of MUC_OUTLINE_BYTES or more have zeros in place of their values, which passes that
 * turn weights into others neither read nor copy: what is done to the copy takes a time that does
 * not grow with the weights. It borrows the other constants and the names of expressions from the
 * graph, which must live longer and stays as it is. *out is NULL if constants, and what nodes make
 * of them alone, have fewer than least_bytes. */
enum { MUC_OUTLINE_BYTES = 1 << 16 };
muc_status muc_outline(muc_context *ctx, const muc_graph *graph, uint64_t least_bytes,
                       muc_graph **out);

#endif
