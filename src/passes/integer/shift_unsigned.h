/* shift_unsigned.h - u8 tensors become i8 ones, each element less by 128, which int8 kernels read.
 */
#ifndef MUC_SHIFT_UNSIGNED_H
#define MUC_SHIFT_UNSIGNED_H

#include "passes/rewrite.h"

/* Those that carry quantization, with zero points less by 128: the same numbers, bit for bit.
 * Inputs and outputs of the graph stay what they are. */
muc_status muc_shift_quantized(muc_context *ctx, muc_graph *graph);
/* Those that carry none, where an int8 kernel gains, as far as constants of requantizations can
 * hold the difference. */
muc_status muc_shift_requantized(muc_context *ctx, muc_graph *graph);

/* A constant of u8 that carries quantization as one of i8. Weights that are all near enough to
 * their zero point get zero point 0, which more kernels take. */
muc_status muc_shift_constant(muc_rewrite *r, const muc_tensor *x, bool weights, uint32_t *out);

#endif
