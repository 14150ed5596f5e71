/* shape_llm.c - rules of the operators that transformers of models/ are built of. */
#include "graph/shape.h"

#include <stdio.h>

static void set_output(const muc_rule *r, muc_expr rows, muc_expr columns)
{
    r->outputs[0].dtype = MUC_F32;
    r->outputs[0].rank = 2;
    r->outputs[0].dims[0] = rows;
    r->outputs[0].dims[1] = columns;
}

/* input i is an f32 activation [rows, columns]; columns 0: any */
static muc_status expect_rows(const muc_rule *r, uint32_t i, uint64_t columns)
{
    const muc_tensor *x = muc_rule_input(r, i);
    char expected[64];

    snprintf(expected, sizeof(expected), columns ? "f32 [rows, %llu]" : "f32 [rows, columns]",
             (unsigned long long)columns);
    if (x->dtype != MUC_F32 || x->rank != 2 || !muc_expr_is_const(r->graph->pool, x->dims[1]) ||
        (columns && muc_expr_get(r->graph->pool, x->dims[1])->immediate != columns))
        return muc_rule_unexpected(r, i, "%s", expected);
    return MUC_OK;
}

/* input i is a float vector of the given length, an expression */
static muc_status expect_vector(const muc_rule *r, uint32_t i, muc_expr length)
{
    char expected[64];

    if (muc_rule_is_float(r, i) && muc_rule_input(r, i)->rank == 1 &&
        muc_rule_input(r, i)->dims[0] == length)
        return MUC_OK;
    snprintf(expected, sizeof(expected), "a float vector of %u",
             muc_expr_get(r->graph->pool, length)->hi);
    return muc_rule_unexpected(r, i, "%s", expected);
}

muc_status muc_shape_embed(const muc_rule *r)
{
    const muc_tensor *tokens = muc_rule_input(r, 0), *table = muc_rule_input(r, 1);

    if (tokens->rank != 1 || muc_dtype_get(tokens->dtype)->kind != MUC_DTYPE_INTEGER)
        return muc_rule_unexpected(r, 0, "a vector of integers");
    if (table->rank != 2 || !(muc_rule_is_float(r, 1) || table->quantization))
        return muc_rule_unexpected(r, 1, "a float matrix");
    set_output(r, tokens->dims[0], table->dims[1]);
    return MUC_OK;
}

/* weight [N, K] of x's type; of f32, any type of real numbers or quantized; quantized if x is */
muc_status muc_shape_linear(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0), *weight = muc_rule_input(r, 1);
    bool types_fit = x->quantization       ? weight->quantization != NULL
                     : x->dtype == MUC_F32 ? muc_rule_is_float(r, 1) || weight->quantization
                                           : weight->dtype == x->dtype;

    if (x->rank == 0)
        return muc_rule_unexpected(r, 0, "rows of elements");
    if (weight->rank != 2 || !types_fit || weight->dims[1] != x->dims[x->rank - 1])
        return muc_rule_unexpected(r, 1, "a %s matrix [N, %u]",
                                   x->quantization ? "quantized" : "float",
                                   muc_expr_get(r->graph->pool, x->dims[x->rank - 1])->hi);
    if (r->node->input_count == 3 && x->dtype == MUC_F32)
        MUC_TRY(expect_vector(r, 2, weight->dims[0]));
    else if (r->node->input_count == 3)
        MUC_TRY(muc_rule_expect_vector(r, 2, weight->dims[0]));
    muc_rule_like(r, 0, x);
    r->outputs[0].dims[x->rank - 1] = weight->dims[0];
    return MUC_OK;
}

/* gain has the dimensions of x from axis on */
static muc_status normalise_from(const muc_rule *r, uint32_t axis)
{
    const muc_tensor *x = muc_rule_input(r, 0), *gain = muc_rule_input(r, 1);

    for (uint32_t i = axis; i < x->rank; i++)
        if (gain->rank != x->rank - axis || gain->dims[i - axis] != x->dims[i])
            return muc_rule_unexpected(r, 1, "input 0's dimensions from %u on", axis);
    if (x->dtype == MUC_F32 || x->quantization ? !muc_rule_is_float(r, 1) : gain->dtype != x->dtype)
        return muc_rule_unexpected(r, 1, "input 0's type");
    muc_rule_like(r, 0, x);
    return MUC_OK;
}

muc_status muc_shape_rmsnorm(const muc_rule *r)
{
    const muc_attribute *group = muc_node_attribute(r->node, MUC_KEY_GROUP);
    const muc_tensor *x = muc_rule_input(r, 0);
    uint32_t columns, axis;

    if (muc_node_real(r->node, MUC_KEY_EPSILON) < 0)
        return muc_rule_fail(r, "expected an epsilon of at least 0");
    if (x->rank == 0)
        return muc_rule_unexpected(r, 0, "rows of elements");
    if (muc_node_attribute(r->node, MUC_KEY_AXIS)) {
        MUC_TRY(muc_rule_axis(r, MUC_KEY_AXIS, x->rank, &axis));
        return group ? muc_rule_fail(r, "both axis and group") : normalise_from(r, axis);
    }
    if (!group)
        return normalise_from(r, x->rank - 1);
    MUC_TRY(expect_rows(r, 0, 0));
    columns = muc_expr_get(r->graph->pool, x->dims[1])->immediate;
    if (group->value.integer < 1 || group->value.integer > columns ||
        columns % (uint32_t)group->value.integer != 0)
        return muc_rule_fail(r, "expected a group that divides the columns");
    MUC_TRY(expect_vector(r, 1, muc_rule_dim(r, (uint64_t)group->value.integer)));
    set_output(r, x->dims[0], x->dims[1]);
    return MUC_OK;
}

