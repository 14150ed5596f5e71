/* pixel_windows.h - convolutions, pools and norms over pixels become the operators that kernels
 * have. */
#ifndef MUC_WINDOWS_H
#define MUC_WINDOWS_H

#include "graph/graph.h"

/* Of a graph with its channels first: transposed convolutions in groups, with constant weights of
 * real numbers, become convolutions that make a block of pixels each. */
muc_status muc_split_groups(muc_context *ctx, muc_graph *graph);
/* Of a graph with its channels last (muc_lay_channels_last): other transposed convolutions with
 * constant weights become convolutions that make a block of pixels each, operators over one
 * dimension are over two, convolutions of integers over three dimensions are over two of gathered
 * depths, batch norms that no weights before them took are depthwise convolutions, and functions
 * element by element stand before views. Integers stay the same bit for bit. */
muc_status muc_lay_windows(muc_context *ctx, muc_graph *graph);

#endif
