/* keras_import_nn.c - Keras's convolutions, products, pools and norms. */
#include <inttypes.h>
#include <string.h>

#include "formats/keras/keras_import.h"
#include "import/sliding_window.h"

enum { MAX_SPATIAL = MUC_KERAS_MAX_SPATIAL };
static const int64_t ones[MAX_SPATIAL] = { 1, 1 };

/* ---- windows ---- */

muc_status muc_keras_pixels_of(const muc_keras_import *im, muc_keras_pixels *out)
{
    out->x = muc_keras_input(im, 0);
    MUC_TRY(muc_keras_channels(im, &out->first));
    if (muc_keras_rank(im, out->x) != im->spatial + 2)
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "the input has %" PRIu32 " dimensions, expected %" PRIu32,
                                muc_keras_rank(im, out->x), im->spatial + 2);
    out->at = out->first ? 2 : 1;
    out->channels = muc_keras_dim(im, out->x, out->first ? 1 : im->spatial + 1);
    for (uint32_t i = 0; i < im->spatial; i++)
        out->size[i] = muc_keras_dim(im, out->x, out->at + i);
    return MUC_OK;
}

static muc_status read_padding(const muc_keras_import *im, muc_padding *out)
{
    const char *padding;

    MUC_TRY(muc_keras_word(im, "padding|border_mode", "valid", &padding));
    *out = strcmp(padding, "same") == 0                         ? MUC_PADDING_SAME
           : im->spatial == 1 && strcmp(padding, "causal") == 0 ? MUC_PADDING_CAUSAL
                                                                : MUC_PADDING_VALID;
    return *out != MUC_PADDING_VALID || strcmp(padding, "valid") == 0
               ? MUC_OK
               : muc_keras_refuse(im, MUC_UNSUPPORTED, "padding '%.40s', expected valid or same",
                                  padding);
}

/* a window over the pixels as attributes; its kernel, strides and dilations are there */
static muc_status set_window(muc_keras_import *im, muc_attributes *a, const muc_keras_pixels *p,
                             muc_window *w)
{
    muc_padding padding;

    MUC_TRY(read_padding(im, &padding));
    w->spatial = im->spatial;
    for (uint32_t i = 0; i < w->spatial; i++)
        muc_window_pad(w, i, p->size[i], padding);
    muc_window_set(w, a, false, true);
    muc_attributes_set(a, MUC_KEY_CHANNELS_LAST, !p->first);
    return MUC_OK;
}

static muc_status set_convolution(muc_keras_import *im, muc_attributes *a,
                                  const muc_keras_pixels *p, const int64_t *kernel)
{
    muc_window w = { .spatial = im->spatial };

    memcpy(w.kernel, kernel, im->spatial * sizeof(*kernel));
    MUC_TRY(muc_keras_integers(im, "strides|subsample|subsample_length", im->spatial, 1, ones,
                               w.strides));
    MUC_TRY(muc_keras_integers(im, "dilation_rate|atrous_rate", im->spatial, 1, ones, w.dilations));
    return set_window(im, a, p, &w);
}

/* ---- kernels ---- */

/* A kernel as it is stored: [pixels.., in, out], of Keras 1 with channels first [out, in,
 * pixels..]. */
typedef struct stored_kernel {
    const float *data;
    int64_t size[MAX_SPATIAL], pixels, in, out;
    int64_t pixel_step, in_step, out_step; /* elements from one to the next */
    bool out_first, turned;                /* turned: the pixels are in the opposite order */
} stored_kernel;

