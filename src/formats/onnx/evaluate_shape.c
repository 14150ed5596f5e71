/* evaluate_shape.c - shapes as numbers, and numbers that are moved. */
#include <inttypes.h>
#include <string.h>

#include "formats/onnx/evaluate.h"

muc_status onnx_evaluate_none(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    (void)call;
    (void)x;
    (void)out;
    return MUC_OK;
}

/* The first and last + 1 of `rank` dimensions that Shape gives. */
static muc_status shape_bounds(onnx_call *call, uint32_t rank, uint32_t *first, uint32_t *end)
{
    int64_t bounds[2];

    MUC_TRY(onnx_integer(call, "start", 0, &bounds[0]));
    MUC_TRY(onnx_integer(call, "end", rank, &bounds[1]));
    for (int i = 0; i < 2; i++) {
        if (bounds[i] < 0)
            bounds[i] = bounds[i] < -(int64_t)rank ? 0 : bounds[i] + rank;
        if (bounds[i] > rank)
            bounds[i] = rank;
    }
    *first = (uint32_t)bounds[0];
    *end = (uint32_t)(bounds[1] < bounds[0] ? bounds[0] : bounds[1]);
    return MUC_OK;
}

static void set_dim(const onnx_call *call, muc_expr dim, onnx_number *out)
{
    muc_expr_pool *pool = call->im->graph->pool;

    if (muc_expr_is_const(pool, dim))
        *out = (onnx_number){ .integer = muc_expr_get(pool, dim)->immediate };
    else
        *out = (onnx_number){ .expr = dim };
}

/* of input 0: numbers that no tensor may hold have a shape, too */
static muc_status find_shape(onnx_call *call, const onnx_numbers *x, onnx_shape *out)
{
    uint32_t tensor;

    if (!x) {
        MUC_TRY(onnx_input(call, 0, &tensor));
        *out = onnx_shape_of(call, tensor);
        return MUC_OK;
    }
    out->rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++)
        out->dims[i] = muc_expr_const(call->im->graph->pool, x->dims[i]);
    return MUC_OK;
}

muc_status onnx_evaluate_shape(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    uint32_t first, end, count;
    onnx_shape shape;

    MUC_TRY(find_shape(call, x[0], &shape));
    MUC_TRY(shape_bounds(call, shape.rank, &first, &end));
    count = end - first;
    MUC_TRY(onnx_numbers_new(call->im, MUC_I64, 1, &count, out));
    for (uint32_t i = first; i < end; i++)
        set_dim(call, shape.dims[i], &(*out)->items[i - first]);
    call->shape_only = true;
    return MUC_OK;
}

muc_status onnx_evaluate_size(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    muc_expr product = muc_expr_const(call->im->graph->pool, 1);
    onnx_shape shape;

    MUC_TRY(find_shape(call, x[0], &shape));
    for (uint32_t i = 0; i < shape.rank; i++)
        product = muc_expr_mul(call->im->graph->pool, product, shape.dims[i]);
    MUC_TRY(muc_expr_status(call->im->graph->pool));
    MUC_TRY(onnx_numbers_new(call->im, MUC_I64, 0, NULL, out));
    set_dim(call, product, &(*out)->items[0]);
    call->shape_only = true;
    return MUC_OK;
}

/* ---- the same elements in another shape ---- */

static muc_status reshaped(onnx_call *call, const onnx_numbers *x, uint32_t rank,
                           const uint32_t *dims, onnx_numbers **out)
{
    onnx_numbers *numbers;

    if (rank > MUC_MAX_RANK)
        return MUC_OK;
    MUC_TRY(onnx_numbers_new(call->im, x->dtype, rank, dims, &numbers));
    if (!numbers || numbers->count != x->count)
        return MUC_OK;
    memcpy(numbers->items, x->items, x->count * sizeof(*x->items));
    *out = numbers;
    return MUC_OK;
}

/* bit i: dimension i of `rank`, as axes name it */
static muc_status axes_set(onnx_call *call, const int64_t *axes, size_t count, uint32_t rank,
                           uint32_t *set)
{
    *set = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t axis;

        MUC_TRY(onnx_axis(call, axes[i], rank, &axis));
        *set |= 1u << axis;
    }
    return MUC_OK;
}

