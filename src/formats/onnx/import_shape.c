/* import_shape.c - imports operators that move elements as their operands, which are shapes, say.
 */
#include <inttypes.h>
#include <string.h>

#include "formats/onnx/onnx_operators.h"

static muc_status emit_reshape(onnx_call *call, uint32_t x, const onnx_shape *to)
{
    muc_attributes a = { .count = 0 };

    muc_attributes_set_exprs(&a, MUC_KEY_SHAPE, to->dims, to->rank);
    return onnx_emit(call, call->row->op, &x, 1, &a, 1);
}

muc_status onnx_import_reshape(onnx_call *call)
{
    const onnx_numbers *wanted;
    onnx_shape from, to;
    int64_t allow_zero;
    uint32_t x;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(onnx_known(call, 1, &wanted));
    MUC_TRY(onnx_integer(call, "allowzero", 0, &allow_zero));
    from = onnx_shape_of(call, x);
    MUC_TRY(onnx_reshape_dims(call, &from, wanted, allow_zero != 0, &to));
    return emit_reshape(call, x, &to);
}

muc_status onnx_mark_axes(onnx_call *call, const int64_t *axes, size_t count, uint32_t rank,
                          bool *set)
{
    memset(set, 0, MUC_GRAPH_MAX_RANK * sizeof(*set));
    for (size_t i = 0; i < count; i++) {
        int64_t axis;

        MUC_TRY(muc_import_axis(onnx_subject(call), axes[i], rank, &axis));
        if (set[axis])
            return onnx_fail(call, MUC_MALFORMED, "axis %" PRId64 " is there twice", axis);
        set[axis] = true;
    }
    return MUC_OK;
}

muc_status onnx_import_squeeze(onnx_call *call)
{
    onnx_shape from, to = { 0 };
    muc_expr one = muc_expr_const(call->im->graph->pool, 1);
    bool set[MUC_GRAPH_MAX_RANK];
    const int64_t *axes;
    size_t count;
    uint32_t x;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(onnx_operand_integers(call, "axes", 1, &axes, &count));
    from = onnx_shape_of(call, x);
    MUC_TRY(onnx_mark_axes(call, axes, count, from.rank, set));
    for (uint32_t i = 0; i < from.rank; i++) {
        if (axes && set[i] && from.dims[i] != one)
            return onnx_fail(call, MUC_MALFORMED, "dimension %u is not 1", i);
        if (axes ? !set[i] : from.dims[i] != one)
            to.dims[to.rank++] = from.dims[i];
    }
    return emit_reshape(call, x, &to);
}

muc_status onnx_import_unsqueeze(onnx_call *call)
{
    onnx_shape from, to = { 0 };
    bool set[MUC_GRAPH_MAX_RANK];
    const int64_t *axes;
    size_t count;
    uint32_t x;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(onnx_operand_integers(call, "axes", 1, &axes, &count));
    from = onnx_shape_of(call, x);
    if (!axes || count + from.rank > MUC_GRAPH_MAX_RANK)
        return onnx_fail(call, MUC_UNSUPPORTED, "%zu axes more than the %u dimensions", count,
                         from.rank);
    to.rank = from.rank + (uint32_t)count;
    MUC_TRY(onnx_mark_axes(call, axes, count, to.rank, set));
    for (uint32_t i = 0, j = 0; i < to.rank; i++)
        to.dims[i] = set[i] ? muc_expr_const(call->im->graph->pool, 1) : from.dims[j++];
    return emit_reshape(call, x, &to);
}

muc_status onnx_import_transpose(onnx_call *call)
{
    int64_t reversed[MUC_GRAPH_MAX_RANK];
    uint32_t x, rank;

    MUC_TRY(onnx_input(call, 0, &x));
    rank = onnx_tensor(call, x)->rank;
    for (uint32_t i = 0; i < rank; i++)
        reversed[i] = rank - 1 - i;
    return onnx_cook(call, ". 0 perm=@perm:%s", MUC_LIST(reversed, rank));
}

/* ---- slices ---- */

typedef struct slices {
    const onnx_numbers *starts, *ends;
    const int64_t *axes, *steps;
    size_t count;
} slices;

static muc_status numbers_of_attribute(onnx_call *call, const char *name, const onnx_numbers **out)
{
    const int64_t *items;
    onnx_numbers *numbers;
    uint32_t dims[1];
    size_t count;

    MUC_TRY(onnx_integers(call, name, &items, &count));
    if (!items || count > MUC_GRAPH_MAX_RANK)
        return onnx_fail(call, MUC_MALFORMED, "attribute '%s' has %zu entries", name, count);
    dims[0] = (uint32_t)count;
    MUC_TRY(onnx_numbers_new(call->im, MUC_I64, 1, dims, &numbers));
    for (size_t i = 0; i < count; i++)
        numbers->items[i].integer = items[i];
    *out = numbers;
    return MUC_OK;
}

