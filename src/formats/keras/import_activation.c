/* import_activation.c - activations, as layers and as options of layers. */
#include <inttypes.h>
#include <string.h>

#include "formats/keras/import.h"

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

    MUC_TRY(muc_keras_number(im, "low", 0, &inputs[1]));
    MUC_TRY(muc_keras_number(im, "high", high, &inputs[2]));
    return muc_keras_last(im, MUC_OP_CLIP, inputs, 3, NULL);
}

static muc_status last_with_alpha(muc_keras_import *im, muc_op op, uint32_t x, double alpha)
{
    muc_attributes a = { .count = 0 };

    muc_attributes_set_real(&a, MUC_KEY_ALPHA, alpha);
    return muc_keras_last(im, op, &x, 1, &a);
}

/* max(0, min(1, alpha x + 0.5)), of another slope since Keras 3 */
static muc_status last_hard_sigmoid(muc_keras_import *im, uint32_t x)
{
    muc_attributes a = { .count = 0 };

    muc_attributes_set_real(&a, MUC_KEY_ALPHA, im->weights->third ? 1.0 / 6 : 0.2);
    muc_attributes_set_real(&a, MUC_KEY_BETA, 0.5);
    return muc_keras_last(im, MUC_OP_HARD_SIGMOID, &x, 1, &a);
}

static muc_status last_selu(muc_keras_import *im, uint32_t x)
{
    muc_attributes a = { .count = 0 };

    muc_attributes_set_real(&a, MUC_KEY_ALPHA, 1.6732632423543772);
    muc_attributes_set_real(&a, MUC_KEY_GAMMA, 1.0507009873554805);
    return muc_keras_last(im, MUC_OP_SELU, &x, 1, &a);
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
    if (strcmp(name, "hard_sigmoid") == 0)
        return last_hard_sigmoid(im, x);
    if (strcmp(name, "elu") == 0)
        return last_with_alpha(im, MUC_OP_ELU, x, 1);
    if (strcmp(name, "leaky_relu") == 0)
        return last_with_alpha(im, MUC_OP_LEAKY_RELU, x, 0.2);
    if (strcmp(name, "selu") == 0)
        return last_selu(im, x);
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

muc_status muc_keras_import_relu(muc_keras_import *im)
{
    uint32_t pair[2] = { muc_keras_input(im, 0) };
    double high, slope, threshold;

    MUC_TRY(muc_keras_real(im, "max_value", -1, &high));
    MUC_TRY(muc_keras_real(im, "negative_slope", 0, &slope));
    MUC_TRY(muc_keras_real(im, "threshold", 0, &threshold));
    if (slope < 0 || (threshold != 0 && (slope != 0 || high >= 0)))
        return muc_keras_refuse(im, MUC_UNSUPPORTED,
                                "slope %g, threshold %g and maximum %g together", slope, threshold,
                                high);
    if (threshold != 0)
        return last_with_alpha(im, MUC_OP_THRESHOLDED_RELU, pair[0], threshold);
    if (slope == 0)
        return high >= 0 ? last_clip(im, pair[0], high) : muc_keras_last(im, im->to, pair, 1, NULL);
    if (high < 0)
        return last_with_alpha(im, MUC_OP_LEAKY_RELU, pair[0], slope);
    {
        muc_attributes a = { .count = 0 };

        muc_attributes_set_real(&a, MUC_KEY_ALPHA, slope);
        MUC_TRY(muc_keras_step(im, MUC_OP_LEAKY_RELU, "leaky", pair, 1, &a, &pair[0]));
    }
    MUC_TRY(muc_keras_number(im, "high", high, &pair[1]));
    return muc_keras_last(im, MUC_OP_MIN, pair, 2, NULL);
}

/* LeakyReLU, ELU and ThresholdedReLU */
muc_status muc_keras_import_alpha(muc_keras_import *im)
{
    double alpha;

    MUC_TRY(muc_keras_real(im, "negative_slope|alpha|theta", im->to == MUC_OP_LEAKY_RELU ? 0.3 : 1,
                           &alpha));
    return last_with_alpha(im, im->to, muc_keras_input(im, 0), alpha);
}

/* slopes of the input's shape without the batch, 1 along shared axes */
muc_status muc_keras_import_prelu(muc_keras_import *im)
{
    uint32_t inputs[2] = { muc_keras_input(im, 0) }, rank = im->arrays[0].rank;
    int64_t dims[MUC_HDF5_MAX_RANK];

    if (rank + 1 != muc_keras_rank(im, inputs[0]))
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "slopes of %" PRIu32 " dimensions, expected %" PRIu32, rank,
                                muc_keras_rank(im, inputs[0]) - 1);
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = (int64_t)im->arrays[0].dims[i];
        if (dims[i] != 1 && dims[i] != muc_keras_dim(im, inputs[0], i + 1))
            return muc_keras_refuse(im, MUC_MALFORMED,
                                    "dimension %" PRIu32 " of the slopes is %" PRId64 ", expected "
                                    "1 or %" PRId64,
                                    i, dims[i], muc_keras_dim(im, inputs[0], i + 1));
    }
    MUC_TRY(muc_keras_constant(im, "alpha", rank, dims, im->arrays[0].data, &inputs[1]));
    return muc_keras_last(im, im->to, inputs, 2, NULL);
}

muc_status muc_keras_import_softmax(muc_keras_import *im)
{
    int64_t axis;

    MUC_TRY(muc_keras_integers(im, "axis", 1, -MUC_GRAPH_MAX_RANK, (const int64_t[]){ -1 }, &axis));
    return last_softmax(im, muc_keras_input(im, 0), axis);
}
