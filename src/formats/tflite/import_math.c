/* import_math.c - TFLite's arithmetic element by element, and reductions. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "formats/tflite/import.h"
#include "graph/scales.h"

enum { MOST_INPUTS = 1024 };

/* the fused activation, where the operator can have one */
static int64_t activation_of(const muc_tflite_import *im)
{
    static const struct {
        muc_op op;
        muc_flat_field field;
    } fields[] = { { MUC_OP_ADD, MUC_FLAT_ADD_OPTIONS_activation },
                   { MUC_OP_SUB, MUC_FLAT_SUB_OPTIONS_activation },
                   { MUC_OP_MUL, MUC_FLAT_MUL_OPTIONS_activation },
                   { MUC_OP_DIV, MUC_FLAT_DIV_OPTIONS_activation } };

    for (size_t i = 0; i < MUC_COUNT(fields); i++)
        if (fields[i].op == im->to)
            return muc_tflite_option(im, fields[i].field);
    return MUC_TFLITE_NO_ACTIVATION;
}

/* operators that broadcast their inputs */
muc_status muc_tflite_import_binary(muc_tflite_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t inputs[MOST_INPUTS], count = im->op->input_count;
    bool compares = im->to == MUC_OP_MAX || im->to == MUC_OP_MIN;

    for (uint32_t i = 0; i < count; i++) {
        MUC_TRY(muc_tflite_input(im, i, &inputs[i]));
        if (compares)
            MUC_TRY(muc_tflite_same_scale(im, muc_tflite_in(im, i), muc_tflite_out(im, 0)));
    }
    if (muc_tflite_out(im, 0)->dtype == MUC_BOOL)
        for (uint32_t i = 1; i < count; i++)
            MUC_TRY(muc_tflite_same_scale(im, muc_tflite_in(im, 0), muc_tflite_in(im, i)));
    return muc_tflite_activated(im, im->to, inputs, count, &a, activation_of(im));
}

bool muc_tflite_has_table(const muc_tflite_import *im, muc_op op)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0), *y = muc_tflite_out(im, 0);
    muc_table_scale scale;

    return (op == MUC_OP_SIGMOID || op == MUC_OP_TANH) && x->dtype == MUC_I16 &&
           y->dtype == MUC_I16 && x->quantization.count == 1 && y->quantization.count == 1 &&
           x->quantization.zero_points[0] == 0 && y->quantization.zero_points[0] == 0 &&
           x->quantization.scales[0] > 0 && y->quantization.scales[0] > 0 &&
           muc_scale_of_table(op, x->quantization.scales[0], y->quantization.scales[0], &scale);
}

muc_status muc_tflite_import_unary(muc_tflite_import *im)
{
    uint32_t input;

    MUC_TRY(muc_tflite_input(im, 0, &input));
    return muc_tflite_last(im, im->to, &input, 1, NULL);
}

muc_status muc_tflite_import_leaky_relu(muc_tflite_import *im)
{
    float alpha = muc_flat_real(im->options, MUC_FLAT_LEAKY_RELU_OPTIONS_alpha);
    muc_attributes a = { .count = 0 };
    uint32_t input;

    if (!isfinite(alpha))
        return muc_tflite_refuse(im, MUC_MALFORMED, "alpha is not finite");
    MUC_TRY(muc_tflite_input(im, 0, &input));
    muc_attributes_set_real(&a, MUC_KEY_ALPHA, (double)alpha);
    return muc_tflite_last(im, im->to, &input, 1, &a);
}

muc_status muc_tflite_import_elu(muc_tflite_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t input;

    MUC_TRY(muc_tflite_input(im, 0, &input));
    muc_attributes_set_real(&a, MUC_KEY_ALPHA, 1);
    return muc_tflite_last(im, im->to, &input, 1, &a);
}

muc_status muc_tflite_import_gelu(muc_tflite_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t input;

    MUC_TRY(muc_tflite_input(im, 0, &input));
    if (muc_tflite_option(im, MUC_FLAT_GELU_OPTIONS_approximate))
        muc_attributes_set(&a, MUC_KEY_MODE, MUC_WORD_TANH);
    return muc_tflite_last(im, im->to, &input, 1, &a);
}

