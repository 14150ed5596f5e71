/* operators.h - what importers share with the importer `plain`. */
#ifndef MUC_ONNX_OPERATORS_H
#define MUC_ONNX_OPERATORS_H

#include "formats/onnx/import.h"

#define ONNX_OP(domain, name, first, last, op, import, evaluate) onnx_importer onnx_import_##import;
#include "formats/onnx/ops.def"
#undef ONNX_OP

/* All inputs as tensors, MUC_NO_ID where one is left out; in the import's arena. */
muc_status onnx_all_inputs(onnx_call *call, uint32_t **out, uint32_t *count);
/* The attributes that attributes.def names for the operator. */
muc_status onnx_plain_attributes(onnx_call *call, muc_attributes *out);
uint32_t onnx_output_count(const onnx_call *call);
/* A string as a word of the graph, whatever its case. */
muc_status onnx_word(const onnx_call *call, const char *name, const char *value, muc_word *out);

/* Whether a loss is in the form of Deeploy's networks: its one output is log(softmax(x)) of x [N,
 * C]. */
bool onnx_wants_log_probabilities(const onnx_call *call);
muc_status onnx_import_log_probabilities(onnx_call *call);

#endif
