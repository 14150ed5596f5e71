/* batch.h - a network of a batch becomes one of a single image. */
#ifndef MUC_BATCH_H
#define MUC_BATCH_H

#include "graph/graph.h"

/* If every input's first dimension is the same number above 1, which runs through to every output
 * without that images mix, the graph becomes that of one image: the dimension is 1. Else nothing is
 * changed. *images is the number, 1 if nothing was changed. */
muc_status muc_take_one_image(muc_context *ctx, muc_graph *graph, uint32_t *images);

#endif
