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
/* Adds what a recipe, to be formatted, says of the node (import/recipe.h). */
muc_status onnx_cook(onnx_call *call, const char *format, ...) MUC_PRINTF(2, 3);
/* The same with attributes that its word "given" adds. */
muc_status onnx_cook_given(onnx_call *call, const muc_attributes *given, const char *format, ...)
    MUC_PRINTF(3, 4);
/* Adds steps that a recipe, to be formatted, makes of tensors; the last gives *out, or with out
 * NULL the node's output. */
muc_status onnx_make(onnx_call *call, const uint32_t *ids, uint32_t count, uint32_t *out,
                     const char *format, ...) MUC_PRINTF(5, 6);
/* Outputs that the file wants, of the row's operator, but no fewer than it has. */
uint32_t onnx_output_count(const onnx_call *call, muc_op op);
/* A string as a word of the graph, whatever its case. */
muc_status onnx_word(const onnx_call *call, const char *name, const char *value, muc_word *out);

/* set[i], [MUC_GRAPH_MAX_RANK]: dimension i of rank is one of the axes; none may be there twice. */
muc_status onnx_mark_axes(onnx_call *call, const int64_t *axes, size_t count, uint32_t rank,
                          bool *set);
#endif
