/* tflite_import_nn.c - TFLite's convolutions, products, pools, activations and resizing. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "formats/tflite/tflite_import.h"
#include "import/sliding_window.h"

enum { SAME, VALID };

/* ---- fused activations ---- */

/* The operator that does the same alone, 0: none, and the bounds, if low is below high. */
typedef struct function {
    uint8_t code;
    float low, high;
} function;

static const function functions[] = {
    [MUC_TFLITE_RELU] = { MUC_TFLITE_RELU_CODE, 0, INFINITY },
    [MUC_TFLITE_RELU_N1_TO_1] = { MUC_TFLITE_RELU_N1_TO_1_CODE, -1, 1 },
    [MUC_TFLITE_RELU6] = { MUC_TFLITE_RELU6_CODE, 0, 6 },
    [MUC_TFLITE_TANH] = { MUC_TFLITE_TANH_CODE, 0, 0 },
    [MUC_TFLITE_RELU_0_TO_1] = { MUC_TFLITE_RELU_0_TO_1_CODE, 0, 1 },
};

static function function_of(int64_t activation)
{
    return functions[activation > 0 && activation < (int64_t)MUC_COUNT(functions) ? activation : 0];
}

static muc_status no_activation(const muc_tflite_import *im, int64_t activation, const char *of)
{
    return muc_tflite_refuse(im, MUC_UNSUPPORTED, "fused activation %" PRId64 " of %s", activation,
                             of);
}

/* the stored integer of a real number, in TFLite's single precision */
static int64_t stored(const muc_tflite_tensor *tensor, float value)
{
    return (int64_t)roundf(value / tensor->quantization.scales[0]) +
           tensor->quantization.zero_points[0];
}

static muc_status set_clamp(const muc_tflite_import *im, muc_attributes *a, int64_t activation)
{
    const muc_tflite_tensor *out = muc_tflite_out(im, 0);
    const function f = function_of(activation);
    int64_t least, most, bound;

    muc_dtype_range(out->dtype, &least, &most);
    if (f.low >= f.high)
        return no_activation(im, activation, "integers");
    bound = stored(out, f.low);
    if (bound > least)
        muc_attributes_set(a, MUC_KEY_CLAMP_MIN, bound < most ? bound : most);
    bound = f.high < INFINITY ? stored(out, f.high) : most;
    if (bound < most)
        muc_attributes_set(a, MUC_KEY_CLAMP_MAX, bound > least ? bound : least);
    return MUC_OK;
}

/* a scalar of a tensor's type; of a quantized one the integer that stands for the value */
static muc_status add_scalar(muc_tflite_import *im, const muc_tflite_tensor *like, float value,
                             uint32_t *id)
{
    const muc_tflite_quantization *q = &like->quantization;
    muc_quantization quantization = { q->count, q->axis, q->scales, q->zero_points };
    muc_tensor tensor = { .dtype = like->dtype };
    uint8_t *data;

    MUC_TRY(muc_arena_new(im->ctx, im->arena, 4, 1, (void **)&data));
    tensor.data = data;
    tensor.bytes = muc_dtype_get(like->dtype)->block_bytes;
    if (muc_tflite_is_quantized(like)) {
        int64_t least, most, integer = stored(like, value);

        muc_dtype_range(like->dtype, &least, &most);
        integer = integer < least ? least : integer > most ? most : integer;
        muc_store_u32(data, (uint32_t)integer);
        tensor.quantization = &quantization;
    } else {
        memcpy(data, &value, sizeof(value));
    }
    return muc_tflite_constant(im, value < 0 ? "low" : "bound", &tensor, id);
}

muc_status muc_tflite_activate(muc_tflite_import *im, uint32_t x, int64_t activation)
{
    const muc_tflite_tensor *out = muc_tflite_out(im, 0);
    const function f = function_of(activation);
    const muc_op op = muc_tflite_graph_op(f.code);
    uint32_t inputs[3] = { x };

    if (f.high == INFINITY || (f.code && f.low == f.high && !muc_tflite_is_quantized(out)))
        return muc_tflite_last(im, op, inputs, 1, NULL);
    if (f.low >= f.high || (out->dtype != MUC_F32 && !muc_tflite_is_quantized(out)))
        return no_activation(im, activation, muc_dtype_get(out->dtype)->name);
    MUC_TRY(add_scalar(im, out, f.low, &inputs[1]));
    MUC_TRY(add_scalar(im, out, f.high, &inputs[2]));
    return muc_tflite_last(im, op, inputs, 3, NULL);
}

