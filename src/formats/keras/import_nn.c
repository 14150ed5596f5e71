/* import_nn.c - Keras's convolutions, products, pools, norms and activations. */
#include <inttypes.h>
#include <string.h>

#include "formats/keras/import.h"

enum { MAX_SPATIAL = 2 };
static const int64_t ones[MAX_SPATIAL] = { 1, 1 };

/* ---- windows ---- */

/* strides, dilations and pads of a window over x; kernel is its size */
static muc_status set_window(muc_keras_import *im, muc_attributes *a, uint32_t x,
                             const int64_t *kernel, const int64_t *strides,
                             const int64_t *dilations)
{
    uint32_t n = im->spatial;
    int64_t pads[2 * MAX_SPATIAL] = { 0 };
    const char *padding;
    bool same, causal;

    MUC_TRY(muc_keras_word(im, "padding|border_mode", "valid", &padding));
    same = strcmp(padding, "same") == 0;
    causal = n == 1 && strcmp(padding, "causal") == 0;
    if (!same && !causal && strcmp(padding, "valid") != 0)
        return muc_keras_refuse(im, MUC_UNSUPPORTED, "padding '%.40s', expected valid or same",
                                padding);
    for (uint32_t i = 0; i < n; i++) {
        int64_t size = muc_keras_dim(im, x, 1 + i), span = (kernel[i] - 1) * dilations[i] + 1;
        int64_t windows = (size + strides[i] - 1) / strides[i];
        int64_t all = causal ? span - 1 : same ? (windows - 1) * strides[i] + span - size : 0;

        all = all < 0 ? 0 : all;
        pads[i] = causal ? all : all / 2;
        pads[n + i] = all - pads[i];
    }
    muc_attributes_set_integers(a, MUC_KEY_STRIDES, strides, n);
    if (memcmp(dilations, ones, n * sizeof(*dilations)) != 0)
        muc_attributes_set_integers(a, MUC_KEY_DILATIONS, dilations, n);
    muc_attributes_set_integers(a, MUC_KEY_PADS, pads, 2 * n);
    muc_attributes_set(a, MUC_KEY_CHANNELS_LAST, 1);
    return MUC_OK;
}

static muc_status set_convolution(muc_keras_import *im, muc_attributes *a, uint32_t x,
                                  const int64_t *kernel)
{
    int64_t strides[MAX_SPATIAL], dilations[MAX_SPATIAL];

    MUC_TRY(muc_keras_integers(im, "strides|subsample|subsample_length", im->spatial, 1, ones,
                               strides));
    MUC_TRY(muc_keras_integers(im, "dilation_rate|atrous_rate", im->spatial, 1, ones, dilations));
    return set_window(im, a, x, kernel, strides, dilations);
}

static muc_status expect_pixels(const muc_keras_import *im, uint32_t x)
{
    MUC_TRY(muc_keras_channels_last(im));
    if (muc_keras_rank(im, x) != im->spatial + 2)
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "an input of %" PRIu32 " dimensions, expected %" PRIu32,
                                muc_keras_rank(im, x), im->spatial + 2);
    return MUC_OK;
}

/* array i is a kernel [spatial.., a, b]; its sizes, and a and b */
static muc_status kernel_of(const muc_keras_import *im, uint32_t i, int64_t *kernel, int64_t *a,
                            int64_t *b)
{
    const muc_hdf5_array *array = &im->arrays[i];

    if (array->rank != im->spatial + 2 || array->elements == 0 || array->elements > INT32_MAX)
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "a kernel of %" PRIu32 " dimensions and %" PRIu64
                                " elements, expected %" PRIu32 " dimensions",
                                array->rank, array->elements, im->spatial + 2);
    for (uint32_t d = 0; d < im->spatial; d++)
        kernel[d] = (int64_t)array->dims[d];
    *a = (int64_t)array->dims[im->spatial];
    *b = (int64_t)array->dims[im->spatial + 1];
    return MUC_OK;
}

/* the last array as a bias [outputs] if the layer uses one; *count grows with it */
static muc_status add_bias(muc_keras_import *im, uint32_t kernels, int64_t outputs,
                           uint32_t *inputs, uint32_t *count)
{
    bool uses;

    MUC_TRY(muc_keras_bool(im, "use_bias|bias", true, &uses));
    if (im->array_count != kernels + uses)
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "%" PRIu32 " arrays of weights, expected %" PRIu32, im->array_count,
                                kernels + uses);
    if (!uses)
        return MUC_OK;
    MUC_TRY(muc_keras_expect(im, kernels, "the bias", 1, &outputs));
    return muc_keras_constant(im, "bias", 1, &outputs, im->arrays[kernels].data,
                              &inputs[(*count)++]);
}

