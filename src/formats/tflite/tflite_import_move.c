/* tflite_import_move.c - TFLite's operators that move elements about. */
#include <inttypes.h>

#include "formats/tflite/tflite_import.h"

enum { MAX_RANK = MUC_GRAPH_MAX_RANK, MOST_INPUTS = 1024 };

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

    if (!x)
        return muc_tflite_refuse(im, MUC_MALFORMED, "input %" PRIu32 " is absent", i);
    MUC_TRY(muc_tflite_input(im, i, id));
    if (!muc_tflite_is_quantized(x) || !muc_tflite_is_quantized(out) ||
        (x->quantization.scales[0] == out->quantization.scales[0] &&
         x->quantization.zero_points[0] == out->quantization.zero_points[0]))
        return MUC_OK;
    return muc_tflite_make(im, id, 1, id, "scaled = quantize 0 to=out");
}

muc_status muc_tflite_import_concatenation(muc_tflite_import *im)
{
    uint32_t inputs[MOST_INPUTS];

    if (muc_tflite_option(im, "activation") != 0)
        return muc_tflite_refuse(im, MUC_UNSUPPORTED,
                                 "a fused activation of CONCATENATION is not read");
    for (uint32_t i = 0; i < im->op->input_count; i++)
        MUC_TRY(muc_tflite_scaled_input(im, i, &inputs[i]));
    return muc_tflite_make(im, inputs, im->op->input_count, NULL, ". * axis=@axis");
}

/* each input with another dimension, of one element */
muc_status muc_tflite_import_pack(muc_tflite_import *im)
{
    uint32_t inputs[MOST_INPUTS];
    int64_t axis;

    MUC_TRY(muc_import_axis(muc_tflite_subject(im), muc_tflite_option(im, "axis"),
                            muc_tflite_out(im, 0)->rank, &axis));
    for (uint32_t i = 0; i < im->op->input_count; i++) {
        const muc_tflite_tensor *x = muc_tflite_in(im, i);

        if (!x || x->rank + 1 > MAX_RANK)
            return muc_tflite_refuse(im, MUC_MALFORMED, "input %" PRIu32 " cannot be packed", i);
        MUC_TRY(muc_tflite_same_scale(im, x, muc_tflite_out(im, 0)));
        MUC_TRY(muc_tflite_input(im, i, &inputs[i]));
        MUC_TRY(muc_tflite_make(im, &inputs[i], 1, &inputs[i],
                                "row = reshape 0 shape=in0.0..%d,1,in0.%d..", (int)axis,
                                (int)axis));
    }
    return muc_tflite_make(im, inputs, im->op->input_count, NULL, ". * axis=@axis");
}

/* output i is slice i along the axis, which goes */
muc_status muc_tflite_import_unpack(muc_tflite_import *im)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    muc_tflite_operator one = *im->op;
    muc_tflite_import each = *im;
    int64_t axis;

    MUC_TRY(muc_import_axis(muc_tflite_subject(im), muc_tflite_option(im, "axis"), x->rank, &axis));
    if (x->dims[axis] != im->op->output_count)
        return muc_tflite_refuse(im, MUC_MALFORMED, "%" PRIu32 " outputs of %" PRIu32 " slices",
                                 im->op->output_count, x->dims[axis]);
    each.op = &one;
    one.output_count = 1;
    for (uint32_t i = 0; i < im->op->output_count; i++) {
        one.outputs = &im->op->outputs[i];
        MUC_TRY(muc_tflite_cook(&each,
                                "slice = slice 0 same0 axes=%d starts=%" PRIu32 " sizes=1; "
                                "reshape slice shape=out",
                                (int)axis, i));
    }
    return MUC_OK;
}

