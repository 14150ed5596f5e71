/* compile.h - the steps of compilation that other verbs share. */
#ifndef MUC_DRIVER_COMPILE_H
#define MUC_DRIVER_COMPILE_H

#include "driver/model.h"
#include "graph/graph.h"
#include "muc/compile.h"
#include "passes/quantize.h"

/* The graph of a checkpoint, for the context that the model was opened for. */
muc_status muc_model_graph(muc_context *ctx, const muc_model *model, muc_graph **out);
/* The same without any value, to see what fits before weights are read. */
muc_status muc_model_shapes(muc_context *ctx, const muc_model *model, muc_graph **out);

/* Weights become blocks, all other constants float32: what a target, or a .bdt file, takes. */
muc_status muc_graph_quantize(muc_context *ctx, const muc_model *model,
                              const muc_weight_options *options, muc_graph *graph,
                              muc_quantize_result *out);
double muc_graph_bits_per_weight(const muc_graph *graph);

/* What is done to a network's graph before a microcontroller's program is made of it. */
muc_status muc_prepare_mcu(muc_context *ctx, muc_graph *graph);
/* Tells graphs apart, but for their names: of what muc_graph_print writes and all constants. */
muc_status muc_graph_fingerprint(muc_context *ctx, const muc_graph *graph, uint32_t *out);

/* What is done to a network's graph before the chip's program is made of it. */
muc_status muc_prepare_cnnchip(muc_context *ctx, muc_graph *graph);

#endif
