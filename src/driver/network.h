/* network.h - a graph and arrays: which array is which input, and what the reference makes of them.
 */
#ifndef MUC_DRIVER_NETWORK_H
#define MUC_DRIVER_NETWORK_H

#include "formats/network.h"
#include "ref/ref.h"

/* Runs a graph on arrays, which muc_network_match makes inputs. Elements are brought to the inputs'
 * types: reals are rounded, integers must be there exactly. Dimensions that the graph leaves open
 * follow from the arrays' shapes; an array of as many elements as a fixed shape fits it. Results
 * are in the graph's order, their names the graph's, in arena; bf16 is given as f32. */
muc_status muc_network_run(muc_context *ctx, muc_graph *graph, const muc_tensor_view *arrays,
                           size_t array_count, muc_arena *arena, muc_tensor_view **outputs);

/* The same; the results are in the session, which is to be closed. */
muc_status muc_network_evaluate(muc_context *ctx, muc_graph *graph, const muc_tensor_view *arrays,
                                size_t array_count, muc_arena *arena, muc_ref **ref);

/* Element i of an array of any type, as a double. */
double muc_array_element(const muc_tensor_view *view, uint64_t i);

#endif