/* heads and head_dim are sensible; their product */
static muc_status head_columns(const muc_rule *r, muc_attribute_key heads, uint64_t *out)
{
    int64_t count = muc_node_integer(r->node, heads);
    int64_t width = muc_node_integer(r->node, MUC_KEY_HEAD_DIM);

    if (count < 1 || count > 65536 || width < 1 || width > 65536)
        return muc_rule_fail(r, "expected 1..65536 heads of 1..65536 columns");
    *out = (uint64_t)count * (uint64_t)width;
    return MUC_OK;
}

/* rows positions of input i hold position .. position + rows of input 0 */
static muc_status expect_positions(const muc_rule *r, uint32_t i)
{
    muc_expr_pool *pool = r->graph->pool;
    muc_expr end =
        muc_expr_add(pool, muc_node_expr(r->node, MUC_KEY_POSITION), muc_rule_input(r, 0)->dims[0]);

    MUC_TRY(muc_expr_status(pool));
    if (muc_expr_get(pool, end)->may_overflow ||
        muc_expr_get(pool, end)->hi > muc_expr_get(pool, muc_rule_input(r, i)->dims[0])->lo)
        return muc_rule_unexpected(r, i,
                                   "a row for each position (position + rows may exceed them)");
    return MUC_OK;
}

muc_status muc_shape_rope(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0), *cosines = muc_rule_input(r, 1);
    uint64_t columns, half;

    MUC_TRY(head_columns(r, MUC_KEY_HEADS, &columns));
    MUC_TRY(expect_rows(r, 0, columns));
    MUC_TRY(expect_rows(r, 1, 0));
    half = muc_expr_get(r->graph->pool, cosines->dims[1])->immediate;
    if (half == 0 || 2 * half > (uint64_t)muc_node_integer(r->node, MUC_KEY_HEAD_DIM))
        return muc_rule_unexpected(r, 1, "f32 [rows, up to half of head_dim]");
    for (uint32_t i = 1; i <= 2; i++) {
        MUC_TRY(expect_rows(r, i, half));
        MUC_TRY(expect_positions(r, i));
    }
    set_output(r, x->dims[0], x->dims[1]);
    return MUC_OK;
}

/* a state with a row for each position: input 3 or 4, f32, or i8 if scales (5 and 6) follow */
static muc_status expect_cache(const muc_rule *r, uint32_t i, uint64_t kv_columns)
{
    bool is_scales = i > 4, is_small = !is_scales && r->node->input_count == 7;
    uint64_t columns =
        is_scales ? (uint64_t)muc_node_integer(r->node, MUC_KEY_KV_HEADS) : kv_columns;
    const muc_tensor *cache = muc_rule_input(r, i);

    if (cache->kind != MUC_TENSOR_STATE || cache->dtype != (is_small ? MUC_I8 : MUC_F32) ||
        cache->rank != 2 || cache->dims[1] != muc_rule_dim(r, columns))
        return muc_rule_unexpected(r, i, "a state, %s [context, %llu]", is_small ? "i8" : "f32",
                                   (unsigned long long)columns);
    return expect_positions(r, i);
}

muc_status muc_shape_attention(const muc_rule *r)
{
    uint64_t columns, kv_columns;

    MUC_TRY(head_columns(r, MUC_KEY_HEADS, &columns));
    MUC_TRY(head_columns(r, MUC_KEY_KV_HEADS, &kv_columns));
    if (columns % kv_columns != 0)
        return muc_rule_fail(r, "expected kv_heads that divide heads");
    if (muc_node_integer_or(r->node, MUC_KEY_SEEN, 1) < 1 ||
        !(muc_node_real_or(r->node, MUC_KEY_CAP, 1) > 0))
        return muc_rule_fail(r, "expected at least one position seen, and a cap above 0");
    if (r->node->input_count == 7 && !(muc_node_real(r->node, MUC_KEY_SCALE) > 0))
        return muc_rule_fail(r, "expected a scale above 0 with caches of int8");
    MUC_TRY(expect_rows(r, 0, columns));
    for (uint32_t i = 1; i <= 2; i++) {
        MUC_TRY(expect_rows(r, i, kv_columns));
        if (muc_rule_input(r, i)->dims[0] != muc_rule_input(r, 0)->dims[0])
            return muc_rule_unexpected(r, i, "as many rows as the queries");
    }
    if (r->node->input_count == 6 || (r->node->input_count == 7 && !muc_rule_input(r, 5)))
        return muc_rule_fail(r, "expected the scales of both caches or of none");
    for (uint32_t i = 3; i < r->node->input_count; i++)
        MUC_TRY(expect_cache(r, i, kv_columns));
    set_output(r, muc_rule_input(r, 0)->dims[0], muc_rule_input(r, 0)->dims[1]);
    return MUC_OK;
}
