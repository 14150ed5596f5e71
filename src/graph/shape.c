/* shape.c - the shape rules that ops.def names: what a node's inputs must be, and what it gives. */
#include "graph/check.h"

#include <stdio.h>

typedef struct rule {
    muc_context *ctx;
    muc_graph *graph;
    const muc_node *node;
    muc_tensor *outputs;
} rule;

static const muc_tensor *input(const rule *r, uint32_t i)
{
    return &r->graph->tensors[r->node->inputs[i]];
}

/* "node 'x': input 1 ('w') is f32 [2, 3], expected ..." */
static muc_status unexpected(const rule *r, uint32_t i, const char *expected)
{
    muc_text text = { 0 };
    muc_status status;

    muc_tensor_print_shape(r->graph, input(r, i), &text);
    status = muc_fail(r->ctx, MUC_MALFORMED, r->graph->name, MUC_NO_OFFSET,
                      "node '%s': input %u ('%s') is %s, expected %s", r->node->name, i,
                      input(r, i)->name, text.data ? text.data : "?", expected);
    muc_text_free(&text);
    return status;
}

static muc_status bad_attribute(const rule *r, const char *expected)
{
    return muc_fail(r->ctx, MUC_MALFORMED, r->graph->name, MUC_NO_OFFSET, "node '%s': expected %s",
                    r->node->name, expected);
}

static bool is_float(const rule *r, uint32_t i)
{
    return muc_dtype_get(input(r, i)->dtype)->kind == MUC_DTYPE_FLOAT;
}

static void set_output(const rule *r, muc_expr rows, muc_expr columns)
{
    r->outputs[0].dtype = MUC_F32;
    r->outputs[0].rank = 2;
    r->outputs[0].dims[0] = rows;
    r->outputs[0].dims[1] = columns;
}

/* input i is an f32 activation [rows, columns]; columns 0: any */
static muc_status expect_rows(const rule *r, uint32_t i, uint64_t columns)
{
    const muc_tensor *x = input(r, i);
    char expected[64];

    snprintf(expected, sizeof(expected), columns ? "f32 [rows, %llu]" : "f32 [rows, columns]",
             (unsigned long long)columns);
    if (x->dtype != MUC_F32 || x->rank != 2 || !muc_expr_is_const(r->graph->pool, x->dims[1]) ||
        (columns && muc_expr_get(r->graph->pool, x->dims[1])->immediate != columns))
        return unexpected(r, i, expected);
    return MUC_OK;
}

/* input i is a float vector of the given length, an expression */
static muc_status expect_vector(const rule *r, uint32_t i, muc_expr length)
{
    char expected[64];

    if (is_float(r, i) && input(r, i)->rank == 1 && input(r, i)->dims[0] == length)
        return MUC_OK;
    snprintf(expected, sizeof(expected), "a float vector of %u",
             muc_expr_get(r->graph->pool, length)->hi);
    return unexpected(r, i, expected);
}

static muc_status shape_embed(const rule *r)
{
    const muc_tensor *tokens = input(r, 0), *table = input(r, 1);

    if (tokens->rank != 1 || muc_dtype_get(tokens->dtype)->kind != MUC_DTYPE_INTEGER)
        return unexpected(r, 0, "a vector of integers");
    if (table->rank != 2 || !is_float(r, 1))
        return unexpected(r, 1, "a float matrix");
    set_output(r, tokens->dims[0], table->dims[1]);
    return MUC_OK;
}

static muc_status shape_linear(const rule *r)
{
    const muc_tensor *x = input(r, 0), *weight = input(r, 1);
    char expected[64];

    MUC_TRY(expect_rows(r, 0, 0));
    if (weight->rank != 2 || !is_float(r, 1) || weight->dims[1] != x->dims[1]) {
        snprintf(expected, sizeof(expected), "a float matrix [N, %u]",
                 muc_expr_get(r->graph->pool, x->dims[1])->immediate);
        return unexpected(r, 1, expected);
    }
    if (r->node->input_count == 3)
        MUC_TRY(expect_vector(r, 2, weight->dims[0]));
    set_output(r, x->dims[0], weight->dims[0]);
    return MUC_OK;
}

static muc_status shape_rmsnorm(const rule *r)
{
    const muc_attribute *group = muc_node_attribute(r->node, MUC_KEY_GROUP);
    const muc_tensor *x = input(r, 0);
    uint32_t columns;

    MUC_TRY(expect_rows(r, 0, 0));
    columns = muc_expr_get(r->graph->pool, x->dims[1])->immediate;
    if (muc_node_real(r->node, MUC_KEY_EPSILON) < 0)
        return bad_attribute(r, "an epsilon of at least 0");
    if (group && (group->value.integer < 1 || group->value.integer > columns ||
                  columns % (uint32_t)group->value.integer != 0))
        return bad_attribute(r, "a group that divides the columns");
    MUC_TRY(expect_vector(
        r, 1, group ? muc_expr_const(r->graph->pool, (uint32_t)group->value.integer) : x->dims[1]));
    set_output(r, x->dims[0], x->dims[1]);
    return MUC_OK;
}