/* input x along the axis that another input holds; the outputs' shapes tell the sizes */
static muc_status split(muc_tflite_import *im, uint32_t x, uint32_t axis_input)
{
    int64_t item, axis, sizes[MUC_GRAPH_MAX_OUTPUTS];
    uint32_t count;

    MUC_TRY(muc_tflite_integers(im, axis_input, 1, &item, &count));
    if (count != 1)
        return muc_tflite_refuse(im, MUC_MALFORMED, "the axis is not one number");
    MUC_TRY(muc_import_axis(muc_tflite_subject(im), item, muc_tflite_in(im, x)->rank, &axis));
    for (uint32_t i = 0; i < im->op->output_count; i++) {
        const muc_tflite_tensor *out = muc_tflite_out(im, i);

        MUC_TRY(muc_tflite_same_scale(im, muc_tflite_in(im, x), out));
        sizes[i] = out->rank > axis ? out->dims[axis] : 0;
    }
    return muc_tflite_cook(im, ". %" PRIu32 " axis=%d sizes=%s", x, (int)axis,
                           MUC_LIST(sizes, im->op->output_count));
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

/* inputs: x, begin, size; a size of -1 goes to the end */
muc_status muc_tflite_import_slice(muc_tflite_import *im)
{
    const muc_tflite_tensor *x = muc_tflite_in(im, 0);
    int64_t starts[MAX_RANK], sizes[MAX_RANK];
    uint32_t count[2];

    MUC_TRY(muc_tflite_integers(im, 1, MAX_RANK, starts, &count[0]));
    MUC_TRY(muc_tflite_integers(im, 2, MAX_RANK, sizes, &count[1]));
    if (count[0] != x->rank || count[1] != x->rank)
        return muc_tflite_refuse(
            im, MUC_MALFORMED,
            "begin and size do not have an element for each dimension of input 0");
    for (uint32_t i = 0; i < x->rank; i++) {
        if (sizes[i] == -1)
            sizes[i] = x->dims[i] - starts[i];
        if (starts[i] < 0 || sizes[i] < 0 || starts[i] > x->dims[i] ||
            sizes[i] > x->dims[i] - starts[i])
            return muc_tflite_refuse(im, MUC_MALFORMED, "the slice leaves dimension %" PRIu32, i);
    }
    return muc_tflite_cook(im, ". 0 same0 axes=0.. starts=%s sizes=%s", MUC_LIST(starts, x->rank),
                           MUC_LIST(sizes, x->rank));
}

/* What a STRIDED_SLICE takes of the first dimensions. */
typedef struct strided {
    int64_t starts[MAX_RANK], sizes[MAX_RANK], steps[MAX_RANK];
    uint32_t rank;
    bool steps_on, reshapes; /* a step is not 1; dimensions go or come */
} strided;

/* a position as numpy has it, between least and most */
static int64_t position(int64_t value, int64_t extent, int64_t least, int64_t most)
{
    value += value < 0 ? extent : 0;
    return value < least ? least : value > most ? most : value;
}

/* the next dimension, from begin to end, NULL: its own; shrink: at begin alone */
static muc_status take_dimension(const muc_tflite_import *im, strided *s, const int64_t *from,
                                 const int64_t *to, int64_t step, bool shrink)
{
    uint32_t d = s->rank++;
    int64_t extent = muc_tflite_in(im, 0)->dims[d], begin, end;
    bool forward = step > 0;
    int64_t least = forward ? 0 : -1, most = forward ? extent : extent - 1;

    if (step == 0 || (shrink && step < 0))
        return muc_tflite_refuse(im, MUC_MALFORMED, "a stride of %" PRId64, step);
    begin = from ? position(*from, extent, least, most) : forward ? least : most;
    end = shrink ? begin + 1 : to ? position(*to, extent, least, most) : forward ? most : least;
    if (shrink && (begin < 0 || begin >= extent))
        return muc_tflite_refuse(im, MUC_MALFORMED, "the slice leaves dimension %" PRIu32, d);
    s->sizes[d] = forward ? (end - begin + step - 1) / step : (begin - end - step - 1) / -step;
    s->sizes[d] = s->sizes[d] < 0 ? 0 : s->sizes[d];
    s->starts[d] = s->sizes[d] ? begin : 0;
    s->steps[d] = step;
    s->steps_on = s->steps_on || step != 1;
    s->reshapes = s->reshapes || shrink;
    return MUC_OK;
}

/* begin, end and strides; their items need not be dimensions of x */
static muc_status read_lists(const muc_tflite_import *im, int64_t lists[3][MAX_RANK],
                             uint32_t *items)
{
    uint32_t count[3];

    for (uint32_t i = 0; i < 3; i++)
        MUC_TRY(muc_tflite_integers(im, 1 + i, MAX_RANK, lists[i], &count[i]));
    if (count[1] != count[0] || count[2] != count[0])
        return muc_tflite_refuse(im, MUC_MALFORMED,
                                 "begin, end and strides of %" PRIu32 ", %" PRIu32 " and %" PRIu32
                                 " elements",
                                 count[0], count[1], count[2]);
    for (uint32_t i = 0; i < count[0] && muc_tflite_option(im, "offset"); i++)
        lists[1][i] += lists[0][i]; /* end counts from begin */
    *items = count[0];
    return MUC_OK;
}

static muc_status read_strided(const muc_tflite_import *im, strided *s)
{
    int64_t begin_mask = muc_tflite_option(im, "begin_mask");
    int64_t end_mask = muc_tflite_option(im, "end_mask");
    int64_t shrink_mask = muc_tflite_option(im, "shrink_axis_mask");
    int64_t ellipsis_mask = muc_tflite_option(im, "ellipsis_mask");
    int64_t new_axis_mask = muc_tflite_option(im, "new_axis_mask"), lists[3][MAX_RANK];
    uint32_t rank = muc_tflite_in(im, 0)->rank, items = 0, named = 0;

    MUC_TRY(read_lists(im, lists, &items));
    for (uint32_t i = 0; i < items; i++)
        named += !((ellipsis_mask | new_axis_mask) >> i & 1);
    if (ellipsis_mask & (ellipsis_mask - 1))
        return muc_tflite_refuse(im, MUC_MALFORMED, "ellipsis_mask has more than one bit");
    if (named > rank)
        return muc_tflite_refuse(
            im, MUC_MALFORMED, "%" PRIu32 " slices are given, the input has %" PRIu32 " dimensions",
            named, rank);
    for (uint32_t i = 0; i < items; i++) {
        uint32_t whole = ellipsis_mask >> i & 1 ? rank - named : 0;

        while (whole-- > 0)
            MUC_TRY(take_dimension(im, s, NULL, NULL, 1, false));
        if (new_axis_mask >> i & 1 && !(ellipsis_mask >> i & 1))
            s->reshapes = true;
        if (!((ellipsis_mask | new_axis_mask) >> i & 1))
            MUC_TRY(take_dimension(im, s, begin_mask >> i & 1 ? NULL : &lists[0][i],
                                   end_mask >> i & 1 ? NULL : &lists[1][i], lists[2][i],
                                   shrink_mask >> i & 1));
    }
    while (s->rank < rank)
        MUC_TRY(take_dimension(im, s, NULL, NULL, 1, false));
    return MUC_OK;
}

muc_status muc_tflite_import_strided_slice(muc_tflite_import *im)
{
    strided s = { .rank = 0 };

    MUC_TRY(read_strided(im, &s));
    return muc_tflite_cook(
        im, "%sslice 0 same0 axes=0.. starts=%s sizes=%s %s%s%s", s.reshapes ? "slice = " : "",
        MUC_LIST(s.starts, s.rank), MUC_LIST(s.sizes, s.rank), s.steps_on ? "steps=" : "",
        MUC_LIST(s.steps, s.steps_on ? s.rank : 0), s.reshapes ? "; reshape slice shape=out" : "");
}