/* array i, of a product [in, out]; Keras 1 has kernels of one dimension with a second of 1 */
static muc_status kernel_of(const muc_keras_import *im, uint32_t i, stored_kernel *out)
{
    const muc_hdf5_array *array = &im->arrays[i];
    uint32_t n = im->spatial, extra = n == 1 && array->rank == 4 && array->dims[1] == 1;
    const char *order = json_string_value(json_object_get(im->layer->config, "dim_ordering"));
    uint64_t channels[2];

    if (array->rank != n + 2 + extra || array->elements == 0 || array->elements > INT32_MAX)
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "a kernel of %" PRIu32 " dimensions and %" PRIu64
                                " elements, expected %" PRIu32 " dimensions",
                                array->rank, array->elements, n + 2);
    out->data = array->data;
    out->turned = im->weights->theano;
    out->out_first = order && strcmp(order, "th") == 0;
    out->pixels = 1;
    for (uint32_t d = 0; d < n; d++) {
        out->size[d] = (int64_t)array->dims[out->out_first ? 2 + d : d];
        out->pixels *= out->size[d];
    }
    memcpy(channels, array->dims + (out->out_first ? 0 : n + extra), sizeof(channels));
    out->in = (int64_t)channels[out->out_first];
    out->out = (int64_t)channels[!out->out_first];
    out->pixel_step = out->out_first ? 1 : out->in * out->out;
    out->in_step = out->out_first ? out->pixels : out->out;
    out->out_step = out->out_first ? out->in * out->pixels : 1;
    return MUC_OK;
}

/* as the graph has it: [out, pixels.., in], or with channels first [out, in, pixels..] */
static muc_status add_kernel(muc_keras_import *im, const char *suffix, const stored_kernel *k,
                             bool first, uint32_t *id)
{
    int64_t dims[MAX_SPATIAL + 2], n = im->spatial;
    float *data;

    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, (size_t)(k->pixels * k->in * k->out), &data));
    for (int64_t o = 0; o < k->out; o++)
        for (int64_t p = 0; p < k->pixels; p++)
            for (int64_t i = 0; i < k->in; i++) {
                int64_t at = k->turned ? k->pixels - 1 - p : p;
                int64_t to =
                    first ? (o * k->in + i) * k->pixels + p : (o * k->pixels + p) * k->in + i;

                data[to] = k->data[at * k->pixel_step + i * k->in_step + o * k->out_step];
            }
    dims[0] = k->out;
    dims[first ? 1 : n + 1] = k->in;
    memcpy(dims + (first ? 2 : 1), k->size, (size_t)n * sizeof(*dims));
    return muc_keras_constant(im, suffix, im->spatial + 2, dims, data, id);
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

muc_status muc_keras_import_conv(muc_keras_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t inputs[3], count = 2;
    stored_kernel kernel;
    int64_t groups;
    muc_keras_pixels p;

    MUC_TRY(muc_keras_pixels_of(im, &p));
    MUC_TRY(kernel_of(im, 0, &kernel));
    MUC_TRY(muc_keras_integers(im, "groups", 1, 1, ones, &groups));
    inputs[0] = p.x;
    MUC_TRY(add_kernel(im, "kernel", &kernel, p.first, &inputs[1]));
    MUC_TRY(add_bias(im, 1, kernel.out, inputs, &count));
    MUC_TRY(set_convolution(im, &a, &p, kernel.size));
    if (groups > 1)
        muc_attributes_set(&a, MUC_KEY_GROUPS, groups);
    return muc_keras_activated(im, im->to, inputs, count, &a);
}

/* array 0, [pixels.., in, multiplier], as weights of in * multiplier outputs and in groups */
static muc_status depthwise_weights(muc_keras_import *im, muc_attributes *a,
                                    const muc_keras_pixels *p, uint32_t *weights, int64_t *outputs)
{
    stored_kernel kernel;

    MUC_TRY(kernel_of(im, 0, &kernel));
    if (kernel.in != p->channels || kernel.out_first)
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "the kernel is for %" PRId64 " channels, the input has %" PRId64,
                                kernel.in, p->channels);
    muc_attributes_set(a, MUC_KEY_GROUPS, kernel.in);
    *outputs = kernel.out *= kernel.in;
    kernel.in = 1;
    kernel.turned = false; /* which is of plain convolutions alone */
    MUC_TRY(add_kernel(im, "depthwise_kernel", &kernel, p->first, weights));
    return set_convolution(im, a, p, kernel.size);
}

muc_status muc_keras_import_depthwise(muc_keras_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t inputs[3], count = 2;
    int64_t outputs;
    muc_keras_pixels p;

    MUC_TRY(muc_keras_pixels_of(im, &p));
    inputs[0] = p.x;
    MUC_TRY(depthwise_weights(im, &a, &p, &inputs[1], &outputs));
    MUC_TRY(add_bias(im, 1, outputs, inputs, &count));
    return muc_keras_activated(im, im->to, inputs, count, &a);
}

