/* evaluate.h - what onnx_ops.def names as evaluators. */
#ifndef MUC_ONNX_EVALUATE_H
#define MUC_ONNX_EVALUATE_H

#include "formats/onnx/onnx_import.h"

#define ONNX_OP(domain, name, first, last, op, import, evaluate) \
    onnx_evaluator onnx_evaluate_##evaluate;
#include "formats/onnx/onnx_ops.def"
#undef ONNX_OP

/* The value and type that ConstantOfShape fills with. */
muc_status onnx_fill_value(onnx_call *call, muc_dtype *dtype, onnx_number *out);

#endif
