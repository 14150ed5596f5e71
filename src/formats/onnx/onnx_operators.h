/* onnx_operators.h - the importers that onnx_ops.def names, and what they share. */
#ifndef MUC_ONNX_OPERATORS_H
#define MUC_ONNX_OPERATORS_H

#include "formats/onnx/onnx_import.h"
#include "import/recipe.h"

#define ONNX_OP(domain, name, first, last, op, import, evaluate) onnx_importer onnx_import_##import;
#include "formats/onnx/onnx_ops.def"
#undef ONNX_OP

/* All inputs as tensors, MUC_NO_ID where one is left out; in the import's arena. */
muc_status onnx_all_inputs(onnx_call *call, uint32_t **out, uint32_t *count);
/* The node as recipes read it, and recipes of it (import/recipe.h). */
muc_file_node onnx_node(onnx_call *call);
#define onnx_cook(call, ...) muc_import_format(onnx_node(call), __VA_ARGS__)
#define onnx_cook_given(call, ...) muc_import_given(onnx_node(call), __VA_ARGS__)
#define onnx_make(call, ...) muc_import_make(onnx_node(call), __VA_ARGS__)
/* Outputs that the file wants, of the row's operator, but no fewer than it has. */
uint32_t onnx_output_count(const onnx_call *call, muc_op op);
/* A string as a word of the graph, whatever its case. */
muc_status onnx_word(const onnx_call *call, const char *name, const char *value, muc_word *out);

/* set[i], [MUC_GRAPH_MAX_RANK]: dimension i of rank is one of the axes; none may be there twice. */
muc_status onnx_mark_axes(onnx_call *call, const int64_t *axes, size_t count, uint32_t rank,
                          bool *set);
#endif