muc_status onnx_evaluate_unsqueeze(onnx_call *call, const onnx_numbers *const *x,
                                   onnx_numbers **out)
{
    uint32_t dims[MUC_MAX_RANK], rank, set;
    const int64_t *axes;
    size_t count;

    if (!x[0] || (call->version >= 13 && !x[1]))
        return MUC_OK;
    MUC_TRY(onnx_operand_integers(call, "axes", 1, &axes, &count));
    if (!axes || count + x[0]->rank > MUC_MAX_RANK)
        return MUC_OK;
    rank = x[0]->rank + (uint32_t)count;
    MUC_TRY(axes_set(call, axes, count, rank, &set));
    for (uint32_t i = 0, from = 0; i < rank; i++)
        dims[i] = set >> i & 1 || from >= x[0]->rank ? 1 : x[0]->dims[from++];
    return reshaped(call, x[0], rank, dims, out);
}

muc_status onnx_evaluate_squeeze(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    uint32_t dims[MUC_MAX_RANK], rank = 0, set = 0;
    const int64_t *axes;
    size_t count;

    if (!x[0] || (onnx_has_input(call, 1) && !x[1]))
        return MUC_OK;
    MUC_TRY(onnx_operand_integers(call, "axes", 1, &axes, &count));
    if (axes)
        MUC_TRY(axes_set(call, axes, count, x[0]->rank, &set));
    for (uint32_t i = 0; i < x[0]->rank; i++)
        if (axes ? !(set >> i & 1) : x[0]->dims[i] != 1)
            dims[rank++] = x[0]->dims[i];
    return reshaped(call, x[0], rank, dims, out);
}

muc_status onnx_evaluate_reshape(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    onnx_shape from = { 0 }, to;
    uint32_t dims[MUC_MAX_RANK];
    int64_t allow_zero;

    MUC_TRY(onnx_integer(call, "allowzero", 0, &allow_zero));
    if (!x[0] || !x[1])
        return MUC_OK;
    from.rank = x[0]->rank;
    for (uint32_t i = 0; i < from.rank; i++)
        from.dims[i] = muc_expr_const(call->im->graph->pool, x[0]->dims[i]);
    MUC_TRY(onnx_reshape_dims(call, &from, x[1], allow_zero != 0, &to));
    for (uint32_t i = 0; i < to.rank; i++) {
        if (!muc_expr_is_const(call->im->graph->pool, to.dims[i]))
            return MUC_OK;
        dims[i] = muc_expr_get(call->im->graph->pool, to.dims[i])->immediate;
    }
    return reshaped(call, x[0], to.rank, dims, out);
}

/* ---- elements moved ---- */

muc_status onnx_evaluate_concat(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    uint32_t count = (uint32_t)call->proto->n_input, total = 0;
    onnx_numbers *numbers;
    int64_t axis;

    MUC_TRY(onnx_integer(call, "axis", 0, &axis));
    if (count == 0)
        return MUC_OK; /* for the import to name */
    for (uint32_t i = 0; i < count; i++) {
        if (!x[i] || x[i]->rank != 1 || x[i]->dtype != x[0]->dtype)
            return MUC_OK; /* of shapes, which are vectors */
        total += x[i]->count;
    }
    MUC_TRY(onnx_numbers_new(call->im, x[0]->dtype, 1, &total, &numbers));
    for (uint32_t i = 0, at = 0; numbers && i < count; at += x[i++]->count)
        memcpy(numbers->items + at, x[i]->items, x[i]->count * sizeof(*x[i]->items));
    *out = numbers;
    return MUC_OK;
}

/* of vectors */
muc_status onnx_evaluate_gather(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    onnx_numbers *numbers;
    int64_t axis;

    MUC_TRY(onnx_integer(call, "axis", 0, &axis));
    if (!x[0] || !x[1] || x[0]->rank != 1)
        return MUC_OK;
    MUC_TRY(onnx_numbers_new(call->im, x[0]->dtype, x[1]->rank, x[1]->dims, &numbers));
    for (uint32_t i = 0; numbers && i < numbers->count; i++) {
        int64_t index = x[1]->items[i].integer;

        if (x[1]->items[i].expr != MUC_EXPR_NONE)
            return MUC_OK;
        index += index < 0 ? x[0]->count : 0;
        if (index < 0 || index >= x[0]->count)
            return onnx_fail(call, MUC_MALFORMED, "index %" PRId64 " of %u elements", index,
                             x[0]->count);
        numbers->items[i] = x[0]->items[index];
    }
    *out = numbers;
    return MUC_OK;
}

static bool all_const(const onnx_numbers *x)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (x->items[i].expr != MUC_EXPR_NONE)
            return false;
    return true;
}

/* Where elements of a result lie among those of x: at first + sum of index * steps. */
typedef struct moved {
    uint32_t rank, dims[MUC_MAX_RANK];
    int64_t first, steps[MUC_MAX_RANK];
} moved;