/* ---- convolutions ---- */

/* kernel [spatial.., in / groups, out]: weights [out, spatial.., in / groups] */
muc_status muc_keras_import_conv(muc_keras_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t inputs[3] = { muc_keras_input(im, 0) }, count = 2;
    int64_t kernel[MAX_SPATIAL], in, out, groups, dims[MAX_SPATIAL + 2];

    MUC_TRY(expect_pixels(im, inputs[0]));
    MUC_TRY(kernel_of(im, 0, kernel, &in, &out));
    MUC_TRY(muc_keras_integers(im, "groups", 1, 1, ones, &groups));
    dims[0] = out;
    memcpy(dims + 1, kernel, im->spatial * sizeof(*dims));
    dims[im->spatial + 1] = in;
    MUC_TRY(muc_keras_transposed(im, "kernel", 0, out, im->spatial + 2, dims, &inputs[1]));
    MUC_TRY(add_bias(im, 1, out, inputs, &count));
    MUC_TRY(set_convolution(im, &a, inputs[0], kernel));
    if (groups > 1)
        muc_attributes_set(&a, MUC_KEY_GROUPS, groups);
    return muc_keras_activated(im, im->to, inputs, count, &a);
}

/* kernel [spatial.., in, multiplier]: weights [in * multiplier, spatial.., 1], groups = in */
static muc_status depthwise_weights(muc_keras_import *im, muc_attributes *a, uint32_t x,
                                    uint32_t *weights, int64_t *outputs)
{
    int64_t kernel[MAX_SPATIAL], in, multiplier;

    MUC_TRY(expect_pixels(im, x));
    MUC_TRY(kernel_of(im, 0, kernel, &in, &multiplier));
    *outputs = in * multiplier;
    MUC_TRY(muc_keras_transposed(im, "depthwise_kernel", 0, *outputs, 4,
                                 (const int64_t[]){ *outputs, kernel[0], kernel[1], 1 }, weights));
    MUC_TRY(set_convolution(im, a, x, kernel));
    muc_attributes_set(a, MUC_KEY_GROUPS, in);
    return MUC_OK;
}

muc_status muc_keras_import_depthwise(muc_keras_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t inputs[3] = { muc_keras_input(im, 0) }, count = 2;
    int64_t outputs;

    MUC_TRY(depthwise_weights(im, &a, inputs[0], &inputs[1], &outputs));
    MUC_TRY(add_bias(im, 1, outputs, inputs, &count));
    return muc_keras_activated(im, im->to, inputs, count, &a);
}

muc_status muc_keras_import_separable(muc_keras_import *im)
{
    muc_attributes a = { .count = 0 }, point = { .count = 0 };
    uint32_t inputs[3] = { muc_keras_input(im, 0) }, count = 2;
    int64_t between, kernel[MAX_SPATIAL], in, out;

    MUC_TRY(depthwise_weights(im, &a, inputs[0], &inputs[1], &between));
    MUC_TRY(muc_keras_step(im, im->to, "depthwise", inputs, 2, &a, &inputs[0]));
    MUC_TRY(kernel_of(im, 1, kernel, &in, &out));
    MUC_TRY(muc_keras_expect(im, 1, "the pointwise kernel", 4,
                             (const int64_t[]){ 1, 1, between, out }));
    MUC_TRY(muc_keras_transposed(im, "pointwise_kernel", 1, out, 4,
                                 (const int64_t[]){ out, 1, 1, between }, &inputs[1]));
    MUC_TRY(add_bias(im, 2, out, inputs, &count));
    muc_attributes_set(&point, MUC_KEY_CHANNELS_LAST, 1);
    return muc_keras_activated(im, im->to, inputs, count, &point);
}

/* ---- products and norms ---- */

muc_status muc_keras_import_dense(muc_keras_import *im)
{
    uint32_t inputs[3] = { muc_keras_input(im, 0) }, count = 2;
    int64_t dims[2];

    if (im->arrays[0].rank != 2 || im->arrays[0].elements > INT32_MAX)
        return muc_keras_refuse(im, MUC_MALFORMED, "a kernel of %" PRIu32 " dimensions, expected 2",
                                im->arrays[0].rank);
    dims[0] = (int64_t)im->arrays[0].dims[1];
    dims[1] = (int64_t)im->arrays[0].dims[0];
    MUC_TRY(muc_keras_transposed(im, "kernel", 0, dims[0], 2, dims, &inputs[1]));
    MUC_TRY(add_bias(im, 1, dims[0], inputs, &count));
    return muc_keras_activated(im, im->to, inputs, count, NULL);
}

