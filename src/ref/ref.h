/* ref.h - the reference: runs any graph and keeps its state from call to call.
 *
 * Real numbers are computed in float32, f64 in double; f16 and bf16 are kept as float32 that holds
 * values of theirs alone. Integers are exact and wrap; with quantization their arithmetic is that
 * of TFLite's reference kernels. Every element of every result is one sum in a fixed order,
 * whatever the thread count and however the tokens are grouped into calls: the same bits
 * everywhere.
 */
#ifndef MUC_REF_H
#define MUC_REF_H

#include "graph/graph.h"

typedef struct muc_ref muc_ref;

/* Called after a node whose output is kept as float32 has run: as rows of columns, valid during the
 * call. */
typedef void muc_ref_probe(void *arg, const muc_node *node, const char *name, const float *data,
                           size_t rows, size_t columns);

/* A tensor's value, row-major. */
typedef struct muc_ref_view {
    muc_dtype dtype; /* as it is kept: f32 for f16 and bf16 */
    uint32_t rank;
    size_t dims[MUC_GRAPH_MAX_RANK];
    size_t elements;
    const void *data; /* aligned */
} muc_ref_view;

/* One INPUT tensor of a run: elements of the tensor's type, of the shape that the bindings give. */
typedef struct muc_ref_input {
    const char *name;
    const void *data;
    size_t bytes;
} muc_ref_input;

/* The graph, verified here, and its constants must outlive the session; constants that are not as
 * they are kept are converted now. Fails with MUC_UNSUPPORTED naming the first node that no kernel
 * runs or constant without data, MUC_MALFORMED naming a weight that is not finite. */
muc_status muc_ref_open(muc_context *ctx, muc_graph *graph, muc_ref **out);
/* The same for a graph that nobody vouches for: values and scratch together stay below max_bytes,
 * or opening and runs fail with MUC_NOMEM. */
muc_status muc_ref_open_limited(muc_context *ctx, muc_graph *graph, size_t max_bytes,
                                muc_ref **out);
/* Whether a kernel runs the operator on tensors that carry no quantization. */
bool muc_ref_runs(muc_op op);
void muc_ref_close(muc_ref *ref); /* NULL is fine */
/* All states are zero again; of i8 with quantization, their zero points. */
void muc_ref_reset(muc_ref *ref);
/* Copies what a STATE tensor holds from now on: all its elements, of its type as it is kept. Fails
 * with MUC_USAGE naming the state and both sizes. */
muc_status muc_ref_set_state(muc_ref *ref, uint32_t state, const void *data, size_t bytes);
/* The memory of a STATE tensor and its bytes; alive as long as the session. */
void *muc_ref_state(muc_ref *ref, uint32_t state, size_t *bytes);
void muc_ref_set_probe(muc_ref *ref, muc_ref_probe *probe, void *arg);
/* An activation that is kept as float32, to be changed by a probe before other nodes read it. */
float *muc_ref_numbers(muc_ref *ref, uint32_t activation);
/* From now on an activation's memory is taken by others as soon as the last node that reads it has
 * run: of activations, muc_ref_get and muc_ref_read have outputs of the graph alone. For sessions
 * that run all nodes. */
muc_status muc_ref_share(muc_ref *ref);
/* From now on runs tell the progress hook how many layers they have done. */
void muc_ref_tell_progress(muc_ref *ref);

/* Runs all nodes. bindings[i] is the value of expression input i; every INPUT tensor must be given.
 * Fails with MUC_USAGE naming what is out of range, MUC_MALFORMED naming the node for a token
 * outside its table, an index outside its tensor, or shapes that do not fit for these bindings. */
muc_status muc_ref_run(muc_ref *ref, const uint32_t *bindings, const muc_ref_input *inputs,
                       size_t input_count);
/* The same for a language model's graph (models/llama.h): tokens at positions pos..pos+count-1. */
muc_status muc_ref_run_tokens(muc_ref *ref, uint32_t pos, const int32_t *tokens, uint32_t count);

/* ---- piece by piece, for passes that change weights between two nodes ---- */

/* From now on runs compute the nodes first..end-1 alone. What they read of earlier nodes was put
 * there, or is left from a run with the same bindings. */
void muc_ref_set_range(muc_ref *ref, uint32_t first, uint32_t end);
/* Copies an activation's value for the next run, whose bindings give it this shape. */
muc_status muc_ref_put(muc_ref *ref, uint32_t activation, const float *data, size_t rows,
                       size_t columns);
/* From now on values [its elements], borrowed, stand for a float32 session's constant. */
void muc_ref_replace(muc_ref *ref, uint32_t constant, const float *values);

/* Any tensor's value after a run; alive until the next run. False where it has none: it was not
 * computed, or is a weight that only a sequence holds. */
bool muc_ref_get(const muc_ref *ref, uint32_t tensor, muc_ref_view *out);
/* An f32 activation of the last run, or a state: rows of columns, row-major; alive until the next
 * run. NULL if there is no such tensor. */
const float *muc_ref_read(const muc_ref *ref, const char *name, size_t *rows, size_t *columns);

/* The values of tensors of a graph that has neither inputs nor open dimensions: out[i] is
 * tensors[i], of its own type, in the arena. Fails as muc_ref_open and muc_ref_run do. */
muc_status muc_ref_compute(muc_context *ctx, muc_graph *graph, const uint32_t *tensors,
                           uint32_t count, muc_arena *arena, const uint8_t **out);
/* The elements of a view that f16 or bf16, dtype, are kept in: f32 that hold values of theirs
 * alone.
 */
void muc_ref_narrow(muc_dtype dtype, const muc_ref_view *view, uint8_t *out);

#endif