muc_status muc_tflite_import_rsqrt(muc_tflite_import *im)
{
    uint32_t id;

    MUC_TRY(muc_tflite_input(im, 0, &id));
    MUC_TRY(muc_tflite_step(im, MUC_OP_SQRT, "root", &id, 1, NULL, NULL, &id));
    return muc_tflite_last(im, im->to, &id, 1, NULL);
}

muc_status muc_tflite_import_square(muc_tflite_import *im)
{
    uint32_t inputs[2];

    MUC_TRY(muc_tflite_input(im, 0, &inputs[0]));
    inputs[1] = inputs[0];
    return muc_tflite_last(im, im->to, inputs, 2, NULL);
}

muc_status muc_tflite_import_squared_difference(muc_tflite_import *im)
{
    uint32_t inputs[2];

    MUC_TRY(muc_tflite_input(im, 0, &inputs[0]));
    MUC_TRY(muc_tflite_input(im, 1, &inputs[1]));
    if (muc_tflite_is_quantized(muc_tflite_in(im, 0)))
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "of integers");
    MUC_TRY(muc_tflite_step(im, MUC_OP_SUB, "difference", inputs, 2, NULL, NULL, &inputs[0]));
    inputs[1] = inputs[0];
    return muc_tflite_last(im, MUC_OP_MUL, inputs, 2, NULL);
}

static muc_status cast_to_output(muc_tflite_import *im, uint32_t input)
{
    muc_attributes a = { .count = 0 };

    muc_attributes_set(&a, MUC_KEY_TO, muc_tflite_out(im, 0)->dtype);
    return muc_tflite_last(im, MUC_OP_CAST, &input, 1, &a);
}

muc_status muc_tflite_import_cast(muc_tflite_import *im)
{
    uint32_t input;

    MUC_TRY(muc_tflite_input(im, 0, &input));
    if (muc_tflite_is_quantized(muc_tflite_in(im, 0)) ||
        muc_tflite_is_quantized(muc_tflite_out(im, 0)))
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "of quantized integers");
    return cast_to_output(im, input);
}

muc_status muc_tflite_import_quantize(muc_tflite_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t input;

    if (!muc_tflite_is_quantized(muc_tflite_out(im, 0)))
        return muc_tflite_refuse(im, MUC_MALFORMED, "an output without a scale");
    MUC_TRY(muc_tflite_input(im, 0, &input));
    muc_attributes_set(&a, MUC_KEY_TO, muc_tflite_out(im, 0)->dtype);
    return muc_tflite_last(im, im->to, &input, 1, &a);
}

/* of integers, or of the half floats that some files store */
muc_status muc_tflite_import_dequantize(muc_tflite_import *im)
{
    uint32_t input;

    MUC_TRY(muc_tflite_input(im, 0, &input));
    if (muc_tflite_in(im, 0)->dtype == MUC_F16)
        return cast_to_output(im, input);
    return muc_tflite_last(im, im->to, &input, 1, NULL);
}

/* ---- reductions ---- */

/* the constant axes of input 1, ascending, none twice */
static muc_status read_axes(const muc_tflite_import *im, int64_t *axes, uint32_t *count)
{
    uint32_t rank = muc_tflite_in(im, 0)->rank, given;
    int64_t items[MUC_GRAPH_MAX_RANK], axis;
    bool reduced[MUC_GRAPH_MAX_RANK] = { false };

    MUC_TRY(muc_tflite_integers(im, 1, MUC_GRAPH_MAX_RANK, items, &given));
    for (uint32_t i = 0; i < given; i++) {
        MUC_TRY(muc_tflite_axis(im, items[i], rank, &axis));
        reduced[axis] = true;
    }
    *count = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (reduced[i])
            axes[(*count)++] = i;
    return MUC_OK;
}

/* the one axis of a mean as a constant has it; false: none, or several */
static bool one_axis(const muc_tflite_import *im, const muc_tflite_operator *op, int64_t *axis)
{
    const muc_tflite_tensor *axes = &im->model->tensors[op->inputs[1]];
    uint32_t rank = im->model->tensors[op->inputs[0]].rank;

    if (!axes->data || axes->dtype != MUC_I32 || axes->bytes != 4)
        return false;
    *axis = (int32_t)muc_load_u32(axes->data);
    *axis += *axis < 0 ? rank : 0;
    return *axis >= 0 && *axis < rank;
}