/* x itself */
static moved all_of(const onnx_numbers *x)
{
    moved m = { .rank = x->rank };
    int64_t step = 1;

    for (uint32_t i = x->rank; i-- > 0; step *= x->dims[i]) {
        m.dims[i] = x->dims[i];
        m.steps[i] = step;
    }
    return m;
}

static muc_status take_moved(onnx_call *call, const onnx_numbers *x, const moved *m,
                             onnx_numbers **out)
{
    onnx_numbers *numbers;

    MUC_TRY(onnx_numbers_new(call->im, x->dtype, m->rank, m->dims, &numbers));
    for (uint32_t i = 0; numbers && i < numbers->count; i++) {
        int64_t at = m->first;
        uint32_t rest = i;

        for (uint32_t d = m->rank; d-- > 0; rest /= m->dims[d])
            at += m->steps[d] * (rest % m->dims[d]);
        numbers->items[i] = x->items[at];
    }
    *out = numbers;
    return MUC_OK;
}

muc_status onnx_evaluate_transpose(onnx_call *call, const onnx_numbers *const *x,
                                   onnx_numbers **out)
{
    uint32_t seen = 0;
    moved all, m;
    const int64_t *perm;
    size_t count;

    MUC_TRY(onnx_integers(call, "perm", &perm, &count));
    if (!x[0] || (perm && count != x[0]->rank))
        return MUC_OK;
    all = all_of(x[0]);
    m = all;
    for (uint32_t i = 0; i < m.rank; i++) {
        int64_t from = perm ? perm[i] : m.rank - 1 - i;

        if (from < 0 || from >= m.rank || seen >> from & 1)
            return MUC_OK; /* for the import to name */
        seen |= 1u << from;
        m.dims[i] = all.dims[from];
        m.steps[i] = all.steps[from];
    }
    return take_moved(call, x[0], &m, out);
}

/* one axis of a slice by constants */
static muc_status cut(onnx_call *call, moved *m, uint32_t axis, int64_t start, int64_t end,
                      int64_t step)
{
    const onnx_number limits[] = { { .integer = start }, { .integer = end } };
    muc_expr_pool *pool = call->im->graph->pool;
    onnx_range range;

    MUC_TRY(onnx_slice_range(call, muc_expr_const(pool, m->dims[axis]), &limits[0], &limits[1],
                             step, &range));
    m->first += m->steps[axis] * muc_expr_get(pool, range.start)->immediate;
    m->dims[axis] = muc_expr_get(pool, range.size)->immediate;
    /* a step beyond the dimension leaves one element, and may be any number */
    m->steps[axis] = m->dims[axis] > 1 ? m->steps[axis] * step : 0;
    return MUC_OK;
}

muc_status onnx_evaluate_slice(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    static const char *const names[] = { "starts", "ends", "axes", "steps" };
    const int64_t *bounds[MUC_COUNT(names)];
    size_t counts[MUC_COUNT(names)];
    uint32_t seen = 0;
    moved m;

    if (!x[0])
        return MUC_OK;
    for (uint32_t i = 1; i < call->proto->n_input; i++)
        if (onnx_has_input(call, i) && (!x[i] || !all_const(x[i])))
            return MUC_OK;
    for (uint32_t i = 0; i < MUC_COUNT(names); i++)
        MUC_TRY(onnx_operand_integers(call, names[i], i + 1, &bounds[i], &counts[i]));
    m = all_of(x[0]);
    for (size_t i = 0; i < MUC_COUNT(names); i++)
        if (i < 2 ? !bounds[i] || counts[i] != counts[0] : bounds[i] && counts[i] != counts[0])
            return MUC_OK; /* for the import to name */
    for (size_t i = 0; i < counts[0]; i++) {
        int64_t step = bounds[3] ? bounds[3][i] : 1;
        uint32_t axis;

        MUC_TRY(onnx_axis(call, bounds[2] ? bounds[2][i] : (int64_t)i, m.rank, &axis));
        if (step == 0 || seen >> axis & 1)
            return MUC_OK;
        seen |= 1u << axis;
        MUC_TRY(cut(call, &m, axis, bounds[0][i], bounds[1][i], step));
    }
    return take_moved(call, x[0], &m, out);
}

/* dimensions that a vector of numbers asks for; false if they are not known */
static bool constant_dims(const onnx_numbers *x, uint32_t *rank, uint32_t *dims)
{
    if (x->rank > 1 || x->count > MUC_MAX_RANK || !all_const(x))
        return false;
    *rank = x->count;
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->items[i].integer < 0 || x->items[i].integer > UINT32_MAX)
            return false;
        dims[i] = (uint32_t)x->items[i].integer;
    }
    return true;
}