static muc_status take_slices(onnx_call *call, slices *s)
{
    size_t axes, steps;

    if (call->version < 10) {
        MUC_TRY(numbers_of_attribute(call, "starts", &s->starts));
        MUC_TRY(numbers_of_attribute(call, "ends", &s->ends));
    } else {
        MUC_TRY(onnx_known(call, 1, &s->starts));
        MUC_TRY(onnx_known(call, 2, &s->ends));
    }
    MUC_TRY(onnx_operand_integers(call, "axes", 3, &s->axes, &axes));
    MUC_TRY(onnx_operand_integers(call, "steps", 4, &s->steps, &steps));
    s->count = s->starts->count;
    if (s->ends->count != s->count || (s->axes && axes != s->count) ||
        (s->steps && steps != s->count) || onnx_is_real(s->starts->dtype) ||
        onnx_is_real(s->ends->dtype))
        return onnx_fail(call, MUC_MALFORMED, "%zu starts, %u ends, %zu axes, %zu steps", s->count,
                         s->ends->count, axes, steps);
    return MUC_OK;
}

muc_status onnx_import_slice(onnx_call *call)
{
    muc_expr starts[MUC_GRAPH_MAX_RANK], sizes[MUC_GRAPH_MAX_RANK];
    int64_t axes[MUC_GRAPH_MAX_RANK], steps[MUC_GRAPH_MAX_RANK];
    muc_attributes a = { .count = 0 };
    onnx_shape shape;
    uint32_t x;
    slices s;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(take_slices(call, &s));
    shape = onnx_shape_of(call, x);
    if (s.count > shape.rank)
        return onnx_fail(call, MUC_MALFORMED, "%zu axes of %u dimensions", s.count, shape.rank);
    for (uint32_t i = 0; i < s.count; i++) {
        onnx_range range;

        MUC_TRY(muc_import_axis(onnx_subject(call), s.axes ? s.axes[i] : (int64_t)i, shape.rank,
                                &axes[i]));
        steps[i] = s.steps ? s.steps[i] : 1;
        MUC_TRY(onnx_slice_range(call, shape.dims[axes[i]], &s.starts->items[i], &s.ends->items[i],
                                 steps[i], &range));
        starts[i] = range.start;
        sizes[i] = range.size;
    }
    muc_attributes_set_integers(&a, MUC_KEY_AXES, axes, (uint32_t)s.count);
    muc_attributes_set_exprs(&a, MUC_KEY_STARTS, starts, (uint32_t)s.count);
    muc_attributes_set_exprs(&a, MUC_KEY_SIZES, sizes, (uint32_t)s.count);
    muc_attributes_set_integers(&a, MUC_KEY_STEPS, steps, (uint32_t)s.count);
    return onnx_emit(call, call->row->op, &x, 1, &a, 1);
}

/* as equal as can be, the last the smaller */
static muc_status equal_parts(onnx_call *call, muc_expr dim, uint32_t parts, muc_expr *sizes)
{
    muc_expr_pool *pool = call->im->graph->pool;
    muc_expr each = muc_expr_cdiv(pool, dim, parts);

    for (uint32_t i = 0; i < parts; i++)
        sizes[i] =
            i + 1 < parts ? each : muc_expr_sub(pool, dim, muc_expr_mul_const(pool, each, i));
    return muc_expr_status(pool);
}

muc_status onnx_import_split(onnx_call *call)
{
    uint32_t x, parts = (uint32_t)call->proto->n_output;
    muc_expr sizes[MUC_GRAPH_MAX_OUTPUTS];
    const Onnx__AttributeProto *split;
    muc_attributes a = { .count = 0 };
    int64_t axis, number;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(onnx_integer(call, "axis", 0, &axis));
    MUC_TRY(muc_import_axis(onnx_subject(call), axis, onnx_tensor(call, x)->rank, &axis));
    MUC_TRY(onnx_integer(call, "num_outputs", parts, &number));
    if (call->proto->n_output > MUC_GRAPH_MAX_OUTPUTS || number != parts)
        return onnx_fail(call, MUC_UNSUPPORTED, "%zu outputs, num_outputs %" PRId64,
                         call->proto->n_output, number);
    split = NULL;
    if (call->version < 13)
        MUC_TRY(onnx_attribute(call, "split", &split));
    if (split || onnx_has_input(call, 1))
        return onnx_cook(call, ". 0 axis=@axis:0 sizes=%s", split ? "@split" : "#1");
    MUC_TRY(equal_parts(call, onnx_dim(call, x, (uint32_t)axis), parts, sizes));
    muc_attributes_set_exprs(&a, MUC_KEY_SIZES, sizes, parts);
    return onnx_cook_given(call, &a, ". 0 axis=@axis:0 given");
}

