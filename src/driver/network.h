/* network.h - a graph and arrays: which array is which input, and what the reference makes of them.
 */
#ifndef MUC_DRIVER_NETWORK_H
#define MUC_DRIVER_NETWORK_H

#include "formats/network.h"

/* Runs a graph on arrays. They are inputs by name if every input finds one of its name, else by
 * position; arrays beyond the inputs are left alone. Elements are brought to the inputs' types:
 * reals are rounded, integers must be there exactly. Dimensions that the graph leaves open follow
 * from the arrays' shapes; an array of as many elements as a fixed shape fits it. Results are in
 * the graph's order, their names the graph's, in arena; bf16 is given as f32. */
muc_status muc_network_run(muc_context *ctx, muc_graph *graph, const muc_tensor_view *arrays,
                           size_t array_count, muc_arena *arena, muc_tensor_view **outputs);

/* The array that muc_network_run gives to an input of the graph, or NULL. */
const muc_tensor_view *muc_network_array(const muc_graph *graph, const muc_tensor_view *arrays,
                                         size_t count, uint32_t tensor);

#endif
