/* model_graph.h - the graph of a checkpoint whose weights become BlockDialect blocks. */
#ifndef MUC_RUN_MODEL_GRAPH_H
#define MUC_RUN_MODEL_GRAPH_H

#include "graph/graph.h"
#include "muc/compile.h"
#include "passes/weights/quantize_blocks.h"
#include "run/opened_model.h"

/* The graph of a checkpoint, for the context that the model was opened for. */
muc_status muc_model_graph(muc_context *ctx, const muc_model *model, muc_graph **out);
/* The same without any value, to see what fits before weights are read. */
muc_status muc_model_shapes(muc_context *ctx, const muc_model *model, muc_graph **out);

/* Weights become blocks, all other constants float32: what a target, or a .bdt file, takes. out as
 * for muc_quantize_weights. */
muc_status muc_graph_quantize(muc_context *ctx, const muc_model *model,
                              const muc_weight_options *options, muc_graph *graph,
                              muc_quantize_result *out);
/* Lets sequences that rest leave the process until they are used again. */
void muc_graph_rest(const muc_graph *graph);
double muc_graph_bits_per_weight(const muc_graph *graph);

#endif
