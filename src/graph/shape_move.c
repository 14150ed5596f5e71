/* shape_move.c - rules of operators that move elements about, choose among them or make them. */
#include "graph/shape.h"

#include <stdio.h>
#include <string.h>

#include "graph/factors.h"
#include "graph/graph_check.h"

enum { MOST_EXTENT = 1 << 24 };

static bool product_of(const muc_rule *r, const muc_tensor *tensor, muc_factors *out)
{
    *out = (muc_factors){ .constant = 1 };
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!muc_factors_times(r->graph->pool, out, tensor->dims[i]))
            return false;
    return true;
}

/* Both have the same number of elements. */
static muc_status require_size(const muc_rule *r, const muc_tensor *a, const muc_tensor *b)
{
    muc_factors p, q;

    if (!product_of(r, a, &p) || !product_of(r, b, &q))
        return muc_rule_unexpected(r, 0, "as many elements as shape has");
    if (muc_factors_is_equal(&p, &q))
        return MUC_OK;
    muc_factors_cancel(r->graph->pool, &p, &q, false);
    if ((p.count == 0 && q.count == 0) || p.constant > UINT32_MAX || q.constant > UINT32_MAX)
        return muc_rule_unexpected(r, 0, "as many elements as shape has");
    return muc_rule_require(r, "as many elements as shape has",
                            muc_factors_expr(r->graph->pool, &p), true,
                            muc_factors_expr(r->graph->pool, &q));
}

/* output 0 has the dimensions of an EXPRS attribute */
static muc_status set_shape(const muc_rule *r, muc_attribute_key key)
{
    const muc_attribute *shape = muc_node_attribute(r->node, key);
    muc_tensor *out = &r->outputs[0];

    if (shape->value.exprs.count > MUC_GRAPH_MAX_RANK)
        return muc_rule_fail(r, "%s has %u dimensions, expected at most %d",
                             muc_attribute_get(key)->name, shape->value.exprs.count,
                             MUC_GRAPH_MAX_RANK);
    out->dtype = muc_rule_input(r, 0)->dtype;
    out->rank = shape->value.exprs.count;
    if (out->rank)
        memcpy(out->dims, shape->value.exprs.items, out->rank * sizeof(*out->dims));
    return MUC_OK;
}

muc_status muc_shape_reshape(const muc_rule *r)
{
    MUC_TRY(set_shape(r, MUC_KEY_SHAPE));
    return require_size(r, muc_rule_input(r, 0), &r->outputs[0]);
}

muc_status muc_shape_expand(const muc_rule *r)
{
    uint32_t rank;
    muc_expr dims[MUC_GRAPH_MAX_RANK];

    MUC_TRY(set_shape(r, MUC_KEY_SHAPE));
    rank = r->outputs[0].rank;
    memcpy(dims, r->outputs[0].dims, sizeof(dims));
    MUC_TRY(muc_rule_broadcast(r, 0, &rank, dims));
    if (rank != r->outputs[0].rank || memcmp(dims, r->outputs[0].dims, rank * sizeof(*dims)) != 0)
        return muc_rule_unexpected(r, 0, "a shape that broadcasts to the attribute");
    return MUC_OK;
}

muc_status muc_shape_transpose(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0);
    const int64_t *perm = muc_node_integers(r->node, MUC_KEY_PERM);
    uint32_t seen = 0;

    MUC_TRY(muc_rule_integers(r, MUC_KEY_PERM, x->rank, 0, (int64_t)x->rank - 1));
    muc_rule_like(r, 0, x);
    for (uint32_t i = 0; i < x->rank; i++) {
        seen |= 1u << perm[i];
        r->outputs[0].dims[i] = x->dims[perm[i]];
    }
    if (seen != (1u << x->rank) - 1)
        return muc_rule_fail(r, "perm holds a dimension twice");
    return MUC_OK;
}