muc_status muc_tflite_activated(muc_tflite_import *im, muc_op op, const uint32_t *inputs,
                                uint32_t count, muc_attributes *a)
{
    int64_t activation = muc_tflite_option(im, "activation");
    uint32_t id;

    if (activation == MUC_TFLITE_NO_ACTIVATION)
        return muc_tflite_last(im, op, inputs, count, a);
    if (muc_tflite_is_quantized(muc_tflite_out(im, 0))) {
        MUC_TRY(set_clamp(im, a, activation));
        return muc_tflite_last(im, op, inputs, count, a);
    }
    MUC_TRY(muc_tflite_step(im, op, "linear", inputs, count, a, &id));
    return muc_tflite_activate(im, id, activation);
}

/* RELU, RELU6, RELU_N1_TO_1: of integers with the scale changed first, where it changes */
muc_status muc_tflite_import_relu(muc_tflite_import *im)
{
    int64_t activation = 0;
    uint32_t id;

    while (functions[activation].code != im->op->code)
        activation++;
    MUC_TRY(muc_tflite_scaled_input(im, 0, &id));
    return muc_tflite_activate(im, id, activation);
}

/* ---- windows ---- */

/* the options' strides and dilations */
static muc_window window_of(const muc_tflite_import *im, int64_t height, int64_t width)
{
    int64_t h = muc_tflite_option(im, "dilation_h"), w = muc_tflite_option(im, "dilation_w");
    bool dilates = im->to == MUC_OP_CONV;

    return (muc_window){ .spatial = 2,
                         .kernel = { height, width },
                         .strides = { muc_tflite_option(im, "stride_h"),
                                      muc_tflite_option(im, "stride_w") },
                         .dilations = { dilates ? h : 1, dilates ? w : 1 } };
}

/* a window over NHWC as attributes, by the options' padding */
static muc_status set_window(muc_tflite_import *im, muc_attributes *a, muc_window *w)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    int64_t padding = muc_tflite_option(im, "padding");

    if (x->rank != 4)
        return muc_tflite_refuse(im, MUC_MALFORMED,
                                 "the input has %" PRIu32 " dimensions, expected 4", x->rank);
    if (padding != SAME && padding != VALID)
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "padding %" PRId64, padding);
    if (im->phases) {
        memcpy(w->dilations, im->phases->dilations, sizeof(im->phases->dilations));
        memcpy(w->pads, im->phases->pads, sizeof(im->phases->pads));
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (w->strides[i] < 1 || w->dilations[i] < 1 || w->kernel[i] < 1)
            return muc_tflite_refuse(im, MUC_MALFORMED, "a kernel, stride or dilation is below 1");
        if (padding == SAME && !im->phases)
            muc_window_pad(w, i, x->dims[1 + i], MUC_PADDING_SAME);
    }
    muc_window_set(w, a, false, false);
    muc_attributes_set(a, MUC_KEY_CHANNELS_LAST, 1);
    return MUC_OK;
}

/* weights of an input of real numbers may be integers: these are what they stand for */
muc_status muc_tflite_dequantize(muc_tflite_import *im, uint32_t i, uint32_t *id)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0), *weights = muc_tflite_in(im, i);

    if (x->dtype != MUC_F32 || !muc_tflite_is_quantized(weights))
        return MUC_OK;
    return muc_tflite_make(im, id, 1, id, "weights = dequantize 0");
}

