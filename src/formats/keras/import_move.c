/* import_move.c - Keras's layers that move elements, and those of several inputs. */
#include <inttypes.h>
#include <string.h>

#include "formats/keras/import.h"

enum { MAX_SIDE = 1 << 16 };

muc_status muc_keras_import_nothing(muc_keras_import *im)
{
    muc_keras_same(im, muc_keras_input(im, 0));
    return MUC_OK;
}

/* ---- shapes ---- */

static muc_status last_reshape(muc_keras_import *im, uint32_t x, const int64_t *dims, uint32_t rank)
{
    muc_attributes a = { .count = 0 };

    muc_attributes_set_exprs(&a, im->graph, MUC_KEY_SHAPE, dims, rank);
    return muc_keras_last(im, im->to, &x, 1, &a);
}

/* elements of x without its batch; its dimensions are below 2^32, and the graph checked the rest */
static int64_t elements_of(const muc_keras_import *im, uint32_t x)
{
    int64_t elements = 1;

    for (uint32_t i = 1; i < muc_keras_rank(im, x); i++)
        if (__builtin_mul_overflow(elements, muc_keras_dim(im, x, i), &elements))
            return -1;
    return elements;
}

muc_status muc_keras_import_flatten(muc_keras_import *im)
{
    uint32_t x = muc_keras_input(im, 0);
    int64_t dims[2] = { muc_keras_dim(im, x, 0), elements_of(im, x) };

    MUC_TRY(muc_keras_channels_last(im));
    if (dims[1] < 1 || dims[1] > INT32_MAX)
        return muc_keras_refuse(im, MUC_UNSUPPORTED, "more than 2^31 - 1 elements");
    return last_reshape(im, x, dims, 2);
}

muc_status muc_keras_import_reshape(muc_keras_import *im)
{
    const json_t *shape = muc_keras_option(im, "target_shape");
    uint32_t x = muc_keras_input(im, 0), rank = 1 + (uint32_t)json_array_size(shape), open = 0;
    int64_t dims[MUC_GRAPH_MAX_RANK], all = elements_of(im, x), known = 1;

    if (!json_is_array(shape) || json_array_size(shape) >= MUC_GRAPH_MAX_RANK)
        return muc_keras_refuse(im, MUC_MALFORMED, "\"target_shape\" is not a list of up to 7");
    dims[0] = muc_keras_dim(im, x, 0);
    for (uint32_t i = 1; i < rank; i++) {
        dims[i] = json_integer_value(json_array_get(shape, i - 1));
        if (dims[i] == -1 && open == 0)
            open = i;
        else if (dims[i] < 1 || __builtin_mul_overflow(known, dims[i], &known))
            return muc_keras_refuse(im, MUC_MALFORMED, "\"target_shape\" has %" PRId64, dims[i]);
    }
    if (all < 1 || all > INT32_MAX || (open ? all % known : all - known) != 0)
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "\"target_shape\" of %" PRId64 " elements, the input has %" PRId64,
                                known, all);
    if (open)
        dims[open] = all / known;
    return last_reshape(im, x, dims, rank);
}

/* n, [n of height, n of width], or [before, after] of each; of one dimension n or [before, after]
 */
muc_status muc_keras_import_zero_padding(muc_keras_import *im)
{
    const json_t *padding = muc_keras_option(im, "padding");
    uint32_t x = muc_keras_input(im, 0), rank = im->spatial + 2;
    int64_t pads[2 * (MUC_GRAPH_MAX_RANK)] = { 0 };
    muc_attributes a = { .count = 0 };

    MUC_TRY(muc_keras_channels_last(im));
    if (muc_keras_rank(im, x) != rank)
        return muc_keras_refuse(im, MUC_MALFORMED,
                                "an input of %" PRIu32 " dimensions, expected %" PRIu32,
                                muc_keras_rank(im, x), rank);
    if (!json_is_integer(padding) && json_array_size(padding) != 2)
        return muc_keras_refuse(im, MUC_MALFORMED, "\"padding\" is no number and no pair");
    for (uint32_t i = 0; i < 2 * im->spatial; i++) {
        uint32_t d = i / 2, side = i % 2;
        const json_t *item = json_is_integer(padding) ? padding
                             : im->spatial == 1       ? json_array_get(padding, side)
                                                      : json_array_get(padding, d);
        int64_t *at = &pads[side * rank + 1 + d];

        if (json_is_array(item))
            item = json_array_get(item, side);
        *at = json_integer_value(item);
        if (!json_is_integer(item) || *at < 0 || *at > MAX_SIDE)
            return muc_keras_refuse(im, MUC_MALFORMED, "\"padding\" is not of 0 to 65536");
    }
    muc_attributes_set_integers(&a, MUC_KEY_PADS, pads, 2 * rank);
    return muc_keras_last(im, im->to, &x, 1, &a);
}

