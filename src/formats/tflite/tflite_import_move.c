/* tflite_import_move.c - TFLite's operators that move elements about. */
#include <inttypes.h>
#include <string.h>

#include "formats/tflite/tflite_import.h"

enum { MAX_RANK = MUC_GRAPH_MAX_RANK, MOST_INPUTS = 1024 };

/* the operator's node, of one output and of input 0, whose scale stays */
static muc_status move(muc_tflite_import *im, uint32_t input, const muc_attributes *a)
{
    MUC_TRY(muc_tflite_same_scale(im, muc_tflite_in(im, 0), muc_tflite_out(im, 0)));
    return muc_tflite_last(im, im->to, &input, 1, a);
}

muc_status muc_tflite_import_mirror_pad(muc_tflite_import *im)
{
    return muc_tflite_option(im, "mode") != 0
               ? muc_tflite_import_symmetric_pad(im)
               : muc_tflite_cook(im, ". 0 same0 pads=pairs#1 mode=reflect");
}

/* ---- joining and splitting ---- */

muc_status muc_tflite_scaled_input(muc_tflite_import *im, uint32_t i, uint32_t *id)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, i), *out = muc_tflite_out(im, 0);
    muc_attributes a = { .count = 0 };

    if (!x)
        return muc_tflite_refuse(im, MUC_MALFORMED, "input %" PRIu32 " is absent", i);
    MUC_TRY(muc_tflite_input(im, i, id));
    if (!muc_tflite_is_quantized(x) || !muc_tflite_is_quantized(out) ||
        (x->quantization.scales[0] == out->quantization.scales[0] &&
         x->quantization.zero_points[0] == out->quantization.zero_points[0]))
        return MUC_OK;
    muc_attributes_set(&a, MUC_KEY_TO, out->dtype);
    return muc_tflite_step(im, MUC_OP_QUANTIZE, "scaled", id, 1, &a, out, id);
}

muc_status muc_tflite_import_concatenation(muc_tflite_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t inputs[MOST_INPUTS];
    int64_t axis;

    if (muc_tflite_option(im, "activation") != 0)
        return muc_tflite_refuse(im, MUC_UNSUPPORTED, "a fused activation");
    MUC_TRY(muc_tflite_axis(im, muc_tflite_option(im, "axis"), muc_tflite_out(im, 0)->rank, &axis));
    for (uint32_t i = 0; i < im->op->input_count; i++)
        MUC_TRY(muc_tflite_scaled_input(im, i, &inputs[i]));
    muc_attributes_set(&a, MUC_KEY_AXIS, axis);
    return muc_tflite_last(im, im->to, inputs, im->op->input_count, &a);
}

/* x with another dimension, of one element */
static muc_status put_axis(muc_tflite_import *im, const muc_tflite_tensor *x, int64_t axis,
                           uint32_t *id)
{
    muc_attributes a = { .count = 0 };
    int64_t dims[MAX_RANK];

    for (uint32_t i = 0; i <= x->rank; i++)
        dims[i] = i == axis ? 1 : x->dims[i > axis ? i - 1 : i];
    muc_attributes_set_sizes(&a, im->graph, MUC_KEY_SHAPE, dims, x->rank + 1);
    return muc_tflite_step(im, MUC_OP_RESHAPE, "row", id, 1, &a, x, id);
}

muc_status muc_tflite_import_pack(muc_tflite_import *im)
{
    muc_attributes a = { .count = 0 };
    uint32_t inputs[MOST_INPUTS];
    int64_t axis;

    MUC_TRY(muc_tflite_axis(im, muc_tflite_option(im, "axis"), muc_tflite_out(im, 0)->rank, &axis));
    for (uint32_t i = 0; i < im->op->input_count; i++) {
        const muc_tflite_tensor *x = muc_tflite_in(im, i);

        if (!x || x->rank + 1 > MAX_RANK)
            return muc_tflite_refuse(im, MUC_MALFORMED, "input %" PRIu32 " cannot be packed", i);
        MUC_TRY(muc_tflite_same_scale(im, x, muc_tflite_out(im, 0)));
        MUC_TRY(muc_tflite_input(im, i, &inputs[i]));
        MUC_TRY(put_axis(im, x, axis, &inputs[i]));
    }
    muc_attributes_set(&a, MUC_KEY_AXIS, axis);
    return muc_tflite_last(im, im->to, inputs, im->op->input_count, &a);
}

