/* linear_quantized.c - ONNX's quantization: real numbers to integers and back, and products of
 * integers less their zero points, summed in 32 bits. */
#include <math.h>
#include <string.h>

#include "ref/integer/quantlib.h"
#include "ref/window.h"

enum { NO_ZERO = MUC_GRAPH_MAX_INPUTS }; /* an input that no node has */

/* element i of a scale or zero point, or its only one */
static size_t pick(const muc_ref_value *value, size_t i)
{
    return value->elements > 1 ? i : 0;
}

static int64_t zero_at(const muc_ref_value *zero, size_t i)
{
    return zero ? muc_ref_integer(zero, pick(zero, i)) : 0;
}

/* to the nearest integer, halves to even, plus zero, saturated to the type */
static int64_t round_to(muc_dtype dtype, double x, int64_t zero)
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
        int64_t value =
            round_to(call->output->dtype, divide(scale, muc_ref_real(x, i), by), zero_at(zero, at));

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
    zero = scale > 0 ? round_to(MUC_U8, (double)((0 - least) / scale), 0) : 0;
    *(float *)call->outputs[1]->data = scale;
    *(uint8_t *)call->outputs[2]->data = (uint8_t)zero;
    for (size_t i = 0; i < x->elements; i++) {
        double value = scale > 0 ? (double)(from[i] / scale) : 0;

        ((uint8_t *)call->output->data)[i] = (uint8_t)round_to(MUC_U8, value, zero);
    }
    return MUC_OK;
}

/* value less its zero points, each for inner elements of every extent, as i32 */
static muc_ref_value widen(const muc_ref_value *value, const muc_ref_value *zero, size_t inner,
                           int32_t *out)
{
    muc_ref_value wide = *value;
    size_t extent = zero ? zero->elements : 1;

    for (size_t i = 0; i < value->elements; i++)
        out[i] = (int32_t)(muc_ref_integer(value, i) -
                           (zero ? muc_ref_integer(zero, i / inner % extent) : 0));
    wide.dtype = MUC_I32;
    wide.read = out;
    return wide;
}

/* Operands of a product of integers, less their zero points. */
typedef struct widened {
    muc_ref_value a, b, sums;
} widened;

/* a and b are inputs of their zero points; sums: NULL for room that is made here */
static muc_status widen_both(const muc_ref_call *call, uint32_t a, uint32_t a_zero, size_t a_inner,
                             uint32_t b, uint32_t b_zero, size_t b_inner, widened *out)
{
    const muc_ref_value *x = call->inputs[a], *y = call->inputs[b];
    void *room;
    int32_t *at;

    MUC_TRY(muc_ref_reserve(
        call, (x->elements + y->elements + call->output->elements) * sizeof(*at), &room));
    at = room;
    out->a = widen(x, muc_ref_input_of(call, a_zero), a_inner, at);
    out->b = widen(y, muc_ref_input_of(call, b_zero), b_inner, at + x->elements);
    out->sums = *call->output;
    out->sums.dtype = MUC_I32;
    out->sums.data = at + x->elements + y->elements;
    return MUC_OK;
}

/* elements of a filter, of a row of a, of a column of b: what shares a zero point */
static size_t filter_size(const muc_ref_value *weights)
{
    return weights->dims[0] ? weights->elements / weights->dims[0] : 1;
}

static size_t row_size(const muc_ref_value *a)
{
    return a->rank > 1 && a->columns ? a->columns : a->elements + 1;
}

static muc_status convolve(const muc_ref_call *call, const widened *w, const muc_ref_value *bias)
{
    muc_ref_window window;

    MUC_TRY(muc_ref_window_of(call, &w->a, &w->b, call->output, &window));
    return muc_ref_convolve(call, &window, MUC_I32,
                            (size_t)muc_node_integer_or(call->node, MUC_KEY_GROUPS, 1), w->a.read,
                            w->b.read, bias ? bias->read : NULL, w->sums.data);
}

muc_status muc_kernel_conv_integer(const muc_ref_call *call)
{
    widened w;

    MUC_TRY(widen_both(call, 0, 2, call->inputs[0]->elements + 1, 1, 3,
                       filter_size(call->inputs[1]), &w));
    w.sums.data = call->output->data;
    return convolve(call, &w, NULL);
}

muc_status muc_kernel_matmul_integer(const muc_ref_call *call)
{
    widened w;

    MUC_TRY(widen_both(call, 0, 2, row_size(call->inputs[0]), 1, 3, 1, &w));
    w.sums.data = call->output->data;
    return muc_ref_product(call, &w.a, &w.b, &w.sums);
}