muc_status muc_keras_import_separable(muc_keras_import *im)
{
    muc_attributes a = { .count = 0 }, point = { .count = 0 };
    uint32_t inputs[3], count = 2;
    stored_kernel kernel;
    int64_t between;
    muc_keras_pixels p;

    MUC_TRY(muc_keras_pixels_of(im, &p));
    inputs[0] = p.x;
    MUC_TRY(depthwise_weights(im, &a, &p, &inputs[1], &between));
    MUC_TRY(muc_keras_step(im, im->to, "depthwise", inputs, 2, &a, &inputs[0]));
    MUC_TRY(kernel_of(im, 1, &kernel));
    if (kernel.pixels != 1 || kernel.in != between)
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "a pointwise kernel of %" PRId64 " pixels and %" PRId64
                                " channels, expected 1 and %" PRId64,
                                kernel.pixels, kernel.in, between);
    MUC_TRY(add_kernel(im, "pointwise_kernel", &kernel, p.first, &inputs[1]));
    MUC_TRY(add_bias(im, 2, kernel.out, inputs, &count));
    muc_attributes_set(&point, MUC_KEY_CHANNELS_LAST, !p.first);
    return muc_keras_activated(im, im->to, inputs, count, &point);
}

/* kernel [pixels.., out, in]; as the graph has it [out, pixels.., in], or with channels first [in,
 * out, pixels..] */
static muc_status add_transposed(muc_keras_import *im, const stored_kernel *k, bool first,
                                 uint32_t *id)
{
    stored_kernel exchanged = *k;

    exchanged.in = k->out;
    exchanged.out = k->in;
    exchanged.in_step = k->out_step;
    exchanged.out_step = k->in_step;
    return add_kernel(im, "kernel", first ? k : &exchanged, first, id);
}

/* The gradient of a convolution: "same" gives size * stride pixels, "valid" all that a kernel
 * reaches, and no fewer. */
muc_status muc_keras_import_conv_transpose(muc_keras_import *im)
{
    muc_attributes a = { .count = 0 };
    int64_t more[MAX_SPATIAL] = { 0 }, groups;
    uint32_t inputs[3], count = 2;
    muc_window w = { .spatial = im->spatial };
    stored_kernel kernel;
    muc_padding padding;
    muc_keras_pixels p;

    MUC_TRY(muc_keras_pixels_of(im, &p));
    MUC_TRY(kernel_of(im, 0, &kernel));
    MUC_TRY(read_padding(im, &padding));
    MUC_TRY(muc_keras_integers(im, "strides|subsample", im->spatial, 1, ones, w.strides));
    MUC_TRY(muc_keras_integers(im, "dilation_rate", im->spatial, 1, ones, w.dilations));
    MUC_TRY(muc_keras_integers(im, "groups", 1, 1, ones, &groups));
    if (muc_keras_option(im, "output_padding") || w.dilations[0] != 1 || w.dilations[1] != 1 ||
        groups != 1 || kernel.out_first)
        return muc_keras_refuse(
            im, MUC_UNSUPPORTED,
            "output_padding, dilation, groups and kernels of Keras 1 are not read");
    for (uint32_t i = 0; i < im->spatial; i++) {
        int64_t rest = kernel.size[i] - w.strides[i];

        muc_window_share(&w, i, padding == MUC_PADDING_SAME ? rest : 0, padding);
        more[i] = rest < 0 ? -rest : 0;
    }
    inputs[0] = p.x;
    MUC_TRY(add_transposed(im, &kernel, p.first, &inputs[1]));
    MUC_TRY(add_bias(im, 1, kernel.in, inputs, &count));
    muc_window_set(&w, &a, false, true);
    muc_attributes_set_integers(&a, MUC_KEY_OUTPUT_PADDING, more, im->spatial);
    muc_attributes_set(&a, MUC_KEY_CHANNELS_LAST, !p.first);
    return muc_keras_activated(im, im->to, inputs, count, &a);
}