/* a constant [1, kh, kw, c] as [c, kh, kw, 1], which is how the graph has weights */
static muc_status transpose_weights(muc_tflite_import *im, const muc_tflite_tensor *w, uint32_t *id)
{
    const muc_tflite_quantization *q = &w->quantization;
    muc_quantization quantization = { q->count, 0, q->scales, q->zero_points };
    size_t width = muc_dtype_get(w->dtype)->block_bytes, channels = w->dims[3];
    size_t taps = (size_t)w->dims[1] * w->dims[2];
    muc_tensor tensor = { .dtype = w->dtype, .rank = 4, .bytes = w->bytes };
    uint8_t *data;

    MUC_TRY(muc_arena_new(im->ctx, im->arena, w->bytes, 1, (void **)&data));
    for (size_t t = 0; t < taps; t++)
        for (size_t c = 0; c < channels; c++)
            memcpy(data + (c * taps + t) * width, w->data + (t * channels + c) * width, width);
    for (uint32_t i = 0; i < 4; i++)
        tensor.dims[i] = muc_expr_const(im->graph->pool, w->dims[i == 0 ? 3 : i == 3 ? 0 : i]);
    tensor.data = data;
    if (muc_tflite_is_quantized(w))
        tensor.quantization = &quantization;
    return muc_tflite_constant(im, w->name, &tensor, id);
}

/* weights [out, kh, kw, in], or depthwise [1, kh, kw, out] */
muc_status muc_tflite_import_conv(muc_tflite_import *im)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0), *w = muc_tflite_in(im, 1);
    bool depthwise = im->op->code == MUC_TFLITE_DEPTHWISE_CONV_2D_CODE;
    muc_attributes a = { .count = 0 };
    muc_window window;
    uint32_t inputs[3];

    if (w->rank != 4 || x->rank != 4 || w->dims[3] == 0 || x->dims[3] == 0 ||
        (depthwise ? w->dims[0] != 1 || w->dims[3] % x->dims[3] : x->dims[3] % w->dims[3]) != 0)
        return muc_tflite_refuse(im, MUC_MALFORMED, "the weights do not fit the input");
    if (depthwise && (!w->data || (w->quantization.count > 1 && w->quantization.axis != 3)))
        return muc_tflite_refuse(
            im, MUC_UNSUPPORTED,
            "the weights are computed, or have scales along another dimension");
    MUC_TRY(muc_tflite_input(im, 0, &inputs[0]));
    MUC_TRY(depthwise ? transpose_weights(im, w, &inputs[1]) : muc_tflite_input(im, 1, &inputs[1]));
    MUC_TRY(muc_tflite_input(im, 2, &inputs[2]));
    MUC_TRY(muc_tflite_dequantize(im, 1, &inputs[1]));
    window = window_of(im, w->dims[1], w->dims[2]);
    MUC_TRY(set_window(im, &a, &window));
    if (depthwise || x->dims[3] != w->dims[3])
        muc_attributes_set(&a, MUC_KEY_GROUPS, x->dims[3] / (depthwise ? 1 : w->dims[3]));
    return muc_tflite_activated(im, im->to, inputs, 3, &a);
}

/* inputs: the output's shape, weights [out, kh, kw, in], x, bias */
muc_status muc_tflite_import_transpose_conv(muc_tflite_import *im)
{
    const muc_tflite_tensor *w = muc_tflite_in(im, 1), *x = muc_tflite_in(im, 2);
    const muc_tflite_tensor *out = muc_tflite_out(im, 0);
    int64_t padding = muc_tflite_option(im, "padding");
    muc_window window = window_of(im, w->dims[1], w->dims[2]);
    int64_t more[2] = { 0 };
    muc_attributes a = { .count = 0 };
    uint32_t inputs[3];

    if (w->rank != 4 || x->rank != 4 || out->rank != 4 || window.strides[0] < 1 ||
        window.strides[1] < 1)
        return muc_tflite_refuse(im, MUC_MALFORMED,
                                 "weights, input and strides do not fit together");
    for (uint32_t i = 0; i < 2; i++) {
        int64_t full, size = out->dims[1 + i];

        full = ((int64_t)x->dims[1 + i] - 1) * window.strides[i] + window.kernel[i];
        /* the pads are those of the convolution from the output to the input */
        muc_window_pad(&window, i, size, padding == SAME ? MUC_PADDING_SAME : MUC_PADDING_VALID);
        window.pads[2 + i] = full - window.pads[i] - size;
        if (window.pads[2 + i] < 0) {
            more[i] = -window.pads[2 + i];
            window.pads[2 + i] = 0;
        }
    }
    muc_window_set(&window, &a, false, true);
    if (more[0] | more[1])
        muc_attributes_set_integers(&a, MUC_KEY_OUTPUT_PADDING, more, 2);
    muc_attributes_set(&a, MUC_KEY_CHANNELS_LAST, 1);
    MUC_TRY(muc_tflite_input(im, 2, &inputs[0]));
    MUC_TRY(muc_tflite_input(im, 1, &inputs[1]));
    MUC_TRY(muc_tflite_input(im, 3, &inputs[2]));
    if (x->dtype == MUC_F32 && muc_tflite_is_quantized(w))
        MUC_TRY(muc_tflite_make(im, &inputs[1], 1, &inputs[1], "weights = dequantize 0"));
    return muc_tflite_activated(im, im->to, inputs, 3, &a);
}