muc_status onnx_fill_value(onnx_call *call, muc_dtype *dtype, onnx_number *out)
{
    const Onnx__AttributeProto *value;
    onnx_numbers *numbers;
    muc_tensor_view view;

    MUC_TRY(onnx_attribute(call, "value", &value));
    *dtype = MUC_F32;
    *out = (onnx_number){ 0 };
    if (!value)
        return MUC_OK;
    if (!value->t)
        return onnx_fail(call, MUC_MALFORMED, "attribute 'value' is no tensor");
    MUC_TRY(muc_onnx_tensor(call->im->ctx, &call->im->store, value->t, &view));
    if (view.elements != 1)
        return onnx_fail(call, MUC_MALFORMED, "attribute 'value' has %" PRIu64 " elements",
                         view.elements);
    MUC_TRY(onnx_numbers_of_view(call->im, &view, &numbers));
    *dtype = view.dtype;
    *out = numbers->items[0];
    return MUC_OK;
}

muc_status onnx_evaluate_constant_of_shape(onnx_call *call, const onnx_numbers *const *x,
                                           onnx_numbers **out)
{
    uint32_t rank, dims[MUC_MAX_RANK];
    onnx_number value;
    muc_dtype dtype;

    MUC_TRY(onnx_fill_value(call, &dtype, &value));
    if (!x[0] || !constant_dims(x[0], &rank, dims))
        return MUC_OK;
    MUC_TRY(onnx_numbers_new(call->im, dtype, rank, dims, out));
    for (uint32_t i = 0; *out && i < (*out)->count; i++)
        (*out)->items[i] = value;
    return MUC_OK;
}

/* of constants */
muc_status onnx_evaluate_range(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    static const int64_t most = INT64_C(1) << 40;
    int64_t start, limit, step;
    uint32_t count;

    for (int i = 0; i < 3; i++)
        if (!x[i] || x[i]->count != 1 || onnx_is_real(x[i]->dtype) || !all_const(x[i]))
            return MUC_OK;
    start = x[0]->items[0].integer;
    limit = x[1]->items[0].integer;
    step = x[2]->items[0].integer;
    if (step == 0 || start < -most || start > most || limit < -most || limit > most ||
        step < -most || step > most ||
        (step > 0 ? limit - start : start - limit) > ONNX_MAX_NUMBERS)
        return MUC_OK;
    count = 0;
    for (int64_t i = start; step > 0 ? i < limit : i > limit; i += step)
        count++;
    MUC_TRY(onnx_numbers_new(call->im, x[0]->dtype, 1, &count, out));
    for (uint32_t i = 0; *out && i < count; i++)
        (*out)->items[i].integer = start + (int64_t)i * step;
    return MUC_OK;
}

/* one element repeated, or a vector as it is */
muc_status onnx_evaluate_expand(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    uint32_t rank, dims[MUC_MAX_RANK];
    onnx_numbers *numbers;

    if (!x[0] || !x[1] || x[0]->count != 1 || !constant_dims(x[1], &rank, dims) ||
        x[0]->rank > rank)
        return MUC_OK;
    MUC_TRY(onnx_numbers_new(call->im, x[0]->dtype, rank, dims, &numbers));
    for (uint32_t i = 0; numbers && i < numbers->count; i++)
        numbers->items[i] = x[0]->items[0];
    *out = numbers;
    return MUC_OK;
}

/* of all elements of a vector */
muc_status onnx_evaluate_reduce_prod(onnx_call *call, const onnx_numbers *const *x,
                                     onnx_numbers **out)
{
    static const uint32_t one[] = { 1 };
    muc_expr_pool *pool = call->im->graph->pool;
    muc_expr product = muc_expr_const(pool, 1), factor;
    int64_t keep;

    MUC_TRY(onnx_integer(call, "keepdims", 1, &keep));
    if (!x[0] || x[0]->rank != 1 || onnx_is_real(x[0]->dtype))
        return MUC_OK;
    for (uint32_t i = 0; i < x[0]->count; i++) {
        if (!onnx_number_expr(call->im, x[0], i, &factor))
            return MUC_OK;
        product = muc_expr_mul(pool, product, factor);
    }
    MUC_TRY(muc_expr_status(pool));
    MUC_TRY(onnx_numbers_new(call->im, x[0]->dtype, keep != 0, one, out));
    set_dim(call, product, &(*out)->items[0]);
    return MUC_OK;
}
