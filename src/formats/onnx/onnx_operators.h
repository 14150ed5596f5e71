/* onnx_operators.h - the importers that onnx_ops.def names, and what they share. */
#ifndef MUC_ONNX_OPERATORS_H
#define MUC_ONNX_OPERATORS_H

#include "formats/onnx/onnx_import.h"
#include "import/recipe.h"

#define ONNX_OP(domain, name, first, last, op, import, evaluate) onnx_importer onnx_import_##import;
#include "formats/onnx/onnx_ops.def"
#undef ONNX_OP

/* The node as recipes read it, and recipes of it (import/recipe.h). */
muc_file_node onnx_node(onnx_call *call);
#define onnx_cook(call, ...) muc_import_format(onnx_node(call), __VA_ARGS__)
#define onnx_cook_given(call, given, ...) \
    muc_import_format(muc_node_given(onnx_node(call), given), __VA_ARGS__)
#define onnx_make(call, ids, count, out, ...) \
    muc_import_format(muc_node_of(onnx_node(call), ids, count, out), __VA_ARGS__)
/* Outputs that the file wants, of the row's operator, but no fewer than it has. */
uint32_t onnx_output_count(const onnx_call *call, muc_op op);

/* set[i], [MUC_GRAPH_MAX_RANK]: dimension i of rank is one of the axes; none may be there twice. */
muc_status onnx_mark_axes(onnx_call *call, const int64_t *axes, size_t count, uint32_t rank,
                          bool *set);
#endif