muc_status muc_shape_concat(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0);
    muc_tensor *out = &r->outputs[0];
    uint32_t axis;

    MUC_TRY(muc_rule_axis(r, MUC_KEY_AXIS, x->rank, &axis));
    muc_rule_like(r, 0, x);
    for (uint32_t i = 1; i < r->node->input_count; i++) {
        const muc_tensor *t = muc_rule_input(r, i);
        muc_tensor same;

        if (!t)
            return muc_rule_fail(r, "input %u is absent", i);
        same = *t;
        if (same.rank == x->rank)
            same.dims[axis] = x->dims[axis];
        if (!muc_tensor_same_shape(&same, x))
            return muc_rule_unexpected(r, i, "input 0's type and shape but for dimension %u", axis);
        out->dims[axis] = muc_expr_add(r->graph->pool, out->dims[axis], t->dims[axis]);
    }
    return MUC_OK;
}

/* from the first of size elements to the last: (size - 1) * apart; fails beyond 32 bits */
static muc_status span_of(const muc_rule *r, muc_expr size, uint64_t apart, muc_expr *out)
{
    muc_expr_pool *pool = r->graph->pool;
    uint64_t span = apart;
    uint32_t count;

    if (!muc_rule_const(r, size, &count)) {
        muc_expr more = muc_expr_sub_const(pool, muc_expr_max(pool, size, muc_rule_dim(r, 1)), 1);

        *out = muc_expr_mul_const(pool, more, (uint32_t)apart);
        return muc_expr_status(pool);
    }
    if (count == 0)
        span = 0;
    else if (!muc_mul_u64(apart, count - 1, &span) || span > UINT32_MAX)
        return muc_rule_fail(r, "%u elements, %llu apart, are not part of a dimension", count,
                             (unsigned long long)apart);
    *out = muc_rule_dim(r, span);
    return muc_expr_status(pool);
}

/* start + (size - 1) * step is inside, unless size is 0 */
static muc_status require_slice(const muc_rule *r, uint32_t axis, muc_expr start, muc_expr size,
                                int64_t step)
{
    muc_expr_pool *pool = r->graph->pool;
    muc_expr extent = muc_rule_input(r, 0)->dims[axis], none = muc_rule_dim(r, 0);
    muc_expr span = MUC_EXPR_NONE, end;
    char what[64];
    const muc_expr_node *node = muc_expr_get(pool, size);

    if (node->hi == 0)
        return MUC_OK;
    if (step == 1 && node->op == MUC_EXPR_SUB && node->operands[1] == start &&
        muc_expr_holds(pool, node->operands[0], false, extent) == MUC_EXPR_ALWAYS)
        return MUC_OK;
    MUC_TRY(span_of(r, size, (uint64_t)(step < 0 ? -step : step), &span));
    snprintf(what, sizeof(what), "way back of the slice of dimension %u", axis);
    if (step < 0)
        MUC_TRY(muc_rule_require(r, what, span, false, start));
    end = muc_expr_add_const(pool, step < 0 ? start : muc_expr_add(pool, start, span), 1);
    if (muc_expr_get(pool, size)->lo == 0)
        end = muc_expr_sel(pool, size, end, none);
    snprintf(what, sizeof(what), "end of the slice of dimension %u", axis);
    return muc_rule_require(r, what, end, false, extent);
}

muc_status muc_shape_slice(const muc_rule *r)
{
    const muc_attribute *axes = muc_node_attribute(r->node, MUC_KEY_AXES);
    const muc_expr *starts = muc_node_attribute(r->node, MUC_KEY_STARTS)->value.exprs.items;
    const muc_expr *sizes = muc_node_attribute(r->node, MUC_KEY_SIZES)->value.exprs.items;
    const int64_t *steps = muc_node_integers(r->node, MUC_KEY_STEPS);
    uint32_t count = axes->value.integers.count, rank = muc_rule_input(r, 0)->rank, mask = 0;

    MUC_TRY(muc_rule_integers(r, MUC_KEY_AXES, count, 0, (int64_t)rank - 1));
    MUC_TRY(muc_rule_integers(r, MUC_KEY_STEPS, count, -(int64_t)UINT32_MAX, UINT32_MAX));
    MUC_TRY(muc_rule_exprs(r, MUC_KEY_STARTS, count));
    MUC_TRY(muc_rule_exprs(r, MUC_KEY_SIZES, count));
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis = (uint32_t)axes->value.integers.items[i];

        if (mask >> axis & 1 || (steps && steps[i] == 0))
            return muc_rule_fail(r, "an axis twice, or a step of 0");
        mask |= 1u << axis;
        MUC_TRY(require_slice(r, axis, starts[i], sizes[i], steps ? steps[i] : 1));
        r->outputs[0].dims[axis] = sizes[i];
    }
    return MUC_OK;
}