/* QuantLib's requantization of sums; channels' elements follow each other `inner` apart */
static void shift_sums(const muc_ref_call *call, const int32_t *sums, size_t inner)
{
    const muc_ref_value *mul = call->inputs[2], *add = call->inputs[3];
    const unsigned shift = (unsigned)muc_node_integer(call->node, MUC_KEY_SHIFT);
    const int32_t lo = (int32_t)muc_node_integer(call->node, MUC_KEY_CLAMP_MIN);
    const int32_t hi = (int32_t)muc_node_integer(call->node, MUC_KEY_CLAMP_MAX);

    for (size_t i = 0; i < call->output->elements; i++) {
        int32_t m = (int32_t)muc_ref_integer(mul, pick(mul, i / inner % mul->elements));
        int32_t b = (int32_t)muc_ref_integer(add, pick(add, i / inner % add->elements));
        int64_t value = muc_quantlib_requant(sums[i], m, b, shift, lo, hi);

        muc_ref_store_integers(call->output, i, 1, &value);
    }
}

/* elements of one channel of a convolution's output that lie together */
static size_t plane_size(const muc_ref_call *call)
{
    bool channels_last = muc_node_integer_or(call->node, MUC_KEY_CHANNELS_LAST, 0) == 1;
    size_t positions = 1;

    for (uint32_t i = 2; !channels_last && i < call->output->rank; i++)
        positions *= call->output->dims[i];
    return positions ? positions : 1;
}

muc_status muc_kernel_requant_conv(const muc_ref_call *call)
{
    widened w;

    MUC_TRY(widen_both(call, 0, 4, call->inputs[0]->elements + 1, 1, NO_ZERO,
                       filter_size(call->inputs[1]), &w));
    MUC_TRY(convolve(call, &w, NULL));
    shift_sums(call, w.sums.data, plane_size(call));
    return MUC_OK;
}

/* x [rows, k] times the transpose of w [n, k] */
static void sum_rows(const muc_ref_value *x, const muc_ref_value *w, int32_t *sums)
{
    const int32_t *a = x->read, *b = w->read;

    for (size_t i = 0; i < x->rows; i++)
        for (size_t j = 0; j < w->rows; j++) {
            uint32_t sum = 0;

            for (size_t k = 0; k < w->columns; k++)
                sum += (uint32_t)a[i * w->columns + k] * (uint32_t)b[j * w->columns + k];
            *sums++ = (int32_t)sum;
        }
}

muc_status muc_kernel_requant_matmul(const muc_ref_call *call)
{
    bool is_linear = call->node->op == MUC_OP_REQUANT_LINEAR;
    widened w;

    MUC_TRY(widen_both(call, 0, is_linear ? 4 : NO_ZERO, call->inputs[0]->elements + 1, 1, NO_ZERO,
                       1, &w));
    if (is_linear)
        sum_rows(&w.a, &w.b, w.sums.data);
    else
        MUC_TRY(muc_ref_product(call, &w.a, &w.b, &w.sums));
    shift_sums(call, w.sums.data, 1);
    return MUC_OK;
}

/* sums times a scale * b scale / y scale; b's scales are one for inner elements of every extent */
static void requantize(const muc_ref_call *call, const muc_ref_value *sums, size_t a_inner,
                       size_t b_inner)
{
    const muc_ref_value *a = call->inputs[1], *b = call->inputs[4];
    double y_scale = muc_ref_real(call->inputs[6], 0);
    int64_t zero = muc_ref_integer(call->inputs[7], 0);
    const int32_t *from = sums->data;

    for (size_t i = 0; i < call->output->elements; i++) {
        double scale = muc_ref_real(a, a->elements > 1 ? i / a_inner % a->elements : 0) *
                       muc_ref_real(b, b->elements > 1 ? i / b_inner % b->elements : 0) / y_scale;
        int64_t value = round_to(call->output->dtype, (double)from[i] * scale, zero);

        muc_ref_store_integers(call->output, i, 1, &value);
    }
}

muc_status muc_kernel_qlinear_conv(const muc_ref_call *call)
{
    widened w;

    MUC_TRY(widen_both(call, 0, 2, call->inputs[0]->elements + 1, 3, 5,
                       filter_size(call->inputs[3]), &w));
    MUC_TRY(convolve(call, &w, muc_ref_input_of(call, 8)));
    requantize(call, &w.sums, 1, plane_size(call));
    return MUC_OK;
}

muc_status muc_kernel_qlinear_matmul(const muc_ref_call *call)
{
    const muc_ref_value *b = call->inputs[3];
    widened w;

    MUC_TRY(widen_both(call, 0, 2, row_size(call->inputs[0]), 3, 5, 1, &w));
    MUC_TRY(muc_ref_product(call, &w.a, &w.b, &w.sums));
    requantize(call, &w.sums, b->rank > 1 && b->columns ? b->columns : 1, 1);
    return MUC_OK;
}
