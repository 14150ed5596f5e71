/* network_run.h - a graph and arrays: which array is which input, and what the reference makes of
 * them.
 */
#ifndef MUC_RUN_NETWORK_H
#define MUC_RUN_NETWORK_H

#include "formats/network.h"
#include "passes/unify/unify.h"
#include "ref/ref.h"

/* Runs a graph on arrays, which muc_network_match makes inputs. Elements are brought to the inputs'
 * types: reals are rounded, integers must be there exactly. Dimensions that the graph leaves open
 * follow from the arrays' shapes; an array of as many elements as the input's shape then has fits
 * it. Results are in the graph's order, their names the graph's, in arena; bf16 is given as f32. */
muc_status muc_network_run(muc_context *ctx, muc_graph *graph, const muc_tensor_view *arrays,
                           size_t array_count, muc_arena *arena, muc_tensor_view **outputs);

/* The same; the results are in the session, which is to be closed, NULL after a failure. */
muc_status muc_network_evaluate(muc_context *ctx, muc_graph *graph, const muc_tensor_view *arrays,
                                size_t array_count, muc_arena *arena, muc_ref **ref);

/* The same of the nodes before `end` alone (0: of all), those marked in on_chip [node_count],
 * unless that is NULL, as the CNN chip computes them (ref/golden/chip_integers.h). */
muc_status muc_network_evaluate_first(muc_context *ctx, muc_graph *graph,
                                      const muc_tensor_view *arrays, size_t array_count,
                                      uint32_t end, const bool *on_chip, muc_arena *arena,
                                      muc_ref **ref);

/* The same of a graph that muc_unify made of several exports and may have been changed since, with
 * a probe, unless that is NULL. The arrays are those of an export, caches among them; the
 * calibration record is that of the export with their lengths, unless an array "record" is given.
 * *ref is set before the probe is called. */
muc_status muc_exports_evaluate(muc_context *ctx, muc_graph *graph, const muc_unified *unified,
                                const muc_tensor_view *arrays, size_t array_count,
                                muc_ref_probe *probe, void *probe_arg, muc_arena *arena,
                                muc_ref **ref);
/* The same, closed: results as muc_network_run gives them. A graph of fixed shapes that keeps a
 * state may be given arrays for several runs in a row (run/repeated_runs.h): so are its results. */
muc_status muc_network_run_row(muc_context *ctx, muc_graph *graph, const muc_unified *unified,
                               const muc_tensor_view *arrays, size_t array_count, muc_arena *arena,
                               muc_tensor_view **outputs);
/* Copies a session's results, as muc_network_run gives them. */
muc_status muc_network_results(muc_context *ctx, muc_graph *graph, const muc_ref *ref,
                               muc_arena *arena, muc_tensor_view **outputs);

/* Stores element i of an array as an element of a type: reals are rounded, integers must be there
 * exactly, else false. */
bool muc_array_store(const muc_tensor_view *array, uint64_t i, muc_dtype dtype, uint8_t *out);
/* The same of all elements, in arena; else MUC_USAGE naming array and element. */
muc_status muc_array_convert(muc_context *ctx, const muc_tensor_view *array, muc_dtype dtype,
                             muc_arena *arena, uint8_t **out);
/* Element i of an array of any type, as a double. */
double muc_array_element(const muc_tensor_view *view, uint64_t i);
/* The indices, from first on, of the greatest of count elements, the first of equals first; how
 * many there are. */
enum { MUC_ARRAY_TOP = 5 };
size_t muc_array_top(const muc_tensor_view *view, uint64_t first, uint64_t count,
                     uint64_t top[MUC_ARRAY_TOP]);

#endif
