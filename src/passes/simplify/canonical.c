/* canonical.c - removes nodes that do nothing, joins views of views, and rewrites equal forms as
 * one. */
#include "passes/simplify/canonical.h"

#include <string.h>

#include "graph/graph_check.h"
#include "passes/rewrite.h"

static const muc_tensor *in(const muc_rewrite *r, const muc_node *node)
{
    return muc_rewrite_old(r, node->inputs[0]);
}

static const muc_tensor *out(const muc_rewrite *r, const muc_node *node)
{
    return muc_rewrite_old(r, node->outputs[0]);
}

static bool same_quantization(const muc_quantization *a, const muc_quantization *b)
{
    if (!a || !b)
        return a == b;
    return a->count == b->count && a->axis == b->axis &&
           memcmp(a->scales, b->scales, a->count * sizeof(*a->scales)) == 0 &&
           memcmp(a->zero_points, b->zero_points, a->count * sizeof(*a->zero_points)) == 0;
}

/* an attribute by which no element of an output of the input's shape moves */
static bool moves_none(const muc_graph *graph, const muc_attribute *a)
{
    const muc_expr zero = muc_expr_const(graph->pool, 0);

    for (uint32_t i = 0; a->key == MUC_KEY_STARTS && i < a->value.exprs.count; i++)
        if (a->value.exprs.items[i] != zero)
            return false;
    if (a->key != MUC_KEY_PERM && a->key != MUC_KEY_PADS && a->key != MUC_KEY_STEPS)
        return true;
    for (uint32_t i = 0; i < a->value.integers.count; i++)
        if (a->value.integers.items[i] != (a->key == MUC_KEY_PERM ? i : a->key == MUC_KEY_STEPS))
            return false;
    return true;
}

bool muc_gives_input(const muc_graph *graph, const muc_node *node)
{
    const muc_op_info *info = muc_op_get(node->op);
    const muc_tensor *x, *y = &graph->tensors[node->outputs[0]];

    if (info->least_inputs != 1 || node->output_count != 1 || (info->flags & MUC_OP_STATEFUL))
        return false;
    x = &graph->tensors[node->inputs[0]];
    if (x->dtype != y->dtype || !muc_tensor_same_shape(x, y) ||
        !same_quantization(x->quantization, y->quantization))
        return false;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (!moves_none(graph, &node->attributes[i]))
            return false;
    return info->flags & (MUC_OP_MOVES | MUC_OP_CONVERTS);
}

static muc_status drop_nothing(muc_rewrite *r, const muc_node *node, bool *done)
{
    muc_status status = MUC_OK;

    if (muc_gives_input(&r->old, node))
        *done = muc_rewrite_alias(r, node, node->inputs[0], &status);
    return status;
}

/* a view of a view is a view of the first; a transpose of a transpose is one */
static muc_status join_moves(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_node *before = node->input_count ? muc_rewrite_producer(r, node->inputs[0]) : NULL;
    int64_t perm[MUC_GRAPH_MAX_RANK];
    muc_attribute joined = { .key = MUC_KEY_PERM };
    uint32_t x;

    if (!before || before->op != node->op ||
        (node->op != MUC_OP_RESHAPE && node->op != MUC_OP_TRANSPOSE) ||
        !same_quantization(in(r, before)->quantization, in(r, node)->quantization))
        return MUC_OK;
    *done = true;
    MUC_TRY(muc_rewrite_tensor(r, before->inputs[0], &x));
    if (node->op == MUC_OP_RESHAPE)
        return muc_rewrite_change(r, node, node->op, &x, 1, node->attributes,
                                  node->attribute_count);
    for (uint32_t i = 0; i < out(r, node)->rank; i++)
        perm[i] = muc_node_integers(before, MUC_KEY_PERM)[muc_node_integers(node, MUC_KEY_PERM)[i]];
    joined.value.integers.items = perm;
    joined.value.integers.count = out(r, node)->rank;
    return muc_rewrite_change(r, node, node->op, &x, 1, &joined, 1);
}

/* dimensions of more than one element stay in order */
static bool moves_nothing(const muc_rewrite *r, const muc_node *node)
{
    const muc_tensor *x = in(r, node);
    const int64_t *perm = muc_node_integers(node, MUC_KEY_PERM);
    int64_t last = -1;

    for (uint32_t i = 0; i < x->rank; i++) {
        if (x->dims[perm[i]] == muc_expr_const(r->graph->pool, 1))
            continue;
        if (perm[i] < last)
            return false;
        last = perm[i];
    }
    return true;
}

static muc_status view_transpose(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_tensor *y = out(r, node);
    uint32_t x;

    if (node->op != MUC_OP_TRANSPOSE || !moves_nothing(r, node) ||
        (y->quantization && y->quantization->count > 1))
        return MUC_OK;
    *done = true;
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &x));
    return muc_rewrite_change_to_view(r, node, x);
}