muc_status muc_tflite_set_pool(muc_tflite_import *im, muc_attributes *a)
{
    muc_window w =
        window_of(im, muc_tflite_option(im, "filter_h"), muc_tflite_option(im, "filter_w"));

    muc_attributes_set_integers(a, MUC_KEY_KERNEL, w.kernel, 2);
    return set_window(im, a, &w);
}

muc_status muc_tflite_import_pool(muc_tflite_import *im)
{
    muc_attributes a = { .count = 0 };

    MUC_TRY(muc_tflite_set_pool(im, &a));
    return muc_tflite_cook_given(im, &a, ". 0 same0 given activated");
}

/* ---- products ---- */

/* x as rows of k elements, unless it is that already or the dimensions are kept */
static muc_status as_rows(muc_tflite_import *im, uint32_t k, uint32_t *id)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    int64_t elements = 1;

    if (x->rank > 0 && x->dims[x->rank - 1] == k &&
        (x->rank == 2 || muc_tflite_option(im, "keep_num_dims")))
        return MUC_OK;
    for (uint32_t i = 0; i < x->rank; i++)
        elements *= x->dims[i];
    if (k == 0 || elements % k != 0)
        return muc_tflite_refuse(im, MUC_MALFORMED, "the weights do not fit the input");
    return muc_tflite_make(im, id, 1, id, "rows = reshape 0 shape=%" PRId64 ",%" PRIu32,
                           elements / k, k);
}

muc_status muc_tflite_import_fully_connected(muc_tflite_import *im)
{
    const muc_tflite_tensor *w = muc_tflite_in(im, 1), *out = muc_tflite_out(im, 0);
    muc_attributes a = { .count = 0 };
    uint32_t inputs[3];

    if (muc_tflite_option(im, "weights_format") != 0)
        return muc_tflite_refuse(im, MUC_UNSUPPORTED,
                                 "the weights are shuffled, which muc does not read");
    if (w->rank != 2)
        return muc_tflite_refuse(im, MUC_MALFORMED,
                                 "the weights have %" PRIu32 " dimensions, expected 2", w->rank);
    if (out->rank != 2 && !muc_tflite_option(im, "keep_num_dims"))
        return muc_tflite_refuse(im, MUC_UNSUPPORTED,
                                 "the output has %" PRIu32 " dimensions, expected 2", out->rank);
    for (uint32_t i = 0; i < 3; i++)
        MUC_TRY(muc_tflite_input(im, i, &inputs[i]));
    MUC_TRY(as_rows(im, w->dims[1], &inputs[0]));
    MUC_TRY(muc_tflite_dequantize(im, 1, &inputs[1]));
    return muc_tflite_activated(im, im->to, inputs, 3, &a);
}

/* weights of real numbers may be integers */
muc_status muc_tflite_import_batch_matmul(muc_tflite_import *im)
{
    bool stored =
        muc_tflite_in(im, 0)->dtype == MUC_F32 && muc_tflite_is_quantized(muc_tflite_in(im, 1));

    return muc_tflite_cook(im,
                           "%s ?adj_x a = transpose 0 perm=0..-2,-1,-2; "
                           "?adj_y b = transpose %s perm=0..-2,-1,-2; . a b",
                           stored ? "weights = dequantize 1;" : "", stored ? "weights" : "1");
}