muc_status muc_keras_import_up_sampling(muc_keras_import *im)
{
    uint32_t x = muc_keras_input(im, 0);
    muc_attributes a = { .count = 0 };
    int64_t size[2], dims[4];
    const char *mode;
    bool linear;

    MUC_TRY(muc_keras_channels_last(im));
    MUC_TRY(muc_keras_word(im, "interpolation", "nearest", &mode));
    MUC_TRY(muc_keras_integers(im, "size", 2, 1, (const int64_t[]){ 2, 2 }, size));
    linear = strcmp(mode, "bilinear") == 0;
    if (!linear && strcmp(mode, "nearest") != 0)
        return muc_keras_refuse(im, MUC_UNSUPPORTED,
                                "interpolation '%.40s', expected nearest or bilinear", mode);
    if (muc_keras_rank(im, x) != 4)
        return muc_keras_refuse(im, MUC_MALFORMED, "an input of %" PRIu32 " dimensions, expected 4",
                                muc_keras_rank(im, x));
    for (uint32_t i = 0; i < 4; i++)
        dims[i] = muc_keras_dim(im, x, i) * (i == 1 || i == 2 ? size[i - 1] : 1);
    if (dims[1] > MAX_SIDE || dims[2] > MAX_SIDE)
        return muc_keras_refuse(im, MUC_UNSUPPORTED, "a result of more than 65536 rows or columns");
    muc_attributes_set_exprs(&a, im->graph, MUC_KEY_SIZES, dims, 4);
    muc_attributes_set(&a, MUC_KEY_MODE, linear ? MUC_WORD_LINEAR : MUC_WORD_NEAREST);
    muc_attributes_set(&a, MUC_KEY_COORDINATES, linear ? MUC_WORD_HALF_PIXEL : MUC_WORD_ASYMMETRIC);
    if (!linear)
        muc_attributes_set(&a, MUC_KEY_ROUNDING, MUC_WORD_FLOOR);
    return muc_keras_last(im, im->to, &x, 1, &a);
}

/* ---- several inputs ---- */

/* ((a op b) op c) .. */
muc_status muc_keras_import_chain(muc_keras_import *im)
{
    uint32_t pair[2] = { muc_keras_input(im, 0), 0 }, last = im->call->input_count - 1;

    for (uint32_t i = 1; i < last; i++) {
        pair[1] = muc_keras_input(im, i);
        MUC_TRY(muc_keras_step(im, im->to, "part", pair, 2, NULL, &pair[0]));
    }
    pair[1] = muc_keras_input(im, last);
    return muc_keras_last(im, im->to, pair, 2, NULL);
}

/* functions of TensorFlow that a model of Keras 2 calls as if they were layers */
muc_status muc_keras_import_function(muc_keras_import *im)
{
    const char *name;

    MUC_TRY(muc_keras_word(im, "function", "", &name));
    if (strcmp(name, "__operators__.add") != 0 && strcmp(name, "math.add") != 0)
        return muc_keras_refuse(im, MUC_UNSUPPORTED, "function '%.100s', expected an addition",
                                name);
    return muc_keras_import_chain(im);
}

muc_status muc_keras_import_concatenate(muc_keras_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t *inputs, count = im->call->input_count;
    int64_t axis, rank = muc_keras_rank(im, muc_keras_input(im, 0));

    MUC_TRY(muc_keras_integers(im, "axis|concat_axis", 1, -rank, (const int64_t[]){ -1 }, &axis));
    if (axis >= rank)
        return muc_keras_refuse(im, MUC_MALFORMED, "axis %" PRId64 " of %" PRId64 " dimensions",
                                axis, rank);
    MUC_TRY(MUC_ARENA_NEW(im->ctx, im->arena, count, &inputs));
    for (uint32_t i = 0; i < count; i++)
        inputs[i] = muc_keras_input(im, i);
    muc_attributes_set(&a, MUC_KEY_AXIS, axis < 0 ? axis + rank : axis);
    return muc_keras_last(im, im->to, inputs, count, &a);
}