/* constant indices one after another from the first on, none negative past its dimension */
static bool is_run(const muc_rewrite *r, const muc_node *node, uint32_t *first, uint32_t *count)
{
    uint32_t axis = (uint32_t)muc_node_integer(node, MUC_KEY_AXIS), extent;
    const muc_tensor *indices = muc_rewrite_old(r, node->inputs[1]);
    size_t width = muc_dtype_get(indices->dtype)->block_bytes;
    int64_t from;

    if (!muc_rewrite_is_constant(r, node->inputs[1]) || indices->rank > 1 ||
        indices->bytes < width || indices->bytes / width > UINT32_MAX ||
        !muc_rewrite_dim(&r->old, in(r, node), axis, &extent))
        return false;
    *count = (uint32_t)(indices->bytes / width);
    from = muc_dtype_integer(indices->dtype, indices->data);
    from += from < 0 ? extent : 0;
    if (from < 0 || from + *count > extent)
        return false;
    *first = (uint32_t)from;
    for (uint32_t i = 1; i < *count; i++) {
        int64_t at = muc_dtype_integer(indices->dtype, indices->data + i * width);

        if (at + (at < 0 ? extent : 0) != from + i)
            return false;
    }
    return true;
}

/* what is gathered from neighbours is a slice; of one index, without its dimension */
static muc_status slice_gather(muc_rewrite *r, const muc_node *node, bool *done)
{
    int64_t axis;
    uint32_t first, count, x;
    muc_expr start, size;
    muc_cut cut;

    if (node->op != MUC_OP_GATHER || muc_node_integer_or(node, MUC_KEY_BATCH_DIMS, 0) != 0 ||
        (in(r, node)->quantization && in(r, node)->quantization->count > 1) ||
        !is_run(r, node, &first, &count))
        return MUC_OK;
    *done = true;
    axis = muc_node_integer(node, MUC_KEY_AXIS);
    start = muc_expr_const(r->graph->pool, first);
    size = muc_expr_const(r->graph->pool, count);
    cut = muc_cut_of(&axis, &start, &size, NULL, 1);
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &x));
    if (muc_rewrite_old(r, node->inputs[1])->rank == 1)
        return muc_rewrite_change(r, node, cut.op, &x, 1, cut.attributes, cut.attribute_count);
    MUC_TRY(muc_rewrite_add(r, cut.op, node->name, &x, 1, cut.attributes, cut.attribute_count, NULL,
                            &x));
    return muc_rewrite_change_to_view(r, node, x);
}

/* the row or column of a product that a vector is, as a matrix */
static muc_status add_matrix(muc_rewrite *r, const muc_node *node, uint32_t side, uint32_t *out)
{
    const muc_tensor *t = muc_rewrite_old(r, node->inputs[side]);
    const muc_expr one = muc_expr_const(r->graph->pool, 1);
    muc_tensor like = *t;

    like.rank = 2;
    like.dims[1 - side] = t->dims[0];
    like.dims[side] = one;
    if (muc_rewrite_is_constant(r, node->inputs[side]))
        return muc_rewrite_constant(r, t->name, &like, t->data, t->bytes, out);
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[side], out));
    return muc_rewrite_add_view(r, t->name, *out, like.dims, 2, out);
}

/* every product is of matrices */
static muc_status widen_vectors(muc_rewrite *r, const muc_node *node, bool *done)
{
    bool any = false;
    uint32_t inputs[2];

    for (uint32_t side = 0; node->op == MUC_OP_MATMUL && side < 2; side++) {
        const muc_tensor *t = muc_rewrite_old(r, node->inputs[side]);

        if (t->rank == 1 && t->quantization && t->quantization->count > 1)
            return MUC_OK;
        any = any || t->rank == 1;
    }
    if (!any)
        return MUC_OK;
    *done = true;
    for (uint32_t side = 0; side < 2; side++)
        if (muc_rewrite_old(r, node->inputs[side])->rank == 1)
            MUC_TRY(add_matrix(r, node, side, &inputs[side]));
        else
            MUC_TRY(muc_rewrite_tensor(r, node->inputs[side], &inputs[side]));
    MUC_TRY(muc_rewrite_add(r, node->op, node->name, inputs, 2, node->attributes,
                            node->attribute_count, out(r, node)->quantization, &inputs[0]));
    return muc_rewrite_change_to_view(r, node, inputs[0]);
}

muc_status muc_canonicalise(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const rules[] = { drop_nothing, join_moves, view_transpose,
                                               slice_gather, widen_vectors };

    return muc_rewrite_with(ctx, graph, rules, MUC_COUNT(rules), NULL);
}