muc_status muc_shape_split(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0);
    const muc_expr *sizes = muc_node_attribute(r->node, MUC_KEY_SIZES)->value.exprs.items;
    muc_expr sum = muc_rule_dim(r, 0);
    uint32_t axis;

    MUC_TRY(muc_rule_axis(r, MUC_KEY_AXIS, x->rank, &axis));
    MUC_TRY(muc_rule_exprs(r, MUC_KEY_SIZES, r->node->output_count));
    for (uint32_t i = 0; i < r->node->output_count; i++) {
        muc_rule_like(r, i, x);
        r->outputs[i].dims[axis] = sizes[i];
        sum = muc_expr_add(r->graph->pool, sum, sizes[i]);
    }
    return muc_rule_require(r, "the axis and the sum of sizes", x->dims[axis], true, sum);
}

/* dim + change, which must not fall below 0 */
static muc_status change(const muc_rule *r, muc_expr dim, int64_t by, muc_expr *out)
{
    muc_expr_pool *pool = r->graph->pool;

    if (by >= 0) {
        *out = muc_expr_add(pool, dim, muc_rule_dim(r, (uint64_t)by));
    } else {
        if (-by > muc_expr_get(pool, dim)->lo)
            return muc_rule_fail(r, "pads remove %lld of %u elements", (long long)-by,
                                 muc_expr_get(pool, dim)->lo);
        *out = muc_expr_sub(pool, dim, muc_rule_dim(r, (uint64_t)-by));
    }
    return muc_expr_status(pool);
}

muc_status muc_shape_pad(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0);
    const int64_t *pads = muc_node_integers(r->node, MUC_KEY_PADS);

    MUC_TRY(muc_rule_integers(r, MUC_KEY_PADS, 2 * x->rank, -MOST_EXTENT, MOST_EXTENT));
    if (muc_rule_input(r, 1)) {
        MUC_TRY(muc_rule_expect_type(r, 1));
        MUC_TRY(muc_rule_expect_scalar(r, 1));
    }
    muc_rule_like(r, 0, x);
    for (uint32_t i = 0; i < x->rank; i++) {
        muc_expr *dim = &r->outputs[0].dims[i];

        if (muc_node_word_or(r->node, MUC_KEY_MODE, MUC_WORD_CONSTANT) != MUC_WORD_CONSTANT &&
            (pads[i] > 0 || pads[x->rank + i] > 0))
            MUC_TRY(muc_rule_require(r, "an element to pad with", muc_rule_dim(r, 1), false, *dim));
        MUC_TRY(change(r, *dim, pads[i] < 0 ? pads[i] : 0, dim));
        MUC_TRY(change(r, *dim, pads[x->rank + i] < 0 ? pads[x->rank + i] : 0, dim));
        MUC_TRY(change(r, *dim, (pads[i] > 0 ? pads[i] : 0), dim));
        MUC_TRY(change(r, *dim, (pads[x->rank + i] > 0 ? pads[x->rank + i] : 0), dim));
    }
    return MUC_OK;
}

