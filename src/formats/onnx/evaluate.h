/* evaluate.h - what onnx_ops.def names as evaluators. */
#ifndef MUC_ONNX_EVALUATE_H
#define MUC_ONNX_EVALUATE_H

#include "formats/onnx/onnx_import.h"

#define ONNX_OP(domain, name, first, last, op, import, evaluate) \
    onnx_evaluator onnx_evaluate_##evaluate;
#include "formats/onnx/onnx_ops.def"
#undef ONNX_OP

/* An expression that turned out to be a constant is one. */
onnx_number onnx_number_of(const muc_expr_pool *pool, muc_expr e);
/* The value and type that ConstantOfShape fills with. */
muc_status onnx_fill_value(onnx_call *call, muc_dtype *dtype, onnx_number *out);

#endif