/* ---- products and norms ---- */

muc_status muc_keras_import_dense(muc_keras_import *im)
{
    uint32_t inputs[3] = { muc_keras_input(im, 0) }, count = 2;
    stored_kernel kernel;

    MUC_TRY(kernel_of(im, 0, &kernel));
    MUC_TRY(add_kernel(im, "kernel", &kernel, false, &inputs[1]));
    MUC_TRY(add_bias(im, 1, kernel.out, inputs, &count));
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

/* over the channels of a batch, or the last dimension of a layer */
muc_status muc_keras_import_norm(muc_keras_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t inputs[5] = { muc_keras_input(im, 0) }, next = 0, rank = muc_keras_rank(im, inputs[0]);
    bool is_batch = im->to == MUC_OP_BATCH_NORM, scale, center;
    int64_t channels, axis, mode;
    double epsilon;

    MUC_TRY(muc_keras_integers(im, "axis", 1, -1, (const int64_t[]){ -1 }, &axis));
    MUC_TRY(muc_keras_integers(im, "mode", 1, 0, (const int64_t[]){ 0 }, &mode));
    axis = axis < 0 ? rank - 1 : axis;
    if (((axis != 1 || !is_batch) && axis != (int64_t)rank - 1) || mode == 1)
        return muc_keras_refuse(im, MUC_UNSUPPORTED,
                                "axis %" PRId64 " and mode %" PRId64
                                ", expected %sthe last axis, and mode 0 or 2",
                                axis, mode, is_batch ? "axis 1 or " : "");
    channels = muc_keras_dim(im, inputs[0], (uint32_t)axis);
    MUC_TRY(muc_keras_real(im, "epsilon", 1e-3, &epsilon));
    MUC_TRY(muc_keras_bool(im, "scale", true, &scale));
    MUC_TRY(muc_keras_bool(im, "center", true, &center));
    MUC_TRY(add_vector(im, "gamma", scale, 1, channels, &next, &inputs[1]));
    MUC_TRY(add_vector(im, "beta", center, 0, channels, &next, &inputs[2]));
    if (is_batch) {
        MUC_TRY(add_vector(im, "moving_mean", true, 0, channels, &next, &inputs[3]));
        MUC_TRY(add_vector(im, "moving_variance", true, 0, channels, &next, &inputs[4]));
    }
    if (next != im->array_count)
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "there are more arrays of weights than scale and center ask for");
    muc_attributes_set_real(&a, MUC_KEY_EPSILON, epsilon);
    if (!is_batch)
        muc_attributes_set(&a, MUC_KEY_AXIS, axis);
    else if (axis > 1)
        muc_attributes_set(&a, MUC_KEY_CHANNELS_LAST, 1);
    return muc_keras_last(im, im->to, inputs, is_batch ? 5 : 3, &a);
}

/* ---- pools ---- */

muc_status muc_keras_import_pool(muc_keras_import *im)
{
    static const int64_t twos[MAX_SPATIAL] = { 2, 2 };
    muc_attributes a = { .count = 0 };
    muc_window w = { .dilations = { 1, 1 } };
    muc_keras_pixels p;

    MUC_TRY(muc_keras_pixels_of(im, &p));
    MUC_TRY(muc_keras_integers(im, "pool_size|pool_length", im->spatial, 1, twos, w.kernel));
    MUC_TRY(muc_keras_integers(im, "strides|stride", im->spatial, 1, w.kernel, w.strides));
    muc_attributes_set_integers(&a, MUC_KEY_KERNEL, w.kernel, im->spatial);
    MUC_TRY(set_window(im, &a, &p, &w));
    return muc_keras_last(im, im->to, &p.x, 1, &a);
}

muc_status muc_keras_import_global_pool(muc_keras_import *im)
{
    muc_keras_pixels p;

    MUC_TRY(muc_keras_pixels_of(im, &p));
    return muc_keras_cook(im, p.first ? ". 0 axes=2.. keep_dims=@keepdims:0"
                                      : ". 0 axes=1..-1 keep_dims=@keepdims:0");
}
