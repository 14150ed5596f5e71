/* onnx_quantlib.h - what onnx_quantlib.c gives to the rest of the reader. */
#ifndef MUC_ONNX_QUANTLIB_H
#define MUC_ONNX_QUANTLIB_H

#include "formats/onnx/onnx_import.h"

/* A node of ONNX's own operators whose result is an integer: its row of integers.def says COMPUTES.
 */
muc_status onnx_import_integers(onnx_call *call);
/* A constant operand that the file calls FLOAT as one of the smallest integer type that holds it.
 */
muc_status onnx_integer_constant(onnx_call *call, uint32_t i, uint32_t *out);
/* Input i as i32. */
muc_status onnx_word_operand(onnx_call *call, uint32_t i, uint32_t *out);
/* The type of a RequantShift's result. */
muc_status onnx_requant_type(onnx_call *call, muc_dtype *out);

#endif