/* a vector of the channels: the next array, or where the layer has none of it, one number */
static muc_status add_vector(muc_keras_import *im, const char *suffix, bool stored, float constant,
                             int64_t channels, uint32_t *next, uint32_t *id)
{
    float *data;

    if (stored) {
        if (*next == im->array_count)
            return muc_keras_refuse(im, MUC_MALFORMED, "no array of weights for %s", suffix);
        MUC_TRY(muc_keras_expect(im, *next, suffix, 1, &channels));
        return muc_keras_constant(im, suffix, 1, &channels, im->arrays[(*next)++].data, id);
    }
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, (size_t)channels, &data));
    for (int64_t i = 0; i < channels; i++)
        data[i] = constant;
    return muc_keras_constant(im, suffix, 1, &channels, data, id);
}

muc_status muc_keras_import_batch_norm(muc_keras_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t inputs[5] = { muc_keras_input(im, 0) }, next = 0, rank = muc_keras_rank(im, inputs[0]);
    int64_t channels = muc_keras_dim(im, inputs[0], rank - 1), axis;
    bool scale, center;
    double epsilon;

    MUC_TRY(muc_keras_integers(im, "axis", 1, -1, (const int64_t[]){ -1 }, &axis));
    if (axis != -1 && axis != (int64_t)rank - 1)
        return muc_keras_refuse(im, MUC_UNSUPPORTED, "axis %" PRId64 ", expected the last", axis);
    MUC_TRY(muc_keras_real(im, "epsilon", 1e-3, &epsilon));
    MUC_TRY(muc_keras_bool(im, "scale", true, &scale));
    MUC_TRY(muc_keras_bool(im, "center", true, &center));
    MUC_TRY(add_vector(im, "gamma", scale, 1, channels, &next, &inputs[1]));
    MUC_TRY(add_vector(im, "beta", center, 0, channels, &next, &inputs[2]));
    MUC_TRY(add_vector(im, "moving_mean", true, 0, channels, &next, &inputs[3]));
    MUC_TRY(add_vector(im, "moving_variance", true, 0, channels, &next, &inputs[4]));
    if (next != im->array_count)
        return muc_keras_refuse(im, MUC_MALFORMED, "more arrays of weights than scale and center");
    muc_attributes_set_real(&a, MUC_KEY_EPSILON, epsilon);
    if (rank > 2)
        muc_attributes_set(&a, MUC_KEY_CHANNELS_LAST, 1);
    return muc_keras_last(im, im->to, inputs, 5, &a);
}

/* ---- pools ---- */

muc_status muc_keras_import_pool(muc_keras_import *im)
{
    static const int64_t twos[MAX_SPATIAL] = { 2, 2 };
    muc_attributes a = { .count = 0 };
    uint32_t x = muc_keras_input(im, 0);
    int64_t kernel[MAX_SPATIAL], strides[MAX_SPATIAL];

    MUC_TRY(expect_pixels(im, x));
    MUC_TRY(muc_keras_integers(im, "pool_size|pool_length", im->spatial, 1, twos, kernel));
    MUC_TRY(muc_keras_integers(im, "strides|stride", im->spatial, 1, kernel, strides));
    muc_attributes_set_integers(&a, MUC_KEY_KERNEL, kernel, im->spatial);
    MUC_TRY(set_window(im, &a, x, kernel, strides, ones));
    return muc_keras_last(im, im->to, &x, 1, &a);
}

muc_status muc_keras_import_global_pool(muc_keras_import *im)
{
    static const int64_t axes[MAX_SPATIAL] = { 1, 2 };
    muc_attributes a = { .count = 0 };
    uint32_t x = muc_keras_input(im, 0);
    bool keep;

    MUC_TRY(expect_pixels(im, x));
    MUC_TRY(muc_keras_bool(im, "keepdims", false, &keep));
    muc_attributes_set_integers(&a, MUC_KEY_AXES, axes, im->spatial);
    muc_attributes_set(&a, MUC_KEY_KEEP_DIMS, keep);
    return muc_keras_last(im, im->to, &x, 1, &a);
}

/* ---- activations ---- */

static muc_status last_softmax(muc_keras_import *im, uint32_t x, int64_t axis)
{
    int64_t rank = muc_keras_rank(im, x);
    muc_attributes a = { .count = 0 };

    if (axis < -rank || axis >= rank)
        return muc_keras_refuse(im, MUC_MALFORMED, "axis %" PRId64 " of %" PRId64 " dimensions",
                                axis, rank);
    muc_attributes_set(&a, MUC_KEY_AXIS, axis < 0 ? axis + rank : axis);
    return muc_keras_last(im, MUC_OP_SOFTMAX, &x, 1, &a);
}

