/* linear_quantized.c - ONNX's quantization: real numbers to integers and back. */
#include <math.h>

#include "ref/integer/quantized.h"

/* element i of a scale or zero point, or its only one */
static size_t pick(const muc_ref_value *value, size_t i)
{
    return value->elements > 1 ? i : 0;
}

static int64_t zero_at(const muc_ref_value *zero, size_t i)
{
    return zero ? muc_ref_integer(zero, pick(zero, i)) : 0;
}

int64_t muc_q_round_to(muc_dtype dtype, double x, int64_t zero)
{
    int bits = (int)(8 * muc_dtype_get(dtype)->block_bytes);
    bool is_signed = muc_dtype_is_signed(dtype);
    double least = is_signed ? -ldexp(1, bits - 1) : 0;
    double most = ldexp(1, bits - is_signed) - 1, value = nearbyint(x) + (double)zero;

    if (value != value)
        return zero;
    return (int64_t)(value < least ? least : value > most ? most : value);
}

/* x as [outer][extent][inner] along the axis of its scales */
static muc_ref_along scales_of(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    muc_ref_along whole = { 1, 1, x->elements };

    return call->inputs[1]->elements > 1
               ? muc_ref_along_of(x, (size_t)muc_node_integer(call->node, MUC_KEY_AXIS))
               : whole;
}

/* the quotient in the scale's type, as the operator has it */
static double divide(const muc_ref_value *scale, double x, double by)
{
    return scale->dtype == MUC_F32 ? (double)((float)x / (float)by) : x / by;
}

muc_status muc_kernel_quantize_linear(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *scale = call->inputs[1];
    const muc_ref_value *zero = muc_ref_input_of(call, 2);
    muc_ref_along a = scales_of(call);

    for (size_t i = 0; i < x->elements; i++) {
        size_t at = i / a.inner % a.extent;
        double by = muc_ref_real(scale, pick(scale, at));
        int64_t value = muc_q_round_to(call->output->dtype, divide(scale, muc_ref_real(x, i), by),
                                       zero_at(zero, at));

        muc_ref_store_integers(call->output, i, 1, &value);
    }
    return MUC_OK;
}

muc_status muc_kernel_dequantize_linear(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *scale = call->inputs[1];
    const muc_ref_value *zero = muc_ref_input_of(call, 2);
    muc_ref_along a = scales_of(call);

    for (size_t i = 0; i < x->elements; i++) {
        size_t at = i / a.inner % a.extent;
        double value = (double)(muc_ref_integer(x, i) - zero_at(zero, at)) *
                       muc_ref_real(scale, pick(scale, at));

        muc_ref_store_reals(call->output, i, 1, &value);
    }
    return MUC_OK;
}

/* in float32 throughout, as the operator's definition says */
muc_status muc_kernel_dynamic_quantize_linear(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    const float *from = x->read;
    float least = 0, most = 0, scale;
    int64_t zero;

    for (size_t i = 0; i < x->elements; i++) {
        least = from[i] < least ? from[i] : least;
        most = from[i] > most ? from[i] : most;
    }
    scale = (most - least) / 255;
    zero = scale > 0 ? muc_q_round_to(MUC_U8, (double)((0 - least) / scale), 0) : 0;
    *(float *)call->outputs[1]->data = scale;
    *(uint8_t *)call->outputs[2]->data = (uint8_t)zero;
    for (size_t i = 0; i < x->elements; i++) {
        double value = scale > 0 ? (double)(from[i] / scale) : 0;

        ((uint8_t *)call->output->data)[i] = (uint8_t)muc_q_round_to(MUC_U8, value, zero);
    }
    return MUC_OK;
}
