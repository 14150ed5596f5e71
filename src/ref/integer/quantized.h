/* quantized.h - what kernels of tensors that carry quantization share.
 *
 * They repeat TFLite's reference kernels bit for bit: sums of products in 32 bits (64 for 16-bit
 * activations), and graph/scales.h's factors with two roundings.
 */
#ifndef MUC_REF_CHECKED_H
#define MUC_REF_CHECKED_H

#include "graph/scales.h"
#include "ref/walk.h"

/* Element i as an integer; types are of at most 32 bits. */
static inline int32_t muc_q_get(const muc_ref_value *value, size_t i)
{
    if (value->dtype == MUC_I8)
        return ((const int8_t *)value->read)[i];
    if (value->dtype == MUC_U8)
        return ((const uint8_t *)value->read)[i];
    if (value->dtype == MUC_I16)
        return ((const int16_t *)value->read)[i];
    if (value->dtype == MUC_U16)
        return ((const uint16_t *)value->read)[i];
    return ((const int32_t *)value->read)[i];
}

/* q is within the type's bounds. */
static inline void muc_q_put(const muc_ref_value *value, size_t i, int32_t q)
{
    if (value->dtype == MUC_I8 || value->dtype == MUC_U8)
        ((uint8_t *)value->data)[i] = (uint8_t)q;
    else if (value->dtype == MUC_I16 || value->dtype == MUC_U16)
        ((uint16_t *)value->data)[i] = (uint16_t)q;
    else
        ((int32_t *)value->data)[i] = q;
}

static inline const muc_tensor *muc_q_out(const muc_ref_call *call)
{
    return &call->graph->tensors[call->node->outputs[0]];
}

/* The sum of q and the zero point, within the bounds. */
static inline int32_t muc_q_clamp(int64_t q, int32_t zero, int32_t least, int32_t most)
{
    return q + zero < least ? least : q + zero > most ? most : (int32_t)(q + zero);
}

/* The CNN chip's rounding: limited to -65536..65536, halves to even. */
int32_t muc_q_chip(float y);

/* ONNX's rounding: to the nearest integer, halves to even, plus zero, saturated to the type. */
int64_t muc_q_round_to(muc_dtype dtype, double x, int64_t zero);

/* The most elements along dimension d of a node's tensor. */
static inline uint32_t muc_q_most(const muc_ref_call *call, const muc_tensor *tensor, uint32_t d)
{
    return muc_expr_get(call->graph->pool, tensor->dims[d])->hi;
}

/* Fails unless input 1, and the others as in muc_check_q_operands, are quantized i8, u8 or i16,
 * input 1 with a scale for each element of dimension axis or one for all. */
muc_status muc_q_check_weights(const muc_ref_call *call, uint32_t axis);

#endif