/* ---- larger ---- */

/* pads of all dimensions, from pads of those that `axes` names */
static muc_status take_pads(onnx_call *call, uint32_t rank, int64_t *out)
{
    const int64_t *pads, *axes = NULL;
    size_t count, axis_count = rank;

    MUC_TRY(onnx_operand_integers(call, "pads", 1, &pads, &count));
    if (onnx_has_input(call, 3))
        MUC_TRY(onnx_known_integers(call, 3, &axes, &axis_count));
    if (!pads || axis_count > rank || count != 2 * axis_count)
        return onnx_fail(call, MUC_MALFORMED, "%zu pads of %zu dimensions", count, axis_count);
    memset(out, 0, 2 * rank * sizeof(*out));
    for (uint32_t i = 0; i < axis_count; i++) {
        int64_t axis;

        MUC_TRY(muc_import_axis(onnx_subject(call), axes ? axes[i] : (int64_t)i, rank, &axis));
        out[axis] = pads[i];
        out[rank + axis] = pads[axis_count + i];
    }
    return MUC_OK;
}

/* a value other than 0 is an attribute in old versions */
muc_status onnx_import_pad(onnx_call *call)
{
    int64_t pads[2 * MUC_GRAPH_MAX_RANK];
    muc_attributes a = { .count = 0 };
    const char *mode;
    double value;
    uint32_t x;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(onnx_string(call, "mode", "constant", &mode));
    MUC_TRY(onnx_real(call, "value", 0, &value));
    MUC_TRY(take_pads(call, onnx_tensor(call, x)->rank, pads));
    muc_attributes_set_integers(&a, MUC_KEY_PADS, pads, 2 * onnx_tensor(call, x)->rank);
    return onnx_cook_given(call, &a, "pad 0 %s given mode=@mode:constant",
                           strcmp(mode, "constant") != 0 ? ""
                           : value != 0                  ? "{@value}"
                           : onnx_has_input(call, 2)     ? "2"
                                                         : "");
}

muc_status onnx_import_expand(onnx_call *call)
{
    const onnx_numbers *wanted;
    muc_attributes a = { .count = 0 };
    onnx_shape from, to;
    muc_expr one = muc_expr_const(call->im->graph->pool, 1);
    uint32_t x;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(onnx_known(call, 1, &wanted));
    from = onnx_shape_of(call, x);
    to.rank = wanted->count > from.rank ? wanted->count : from.rank;
    if (wanted->rank > 1 || to.rank > MUC_GRAPH_MAX_RANK)
        return onnx_fail(call, MUC_UNSUPPORTED, "the shape has %u dimensions, which is too many",
                         to.rank);
    for (uint32_t i = 0; i < to.rank; i++)
        to.dims[i] = one;
    for (uint32_t i = 0; i < wanted->count; i++)
        if (!onnx_number_expr(call->im, wanted, i, &to.dims[to.rank - wanted->count + i]))
            return onnx_fail(call, MUC_MALFORMED, "dimension %u is not a size", i);
    for (uint32_t i = 0; i < from.rank; i++) {
        muc_expr *dim = &to.dims[to.rank - from.rank + i];

        if (*dim == one)
            *dim = from.dims[i]; /* the graph checks that others are equal or stretched */
    }
    muc_attributes_set_exprs(&a, MUC_KEY_SHAPE, to.dims, to.rank);
    return onnx_emit(call, call->row->op, &x, 1, &a, 1);
}

/* A diagonal that dimensions decide, 0 at least, is a choice by row + diagonal and column. */
muc_status onnx_import_trilu(onnx_call *call)
{
    const onnx_numbers *k = NULL;
    int64_t upper;

    MUC_TRY(onnx_integer(call, "upper", 1, &upper));
    if (onnx_has_input(call, 1))
        MUC_TRY(onnx_known(call, 1, &k));
    if (!k || k->count != 1 || k->items[0].expr == MUC_EXPR_NONE)
        return onnx_cook(call, ". 0 upper=@upper:1 diagonal=%s", k ? "#1" : "0");
    return onnx_cook(call,
                     "first = expressions values=#1 to=i64; first = reshape first shape=; "
                     "rows = range first {1} size=in0.-2; rows = reshape rows shape=in0.-2,1; "
                     "first = expressions values=0 to=i64; first = reshape first shape=; "
                     "columns = range first {1} size=in0.-1; stays = less_or_equal %s; "
                     "where stays 0 {0}",
                     upper ? "rows columns" : "columns rows");
}