/* output i is slice i along the axis, which goes */
muc_status muc_tflite_import_unpack(muc_tflite_import *im)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    muc_tflite_operator whole = *im->op, one = whole;
    muc_tflite_import each = *im;
    muc_status status = MUC_OK;
    uint32_t input;
    int64_t axis, zero = 0, size = 1;

    MUC_TRY(muc_tflite_axis(im, muc_tflite_option(im, "axis"), x->rank, &axis));
    if (x->dims[axis] != whole.output_count)
        return muc_tflite_refuse(im, MUC_MALFORMED, "%" PRIu32 " outputs of %" PRIu32 " slices",
                                 whole.output_count, x->dims[axis]);
    MUC_TRY(muc_tflite_input(im, 0, &input));
    each.op = &one;
    one.output_count = 1;
    for (uint32_t i = 0; i < whole.output_count && status == MUC_OK; i++) {
        muc_attributes a = { .count = 0 }, shape = { .count = 0 };
        uint32_t id = input;

        one.outputs = &whole.outputs[i];
        zero = i;
        muc_attributes_set_integers(&a, MUC_KEY_AXES, &axis, 1);
        muc_attributes_set_sizes(&a, each.graph, MUC_KEY_STARTS, &zero, 1);
        muc_attributes_set_sizes(&a, each.graph, MUC_KEY_SIZES, &size, 1);
        MUC_TRY(muc_tflite_same_scale(&each, x, muc_tflite_out(&each, 0)));
        MUC_TRY(muc_tflite_step(&each, MUC_OP_SLICE, "slice", &id, 1, &a, x, &id));
        muc_tflite_set_dims(&each, &shape, MUC_KEY_SHAPE, muc_tflite_out(&each, 0));
        status = muc_tflite_last(&each, MUC_OP_RESHAPE, &id, 1, &shape);
    }
    return status;
}

/* input x along the axis that another input holds; the outputs' shapes tell the sizes */
static muc_status split(muc_tflite_import *im, uint32_t x, uint32_t axis_input)
{
    muc_attributes a = { .count = 0 };
    uint32_t input, count;
    int64_t item, axis, sizes[MUC_GRAPH_MAX_OUTPUTS];

    MUC_TRY(muc_tflite_integers(im, axis_input, 1, &item, &count));
    if (count != 1)
        return muc_tflite_refuse(im, MUC_MALFORMED, "no axis");
    MUC_TRY(muc_tflite_axis(im, item, muc_tflite_in(im, x)->rank, &axis));
    for (uint32_t i = 0; i < im->op->output_count; i++)
        MUC_TRY(muc_tflite_same_scale(im, muc_tflite_in(im, x), muc_tflite_out(im, i)));
    MUC_TRY(muc_tflite_input(im, x, &input));
    muc_attributes_set(&a, MUC_KEY_AXIS, axis);
    for (uint32_t i = 0; i < im->op->output_count; i++)
        sizes[i] = muc_tflite_out(im, i)->rank > axis ? muc_tflite_out(im, i)->dims[axis] : 0;
    muc_attributes_set_sizes(&a, im->graph, MUC_KEY_SIZES, sizes, im->op->output_count);
    return muc_tflite_last(im, im->to, &input, 1, &a);
}

/* inputs: axis, x */
muc_status muc_tflite_import_split(muc_tflite_import *im)
{
    return split(im, 1, 0);
}

/* inputs: x, sizes, axis */
muc_status muc_tflite_import_split_v(muc_tflite_import *im)
{
    return split(im, 0, 2);
}

/* ---- slices ---- */

