/* idle_channels.h - int8 layers without the channels that no result depends on. */
#ifndef MUC_IDLE_CHANNELS_H
#define MUC_IDLE_CHANNELS_H

#include "graph/graph.h"

/* Of a graph with its channels last: where constant weights and activations bound a channel of an
 * int8 convolution or linear layer to one value, as where training has left it dead behind a relu,
 * what reads it has that value in its biases, and the channel is left out; so are channels that
 * only weights of zero read. What lies between, channel by channel, loses it too. Where channels
 * were a multiple of four they stay one. The same numbers, bit for bit. */
muc_status muc_drop_idle_channels(muc_context *ctx, muc_graph *graph);

#endif