/* heads and head_dim are sensible; their product */
static muc_status head_columns(const rule *r, muc_attribute_key heads, uint64_t *out)
{
    int64_t count = muc_node_integer(r->node, heads);
    int64_t width = muc_node_integer(r->node, MUC_KEY_HEAD_DIM);

    if (count < 1 || count > 65536 || width < 1 || width > 65536)
        return bad_attribute(r, "1..65536 heads of 1..65536 columns");
    *out = (uint64_t)count * (uint64_t)width;
    return MUC_OK;
}

/* rows positions of input i hold position .. position + rows of input 0 */
static muc_status expect_positions(const rule *r, uint32_t i)
{
    muc_expr_pool *pool = r->graph->pool;
    muc_expr end =
        muc_expr_add(pool, muc_node_expr(r->node, MUC_KEY_POSITION), input(r, 0)->dims[0]);

    MUC_TRY(muc_expr_status(pool));
    if (muc_expr_get(pool, end)->may_overflow ||
        muc_expr_get(pool, end)->hi > muc_expr_get(pool, input(r, i)->dims[0])->lo)
        return unexpected(r, i, "a row for each position (position + rows may exceed them)");
    return MUC_OK;
}

static muc_status shape_rope(const rule *r)
{
    const muc_tensor *x = input(r, 0);
    uint64_t columns;
    uint32_t half;

    MUC_TRY(head_columns(r, MUC_KEY_HEADS, &columns));
    MUC_TRY(expect_rows(r, 0, columns));
    half = (uint32_t)muc_node_integer(r->node, MUC_KEY_HEAD_DIM) / 2;
    if (muc_node_integer(r->node, MUC_KEY_HEAD_DIM) % 2 != 0)
        return bad_attribute(r, "an even head_dim");
    for (uint32_t i = 1; i <= 2; i++) {
        MUC_TRY(expect_rows(r, i, half));
        MUC_TRY(expect_positions(r, i));
    }
    set_output(r, x->dims[0], x->dims[1]);
    return MUC_OK;
}

static muc_status shape_attention(const rule *r)
{
    uint64_t columns, kv_columns;

    MUC_TRY(head_columns(r, MUC_KEY_HEADS, &columns));
    MUC_TRY(head_columns(r, MUC_KEY_KV_HEADS, &kv_columns));
    if (columns % kv_columns != 0)
        return bad_attribute(r, "kv_heads that divide heads");
    MUC_TRY(expect_rows(r, 0, columns));
    for (uint32_t i = 1; i <= 4; i++)
        MUC_TRY(expect_rows(r, i, kv_columns));
    for (uint32_t i = 1; i <= 2; i++)
        if (input(r, i)->dims[0] != input(r, 0)->dims[0])
            return unexpected(r, i, "as many rows as the queries");
    for (uint32_t i = 3; i <= 4; i++) {
        if (input(r, i)->kind != MUC_TENSOR_STATE)
            return unexpected(r, i, "a state");
        MUC_TRY(expect_positions(r, i));
    }
    set_output(r, input(r, 0)->dims[0], input(r, 0)->dims[1]);
    return MUC_OK;
}

/* all inputs are f32 of one shape, and so is the output */
static muc_status shape_same(const rule *r)
{
    for (uint32_t i = 0; i < r->node->input_count; i++)
        if (input(r, i)->dtype != MUC_F32 || !muc_tensor_same_shape(input(r, i), input(r, 0)))
            return unexpected(r, i, "f32 of the first input's shape");
    r->outputs[0].dtype = MUC_F32;
    r->outputs[0].rank = input(r, 0)->rank;
    for (uint32_t i = 0; i < input(r, 0)->rank; i++)
        r->outputs[0].dims[i] = input(r, 0)->dims[i];
    return MUC_OK;
}

muc_status muc_graph_derive(muc_context *ctx, muc_graph *graph, const muc_node *node,
                            muc_tensor *outputs)
{
    static muc_status (*const rules[])(const rule *) = {
#define MUC_OP(id, name, least, most, outputs, rule, flags, meaning) shape_##rule,
#include "graph/ops.def"
#undef MUC_OP
    };
    const rule r = { ctx, graph, node, outputs };

    return rules[node->op](&r);
}