muc_status muc_shape_gather(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0), *indices = muc_rule_input(r, 1);
    muc_tensor *out = &r->outputs[0];
    uint32_t axis, batch;

    MUC_TRY(muc_rule_expect_indices(r, 1));
    MUC_TRY(muc_rule_axis(r, MUC_KEY_AXIS, x->rank, &axis));
    MUC_TRY(muc_rule_integer(r, MUC_KEY_BATCH_DIMS, 0, axis));
    batch = (uint32_t)muc_node_integer_or(r->node, MUC_KEY_BATCH_DIMS, 0);
    if (batch > indices->rank || memcmp(x->dims, indices->dims, batch * sizeof(*x->dims)) != 0)
        return muc_rule_unexpected(r, 1, "input 0's first %u dimensions", batch);
    if (x->rank + indices->rank - batch - 1 > MUC_GRAPH_MAX_RANK)
        return muc_rule_unexpected(r, 1, "a lower rank");
    out->dtype = x->dtype;
    out->rank = x->rank + indices->rank - batch - 1;
    memcpy(out->dims, x->dims, axis * sizeof(*out->dims));
    memcpy(out->dims + axis, indices->dims + batch, (indices->rank - batch) * sizeof(*out->dims));
    memcpy(out->dims + axis + indices->rank - batch, x->dims + axis + 1,
           (x->rank - axis - 1) * sizeof(*out->dims));
    return MUC_OK;
}

muc_status muc_shape_resize(const muc_rule *r)
{
    const muc_attribute *scales = muc_node_attribute(r->node, MUC_KEY_SCALES);
    const muc_attribute *roi = muc_node_attribute(r->node, MUC_KEY_ROI);
    const muc_tensor *x = muc_rule_input(r, 0);

    MUC_TRY(muc_rule_exprs(r, MUC_KEY_SIZES, x->rank));
    if (scales && scales->value.reals.count != x->rank)
        return muc_rule_fail(r, "%u scales of %u dimensions", scales->value.reals.count, x->rank);
    for (uint32_t i = 0; scales && i < x->rank; i++)
        if (!(scales->value.reals.items[i] > 0))
            return muc_rule_fail(r, "a scale of %g", scales->value.reals.items[i]);
    if (muc_node_word_or(r->node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL) ==
            MUC_WORD_TF_CROP_AND_RESIZE &&
        (!roi || roi->value.reals.count != 2 * x->rank))
        return muc_rule_fail(r, "expected a roi of %u items", 2 * x->rank);
    return set_shape(r, MUC_KEY_SIZES);
}

muc_status muc_shape_one_hot(const muc_rule *r)
{
    const muc_tensor *indices = muc_rule_input(r, 0), *values = muc_rule_input(r, 1);
    muc_tensor *out = &r->outputs[0];
    uint32_t axis, pair;

    MUC_TRY(muc_rule_axis(r, MUC_KEY_AXIS, indices->rank + 1, &axis));
    if (indices->rank == MUC_GRAPH_MAX_RANK)
        return muc_rule_unexpected(r, 0, "a lower rank");
    if (values->rank != 1 || !muc_rule_const(r, values->dims[0], &pair) || pair != 2)
        return muc_rule_unexpected(r, 1, "two values, off and on");
    out->dtype = values->dtype;
    out->rank = indices->rank + 1;
    memcpy(out->dims, indices->dims, axis * sizeof(*out->dims));
    out->dims[axis] = muc_node_expr(r->node, MUC_KEY_SIZE);
    memcpy(out->dims + axis + 1, indices->dims + axis, (indices->rank - axis) * sizeof(*out->dims));
    return MUC_OK;
}

muc_status muc_shape_range(const muc_rule *r)
{
    MUC_TRY(muc_rule_expect_scalar(r, 0));
    MUC_TRY(muc_rule_expect_type(r, 1));
    MUC_TRY(muc_rule_expect_scalar(r, 1));
    r->outputs[0].dtype = muc_rule_input(r, 0)->dtype;
    r->outputs[0].rank = 1;
    r->outputs[0].dims[0] = muc_node_expr(r->node, MUC_KEY_SIZE);
    return MUC_OK;
}

muc_status muc_shape_expressions(const muc_rule *r)
{
    muc_dtype to = (muc_dtype)muc_node_integer(r->node, MUC_KEY_TO);

    if (to != MUC_I64 && to != MUC_I32)
        return muc_rule_fail(r, "to is %s, expected i64 or i32", muc_dtype_get(to)->name);
    r->outputs[0].dtype = to;
    r->outputs[0].rank = 1;
    r->outputs[0].dims[0] =
        muc_rule_dim(r, muc_node_attribute(r->node, MUC_KEY_VALUES)->value.exprs.count);
    return MUC_OK;
}
