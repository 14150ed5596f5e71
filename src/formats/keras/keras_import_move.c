/* keras_import_move.c - Keras's layers that move elements, and those of several inputs. */
#include <inttypes.h>
#include <string.h>

#include "formats/keras/keras_import.h"

enum { MAX_SIDE = 1 << 16 };

muc_status muc_keras_import_nothing(muc_keras_import *im)
{
    muc_keras_same(im, muc_keras_input(im, 0));
    return MUC_OK;
}

/* ---- shapes ---- */

/* elements of x without its batch; its dimensions are below 2^32, and the graph checked the rest */
static int64_t elements_of(const muc_keras_import *im, uint32_t x)
{
    int64_t elements = 1;

    for (uint32_t i = 1; i < muc_keras_rank(im, x); i++)
        if (__builtin_mul_overflow(elements, muc_keras_dim(im, x, i), &elements))
            return -1;
    return elements;
}

/* in the order of channels last, even if they come first; in Keras 1 as they come */
muc_status muc_keras_import_flatten(muc_keras_import *im)
{
    bool first;

    MUC_TRY(muc_keras_channels(im, &first));
    return muc_keras_cook(
        im, first && muc_keras_rank(im, muc_keras_input(im, 0)) > 2
                ? "channels_last = transpose 0 perm=0,2..,1; . channels_last shape=in0.0,*in0.1.."
                : ". 0 shape=in0.0,*in0.1..");
}

/* dims count from 1, for the batch stays */
muc_status muc_keras_import_permute(muc_keras_import *im)
{
    uint32_t rank = muc_keras_rank(im, muc_keras_input(im, 0));
    int64_t perm[MUC_GRAPH_MAX_RANK] = { 0 };

    MUC_TRY(muc_keras_integers(im, "dims", rank - 1, 1, NULL, perm + 1));
    return muc_keras_cook(im, ". 0 perm=%s", MUC_LIST(perm, rank));
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
    return muc_keras_cook(im, ". 0 shape=%s", MUC_LIST(dims, rank));
}

/* n, [n of height, n of width], or [before, after] of each; of one dimension n or [before, after];
 * of Keras 1 [before, after, before, after] as well */
static muc_status read_sides(const muc_keras_import *im, const char *key, int64_t sides[][2])
{
    const json_t *value = muc_keras_option(im, key);
    bool flat = im->spatial == 2 && json_array_size(value) == 4;

    if (!json_is_integer(value) && json_array_size(value) != 2 && !flat)
        return muc_keras_refuse(im, MUC_MALFORMED, "\"%s\" is neither a number nor a pair", key);
    for (uint32_t i = 0; i < 2 * im->spatial; i++) {
        uint32_t d = i / 2, side = i % 2;
        const json_t *item = json_is_integer(value) ? value
                             : flat                 ? json_array_get(value, i)
                             : im->spatial == 1     ? json_array_get(value, side)
                                                    : json_array_get(value, d);

        if (json_is_array(item))
            item = json_array_get(item, side);
        sides[d][side] = json_integer_value(item);
        if (!json_is_integer(item) || sides[d][side] < 0 || sides[d][side] > MAX_SIDE)
            return muc_keras_refuse(im, MUC_MALFORMED, "\"%s\" is not of 0 to %d", key, MAX_SIDE);
    }
    return MUC_OK;
}

muc_status muc_keras_import_zero_padding(muc_keras_import *im)
{
    uint32_t rank = im->spatial + 2;
    muc_keras_pixels p;
    int64_t pads[2 * (MUC_GRAPH_MAX_RANK)] = { 0 }, sides[2][2];

    MUC_TRY(muc_keras_pixels_of(im, &p));
    MUC_TRY(read_sides(im, "padding", sides));
    for (uint32_t d = 0; d < im->spatial; d++) {
        pads[p.at + d] = sides[d][0];
        pads[rank + p.at + d] = sides[d][1];
    }
    return muc_keras_cook(im, ". 0 pads=%s", MUC_LIST(pads, 2 * rank));
}

muc_status muc_keras_import_cropping(muc_keras_import *im)
{
    muc_keras_pixels p;
    int64_t sides[2][2], axes[2], starts[2], sizes[2];

    MUC_TRY(muc_keras_pixels_of(im, &p));
    MUC_TRY(read_sides(im, "cropping", sides));
    for (uint32_t d = 0; d < im->spatial; d++) {
        axes[d] = p.at + d;
        sizes[d] = p.size[d] - sides[d][0] - sides[d][1];
        starts[d] = sides[d][0];
        if (sizes[d] < 1)
            return muc_keras_refuse(im, MUC_MALFORMED, "nothing is left of dimension %" PRIu32,
                                    p.at + d);
    }
    return muc_keras_cook(im, ". 0 axes=%s sizes=%s starts=%s", MUC_LIST(axes, im->spatial),
                          MUC_LIST(sizes, im->spatial), MUC_LIST(starts, im->spatial));
}

