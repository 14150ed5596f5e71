/* padding_taps.h - convolutions without the taps that meet padding alone. */
#ifndef MUC_PADDING_TAPS_H
#define MUC_PADDING_TAPS_H

#include "graph/graph.h"

/* Of convolutions over images with their channels last and constant weights: a window larger than
 * its image loses the rows and columns that no output needs. The same numbers, bit for bit. */
muc_status muc_drop_taps(muc_context *ctx, muc_graph *graph);

#endif