/* x from starts on, along every dimension, as sizes tell */
static muc_status set_slice(muc_tflite_import *im, muc_attributes *a, const int64_t *starts,
                            const int64_t *sizes, const int64_t *steps)
{
    uint32_t rank = muc_tflite_in(im, 0)->rank;
    int64_t axes[MAX_RANK];
    bool plain = true;

    for (uint32_t i = 0; i < rank; i++) {
        axes[i] = i;
        plain = plain && steps[i] == 1;
    }
    muc_attributes_set_integers(a, MUC_KEY_AXES, axes, rank);
    muc_attributes_set_sizes(a, im->graph, MUC_KEY_STARTS, starts, rank);
    muc_attributes_set_sizes(a, im->graph, MUC_KEY_SIZES, sizes, rank);
    if (!plain)
        muc_attributes_set_integers(a, MUC_KEY_STEPS, steps, rank);
    return MUC_OK;
}

/* inputs: x, begin, size; a size of -1 goes to the end */
muc_status muc_tflite_import_slice(muc_tflite_import *im)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    int64_t starts[MAX_RANK], sizes[MAX_RANK], steps[MAX_RANK];
    muc_attributes a = { .count = 0 };
    uint32_t input, count[2];

    MUC_TRY(muc_tflite_integers(im, 1, MAX_RANK, starts, &count[0]));
    MUC_TRY(muc_tflite_integers(im, 2, MAX_RANK, sizes, &count[1]));
    if (count[0] != x->rank || count[1] != x->rank)
        return muc_tflite_refuse(im, MUC_MALFORMED, "begin or size of another rank than input 0");
    for (uint32_t i = 0; i < x->rank; i++) {
        steps[i] = 1;
        if (sizes[i] == -1)
            sizes[i] = x->dims[i] - starts[i];
        if (starts[i] < 0 || sizes[i] < 0 || starts[i] > x->dims[i] ||
            sizes[i] > x->dims[i] - starts[i])
            return muc_tflite_refuse(im, MUC_MALFORMED, "leaves dimension %" PRIu32, i);
    }
    MUC_TRY(muc_tflite_input(im, 0, &input));
    MUC_TRY(set_slice(im, &a, starts, sizes, steps));
    return move(im, input, &a);
}

typedef struct strided {
    int64_t begin[MAX_RANK], end[MAX_RANK], steps[MAX_RANK];
    int64_t starts[MAX_RANK], sizes[MAX_RANK];
    int64_t begin_mask, end_mask, shrink_mask; /* of dimensions of x */
    bool reshapes;                             /* dimensions go or come */
} strided;

/* The masks of the lists, whose items need not be dimensions of x. */
typedef struct strided_lists {
    int64_t begin[MAX_RANK], end[MAX_RANK], steps[MAX_RANK];
    int64_t begin_mask, end_mask, shrink_mask, ellipsis_mask, new_axis_mask;
    uint32_t count;
} strided_lists;

/* a position as numpy has it, between least and most */
static int64_t position(int64_t value, int64_t extent, int64_t least, int64_t most)
{
    value += value < 0 ? extent : 0;
    return value < least ? least : value > most ? most : value;
}

static muc_status slice_dimension(const muc_tflite_import *im, strided *s, uint32_t i)
{
    int64_t extent = muc_tflite_in(im, 0)->dims[i], step = s->steps[i], begin, end;
    bool shrink = s->shrink_mask >> i & 1, forward = step > 0;
    int64_t least = forward ? 0 : -1, most = forward ? extent : extent - 1;

    if (step == 0 || (shrink && step < 0))
        return muc_tflite_refuse(im, MUC_MALFORMED, "a stride of %lld", (long long)step);
    begin = s->begin_mask >> i & 1 ? (forward ? least : most)
                                   : position(s->begin[i], extent, least, most);
    end = shrink                 ? begin + 1
          : s->end_mask >> i & 1 ? (forward ? most : least)
                                 : position(s->end[i], extent, least, most);
    if (shrink && (begin < 0 || begin >= extent))
        return muc_tflite_refuse(im, MUC_MALFORMED, "leaves dimension %" PRIu32, i);
    s->sizes[i] = forward ? (end - begin + step - 1) / step : (begin - end - step - 1) / -step;
    s->sizes[i] = s->sizes[i] < 0 ? 0 : s->sizes[i];
    s->starts[i] = s->sizes[i] ? begin : 0;
    return MUC_OK;
}

