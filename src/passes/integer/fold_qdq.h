/* fold_qdq.h - networks that exporters quantized as pairs of steps become integer networks. */
#ifndef MUC_FOLD_QDQ_H
#define MUC_FOLD_QDQ_H

#include "graph/graph.h"

/* ONNX's quantize_linear and dequantize_linear with constant scales become quantize and dequantize
 * of tensors that carry quantization; an operator between dequantized inputs and a quantize that
 * alone reads its result then computes on the integers themselves, in TFLite's arithmetic, which
 * differs from the real one by at most its roundings. What has no such arithmetic stays real. */
muc_status muc_fold_quantization(muc_context *ctx, muc_graph *graph);

/* Makes such pairs of qlinear_conv and qlinear_matmul by constants, with real operators between
 * dequantize_linear and quantize_linear, and of what only moves quantized bytes. */
muc_status muc_split_qlinear(muc_context *ctx, muc_graph *graph);

#endif