/* min(max(x, 0), high) */
static muc_status last_clip(muc_keras_import *im, uint32_t x, double high)
{
    uint32_t inputs[3] = { x };
    float *bounds;

    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, 2, &bounds));
    bounds[1] = (float)high;
    MUC_TRY(muc_keras_constant(im, "low", 0, NULL, &bounds[0], &inputs[1]));
    MUC_TRY(muc_keras_constant(im, "high", 0, NULL, &bounds[1], &inputs[2]));
    return muc_keras_last(im, MUC_OP_CLIP, inputs, 3, NULL);
}

muc_status muc_keras_activate(muc_keras_import *im, const char *name, uint32_t x)
{
    static const struct {
        const char *name;
        muc_op op;
    } activations[] = {
#define KERAS_ACTIVATION(name, op) { name, MUC_OP_##op },
#include "formats/keras/activations.def"
#undef KERAS_ACTIVATION
    };

    if (strcmp(name, "relu6") == 0)
        return last_clip(im, x, 6);
    for (size_t i = 0; i < MUC_COUNT(activations); i++) {
        if (strcmp(activations[i].name, name) != 0)
            continue;
        return activations[i].op == MUC_OP_SOFTMAX
                   ? last_softmax(im, x, -1)
                   : muc_keras_last(im, activations[i].op, &x, 1, NULL);
    }
    return muc_keras_refuse(im, MUC_UNSUPPORTED, "no row implements activation '%.100s'", name);
}

/* the name of the activation: a string, or Keras 3's {class_name: function, config: name} */
static muc_status activation_of(const muc_keras_import *im, const char **out)
{
    const json_t *value = muc_keras_option(im, "activation");

    if (json_is_object(value))
        value = json_object_get(value, "config");
    *out = value ? json_string_value(value) : "linear";
    return *out ? MUC_OK
                : muc_keras_refuse(im, MUC_UNSUPPORTED, "an activation that is no function's name");
}

muc_status muc_keras_activated(muc_keras_import *im, muc_op op, const uint32_t *inputs,
                               uint32_t count, const muc_attributes *a)
{
    const char *name;
    uint32_t id;

    MUC_TRY(activation_of(im, &name));
    if (strcmp(name, "linear") == 0)
        return muc_keras_last(im, op, inputs, count, a);
    MUC_TRY(muc_keras_step(im, op, "linear", inputs, count, a, &id));
    return muc_keras_activate(im, name, id);
}

muc_status muc_keras_import_activation(muc_keras_import *im)
{
    uint32_t x = muc_keras_input(im, 0);
    const char *name;

    MUC_TRY(activation_of(im, &name));
    if (strcmp(name, "linear") == 0)
        return muc_keras_last(im, MUC_OP_IDENTITY, &x, 1, NULL);
    return muc_keras_activate(im, name, x);
}

static muc_status last_leaky(muc_keras_import *im, uint32_t x, double alpha)
{
    muc_attributes a = { .count = 0 };

    muc_attributes_set_real(&a, MUC_KEY_ALPHA, alpha);
    return muc_keras_last(im, MUC_OP_LEAKY_RELU, &x, 1, &a);
}

muc_status muc_keras_import_relu(muc_keras_import *im)
{
    uint32_t x = muc_keras_input(im, 0);
    double high, slope, threshold;

    MUC_TRY(muc_keras_real(im, "max_value", -1, &high));
    MUC_TRY(muc_keras_real(im, "negative_slope", 0, &slope));
    MUC_TRY(muc_keras_real(im, "threshold|theta", 0, &threshold));
    if (threshold != 0 || (slope != 0 && high >= 0))
        return muc_keras_refuse(im, MUC_UNSUPPORTED,
                                "threshold %g, or a negative slope with a maximum", threshold);
    if (slope != 0)
        return last_leaky(im, x, slope);
    return high >= 0 ? last_clip(im, x, high) : muc_keras_last(im, im->to, &x, 1, NULL);
}

muc_status muc_keras_import_leaky_relu(muc_keras_import *im)
{
    double alpha;

    MUC_TRY(muc_keras_real(im, "negative_slope|alpha", 0.3, &alpha));
    return last_leaky(im, muc_keras_input(im, 0), alpha);
}

muc_status muc_keras_import_softmax(muc_keras_import *im)
{
    int64_t axis;

    MUC_TRY(muc_keras_integers(im, "axis", 1, -MUC_GRAPH_MAX_RANK, (const int64_t[]){ -1 }, &axis));
    return last_softmax(im, muc_keras_input(im, 0), axis);
}