bool muc_tflite_means_are_pool(const muc_tflite_import *im, const muc_tflite_operator *inner,
                               const muc_tflite_operator *outer, bool *channels_last)
{
    int64_t first, second;

    if (im->model->tensors[inner->inputs[0]].rank != 4 || !one_axis(im, inner, &first) ||
        !one_axis(im, outer, &second))
        return false;
    second += !muc_tflite_keeps_dims(inner) && second >= first ? 1 : 0;
    *channels_last = first + second == 3; /* 1 and 2, not 2 and 3 */
    return first != second && first > 0 && second > 0 && first + second != 4;
}

static muc_status import_pool(muc_tflite_import *im, const muc_tflite_operator *inner)
{
    muc_attributes a = { .count = 0 }, shape = { .count = 0 };
    muc_tflite_import from = *im;
    const muc_tflite_tensor *x;
    bool channels_last;
    uint32_t id;

    from.op = inner;
    x = muc_tflite_in(&from, 0);
    muc_tflite_means_are_pool(im, inner, im->op, &channels_last);
    MUC_TRY(muc_tflite_input(&from, 0, &id));
    muc_attributes_set_integers(
        &a, MUC_KEY_KERNEL,
        (const int64_t[]){ x->dims[channels_last ? 1 : 2], x->dims[channels_last ? 2 : 3] }, 2);
    if (channels_last)
        muc_attributes_set(&a, MUC_KEY_CHANNELS_LAST, 1);
    if (muc_tflite_keeps_dims(im->op))
        return muc_tflite_last(im, MUC_OP_AVERAGE_POOL, &id, 1, &a);
    MUC_TRY(muc_tflite_step(im, MUC_OP_AVERAGE_POOL, "pool", &id, 1, &a, x, &id));
    muc_tflite_set_dims(im, &shape, MUC_KEY_SHAPE, muc_tflite_out(im, 0));
    return muc_tflite_last(im, MUC_OP_RESHAPE, &id, 1, &shape);
}

muc_status muc_tflite_import_reduce(muc_tflite_import *im)
{
    const muc_tflite_operator *inner = muc_tflite_inner_mean(im);
    int64_t axes[MUC_GRAPH_MAX_RANK];
    muc_attributes a = { .count = 0 };
    uint32_t input, count;

    if (inner)
        return import_pool(im, inner);
    MUC_TRY(read_axes(im, axes, &count));
    if (im->to == MUC_OP_REDUCE_MAX || im->to == MUC_OP_REDUCE_MIN)
        MUC_TRY(muc_tflite_same_scale(im, muc_tflite_in(im, 0), muc_tflite_out(im, 0)));
    MUC_TRY(muc_tflite_input(im, 0, &input));
    muc_attributes_set_integers(&a, MUC_KEY_AXES, axes, count);
    muc_attributes_set(&a, MUC_KEY_KEEP_DIMS, muc_tflite_keeps_dims(im->op));
    return muc_tflite_last(im, im->to, &input, 1, &a);
}

/* the graph's indices are i64 */
muc_status muc_tflite_import_arg(muc_tflite_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t id, count;
    int64_t item, axis;

    MUC_TRY(muc_tflite_integers(im, 1, 1, &item, &count));
    if (count != 1)
        return muc_tflite_refuse(im, MUC_MALFORMED, "no axis");
    MUC_TRY(muc_tflite_axis(im, item, muc_tflite_in(im, 0)->rank, &axis));
    MUC_TRY(muc_tflite_input(im, 0, &id));
    muc_attributes_set(&a, MUC_KEY_AXIS, axis);
    muc_attributes_set(&a, MUC_KEY_KEEP_DIMS, 0);
    if (muc_tflite_out(im, 0)->dtype == MUC_I64)
        return muc_tflite_last(im, im->to, &id, 1, &a);
    MUC_TRY(muc_tflite_step(im, im->to, "wide", &id, 1, &a, NULL, &id));
    return cast_to_output(im, id);
}