static muc_status read_lists(const muc_tflite_import *im, strided_lists *lists)
{
    uint32_t count[3];

    lists->begin_mask = muc_tflite_option(im, "begin_mask");
    lists->end_mask = muc_tflite_option(im, "end_mask");
    lists->shrink_mask = muc_tflite_option(im, "shrink_axis_mask");
    lists->ellipsis_mask = muc_tflite_option(im, "ellipsis_mask");
    lists->new_axis_mask = muc_tflite_option(im, "new_axis_mask");
    MUC_TRY(muc_tflite_integers(im, 1, MAX_RANK, lists->begin, &count[0]));
    MUC_TRY(muc_tflite_integers(im, 2, MAX_RANK, lists->end, &count[1]));
    MUC_TRY(muc_tflite_integers(im, 3, MAX_RANK, lists->steps, &count[2]));
    lists->count = count[0];
    if (count[1] != count[0] || count[2] != count[0])
        return muc_tflite_refuse(im, MUC_MALFORMED,
                                 "begin, end and strides of %" PRIu32 ", %" PRIu32 " and %" PRIu32
                                 " elements",
                                 count[0], count[1], count[2]);
    if (muc_tflite_option(im, "offset")) /* end counts from begin */
        for (uint32_t i = 0; i < lists->count; i++)
            lists->end[i] += lists->begin[i];
    return MUC_OK;
}

/* the lists' items that stand for one dimension of x each */
static uint32_t count_dimensions(const strided_lists *lists)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < lists->count; i++)
        count += !((lists->ellipsis_mask | lists->new_axis_mask) >> i & 1);
    return count;
}

static muc_status read_strided(const muc_tflite_import *im, strided *s)
{
    uint32_t rank = muc_tflite_in(im, 0)->rank, d = 0, named;
    strided_lists lists;

    MUC_TRY(read_lists(im, &lists));
    named = count_dimensions(&lists);
    if (lists.ellipsis_mask & (lists.ellipsis_mask - 1))
        return muc_tflite_refuse(im, MUC_MALFORMED, "several ellipses");
    if (named > rank)
        return muc_tflite_refuse(im, MUC_MALFORMED, "%" PRIu32 " slices of %" PRIu32 " dimensions",
                                 named, rank);
    for (uint32_t i = 0; i < MAX_RANK; i++) { /* whole, unless told otherwise */
        s->begin_mask |= 1 << i;
        s->end_mask |= 1 << i;
        s->steps[i] = 1;
    }
    for (uint32_t i = 0; i < lists.count; i++) {
        if (lists.ellipsis_mask >> i & 1) {
            d += rank - named;
            continue;
        }
        if (lists.new_axis_mask >> i & 1) {
            s->reshapes = true;
            continue;
        }
        s->begin[d] = lists.begin[i];
        s->end[d] = lists.end[i];
        s->steps[d] = lists.steps[i];
        if (!(lists.begin_mask >> i & 1))
            s->begin_mask &= ~(INT64_C(1) << d);
        if (!(lists.end_mask >> i & 1))
            s->end_mask &= ~(INT64_C(1) << d);
        if (lists.shrink_mask >> i & 1) {
            s->shrink_mask |= 1 << d;
            s->reshapes = true;
        }
        d++;
    }
    for (uint32_t i = 0; i < rank; i++)
        MUC_TRY(slice_dimension(im, s, i));
    return MUC_OK;
}

muc_status muc_tflite_import_strided_slice(muc_tflite_import *im)
{
    muc_attributes a = { .count = 0 }, shape = { .count = 0 };
    strided s = { .begin_mask = 0 };
    uint32_t id;

    MUC_TRY(read_strided(im, &s));
    MUC_TRY(muc_tflite_input(im, 0, &id));
    MUC_TRY(set_slice(im, &a, s.starts, s.sizes, s.steps));
    if (!s.reshapes)
        return move(im, id, &a);
    MUC_TRY(muc_tflite_same_scale(im, muc_tflite_in(im, 0), muc_tflite_out(im, 0)));
    MUC_TRY(muc_tflite_step(im, MUC_OP_SLICE, "slice", &id, 1, &a, muc_tflite_in(im, 0), &id));
    muc_tflite_set_dims(im, &shape, MUC_KEY_SHAPE, muc_tflite_out(im, 0));
    return muc_tflite_last(im, MUC_OP_RESHAPE, &id, 1, &shape);
}
