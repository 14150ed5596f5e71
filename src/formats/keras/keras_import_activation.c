/* keras_import_activation.c - activations, as layers and as options of layers. */
#include <inttypes.h>
#include <string.h>

#include "formats/keras/keras_import.h"

muc_status muc_keras_activate(muc_keras_import *im, const char *name, uint32_t x)
{
    static const struct {
        const char *name, *recipe;
        muc_op op;
    } activations[] = {
#define KERAS_ACTIVATION(name, op, recipe) { name, recipe, MUC_OP_##op },
#include "formats/keras/keras_activations.def"
#undef KERAS_ACTIVATION
    };

    if (im->weights->third && strcmp(name, "hard_sigmoid") == 0)
        name = "hard_sigmoid of Keras 3";
    for (size_t i = 0; i < MUC_COUNT(activations); i++) {
        if (strcmp(activations[i].name, name) != 0)
            continue;
        im->to = activations[i].op;
        return muc_import_format(muc_node_of(muc_keras_node(im), &x, 1, NULL), "%s",
                                 activations[i].recipe);
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
                : muc_keras_refuse(im, MUC_UNSUPPORTED,
                                   "the activation is not the name of a function");
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
    const char *name;

    MUC_TRY(activation_of(im, &name));
    return strcmp(name, "linear") == 0 ? muc_keras_cook(im, "identity 0")
                                       : muc_keras_activate(im, name, muc_keras_input(im, 0));
}

muc_status muc_keras_import_relu(muc_keras_import *im)
{
    double high, slope, threshold;

    MUC_TRY(muc_keras_real(im, "max_value", -1, &high));
    MUC_TRY(muc_keras_real(im, "negative_slope", 0, &slope));
    MUC_TRY(muc_keras_real(im, "threshold", 0, &threshold));
    if (slope < 0 || (threshold != 0 && (slope != 0 || high >= 0)))
        return muc_keras_refuse(im, MUC_UNSUPPORTED,
                                "slope %g, threshold %g and maximum %g together", slope, threshold,
                                high);
    return muc_keras_cook(im, threshold != 0           ? "thresholded_relu 0 alpha=@threshold"
                              : slope == 0 && high < 0 ? ""
                              : slope == 0             ? "clip 0 low{0} high{@max_value}"
                              : high < 0               ? "leaky_relu 0 alpha=@negative_slope"
                                         : "leaky = leaky_relu 0 alpha=@negative_slope; "
                                           "min leaky high{@max_value}");
}

/* slopes of the input's shape without the batch, 1 along shared axes */
muc_status muc_keras_import_prelu(muc_keras_import *im)
{
    uint32_t inputs[2] = { muc_keras_input(im, 0) }, rank = im->arrays[0].rank;
    int64_t dims[MUC_HDF5_MAX_RANK];

    if (rank + 1 != muc_keras_rank(im, inputs[0]))
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "the slopes have %" PRIu32 " dimensions, expected %" PRIu32, rank,
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