muc_status muc_keras_import_up_sampling(muc_keras_import *im)
{
    muc_keras_pixels p;
    int64_t size[2], dims[4];
    const char *mode;
    bool linear;

    MUC_TRY(muc_keras_pixels_of(im, &p));
    MUC_TRY(muc_keras_word(im, "interpolation", "nearest", &mode));
    MUC_TRY(muc_keras_integers(im, "size", 2, 1, (const int64_t[]){ 2, 2 }, size));
    linear = strcmp(mode, "bilinear") == 0;
    if (!linear && strcmp(mode, "nearest") != 0)
        return muc_keras_refuse(im, MUC_UNSUPPORTED,
                                "interpolation '%.40s', expected nearest or bilinear", mode);
    for (uint32_t i = 0; i < 4; i++)
        dims[i] = muc_keras_dim(im, p.x, i) * (i >= p.at && i < p.at + 2 ? size[i - p.at] : 1);
    if (dims[p.at] > MAX_SIDE || dims[p.at + 1] > MAX_SIDE)
        return muc_keras_refuse(im, MUC_UNSUPPORTED,
                                "the result has more than 65536 rows or columns");
    return muc_keras_cook(im, ". 0 sizes=%s mode=%s", MUC_LIST(dims, 4),
                          linear ? "linear coordinates=half_pixel"
                                 : "nearest coordinates=asymmetric rounding=floor");
}

/* ---- several inputs ---- */

/* ((a op b) op c) .. */
static muc_status import_chain(muc_keras_import *im)
{
    uint32_t pair[2] = { muc_keras_input(im, 0), 0 }, last = im->call->input_count - 1;

    for (uint32_t i = 1; i < last; i++) {
        pair[1] = muc_keras_input(im, i);
        MUC_TRY(muc_keras_step(im, im->to, "part", pair, 2, NULL, &pair[0]));
    }
    pair[1] = muc_keras_input(im, last);
    return muc_keras_last(im, im->to, pair, 2, NULL);
}

/* the class of layers that does the same as one whose option says this word */
static const char *find_heir(const char *option, const char *word)
{
    static const struct {
        const char *option, *word, *name;
    } heirs[] = {
#define KERAS_LAYER(...)
#define KERAS_HEIR(option, word, name) { #option, word, #name },
#include "formats/keras/keras_layers.def"
#undef KERAS_LAYER
    };

    for (size_t i = 0; i < MUC_COUNT(heirs); i++)
        if (strcmp(heirs[i].option, option) == 0 && strcmp(heirs[i].word, word) == 0)
            return heirs[i].name;
    return NULL;
}

muc_status muc_keras_import_merge(muc_keras_import *im)
{
    const char *mode, *found;

    MUC_TRY(muc_keras_word(im, "mode", "", &mode));
    found = find_heir("mode", mode);
    return found ? muc_keras_import_as(im, found)
                 : muc_keras_refuse(im, MUC_UNSUPPORTED, "mode '%.40s'", mode);
}

/* a number among a call's arguments, and whether it comes first: of Keras 2 the keyword y */
static const json_t *number_of(const muc_keras_import *im, bool *first)
{
    const json_t *node = im->call->arguments, *args = json_object_get(node, "args");
    const json_t *given =
        json_array_get(json_is_array(json_array_get(node, 0)) ? json_array_get(node, 0) : node, 3);

    *first = json_is_number(json_array_get(args, 0));
    if (args)
        return json_array_get(args, *first ? 0 : 1);
    return json_object_get(given, "y");
}

/* two tensors, or a tensor and a number */
muc_status muc_keras_import_arithmetic(muc_keras_import *im)
{
    uint32_t pair[2], number;
    const json_t *value;
    const char *suffix;
    bool first;

    if (im->call->input_count != 1)
        return import_chain(im);
    value = number_of(im, &first);
    if (!json_is_number(value))
        return muc_keras_refuse(im, MUC_UNSUPPORTED,
                                "operands other than two tensors, or a tensor "
                                "and a number");
    /* another call of the layer may have another number */
    MUC_TRY(muc_arena_format(im->ctx, im->arena, &suffix, "number%" PRIu32, im->call->node));
    MUC_TRY(muc_keras_number(im, suffix, json_number_value(value), &number));
    pair[first] = muc_keras_input(im, 0);
    pair[!first] = number;
    return muc_keras_last(im, im->to, pair, 2, NULL);
}

muc_status muc_keras_import_function(muc_keras_import *im)
{
    const char *name, *found;

    MUC_TRY(muc_keras_word(im, "function", "", &name));
    if (strncmp(name, "nn.", 3) == 0)
        return muc_keras_activate(im, name, muc_keras_input(im, 0));
    found = find_heir("function", name);
    return found ? muc_keras_import_as(im, found)
                 : muc_keras_refuse(im, MUC_UNSUPPORTED, "function '%.100s'", name);
}
