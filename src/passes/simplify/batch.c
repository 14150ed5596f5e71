/* batch.c - finds the dimension that counts images, and makes a graph for one image. */
#include "passes/simplify/batch.h"

#include <stdlib.h>
#include <string.h>

#include "passes/rewrite.h"

/* dimension i, 0 where it is open or there is none */
static uint32_t extent(const muc_graph *graph, uint32_t tensor, uint32_t i)
{
    const muc_tensor *t = &graph->tensors[tensor];
    uint32_t value = 0;

    return i < t->rank && muc_rewrite_dim(graph, t, i, &value) ? value : 0;
}

/* the first dimension of all inputs, 0 if they differ */
static uint32_t common_batch(const muc_graph *graph)
{
    uint32_t images = 0;

    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        uint32_t own = extent(graph, i, 0);

        if (graph->tensors[i].kind == MUC_TENSOR_STATE)
            return 0;
        if (graph->tensors[i].kind != MUC_TENSOR_INPUT)
            continue;
        if (graph->tensors[i].rank < 2 || own == 0 || (images && own != images))
            return 0;
        images = own;
    }
    return images;
}

/* an axis, or one of several, or a permutation's first, that is the images' */
static bool names_first_axis(const muc_node *node)
{
    const muc_attribute *axes = muc_node_attribute(node, MUC_KEY_AXES);
    const int64_t *perm = muc_node_integers(node, MUC_KEY_PERM);

    if (muc_node_integer_or(node, MUC_KEY_AXIS, 1) == 0 || (perm && perm[0] != 0))
        return true;
    for (uint32_t i = 0; axes && i < axes->value.integers.count; i++)
        if (axes->value.integers.items[i] == 0)
            return true;
    return false;
}

/* Whether images stay apart: operators known to compute each on its own, from operands that count
 * images first or are constants. */
static bool keeps_apart(const muc_graph *graph, const muc_node *node, uint32_t images)
{
    unsigned apart = MUC_OP_APART | MUC_OP_POINTWISE | MUC_OP_REDUCES;

    if (!muc_op_has(node->op, apart) || muc_node_integer_or(node, MUC_KEY_TRANSPOSE_A, 0))
        return false;
    if (names_first_axis(node))
        return false;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (extent(graph, node->outputs[i], 0) != images)
            return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t id = node->inputs[i];

        if (id == MUC_NO_ID)
            continue;
        if (graph->tensors[id].kind != MUC_TENSOR_CONST) {
            if (extent(graph, id, 0) != images)
                return false;
        } else if (i == 0 || (muc_op_has(node->op, MUC_OP_POINTWISE) &&
                              graph->tensors[id].rank == graph->tensors[node->outputs[0]].rank &&
                              extent(graph, id, 0) != 1)) {
            return false; /* a constant with numbers for each image */
        }
    }
    return true;
}

/* a reshape says the images' number itself */
static muc_status reshape_one(muc_rewrite *r, const muc_node *node)
{
    const muc_attribute *shape = muc_node_attribute(node, MUC_KEY_SHAPE);
    muc_expr items[MUC_GRAPH_MAX_RANK];
    muc_attribute one = { .key = MUC_KEY_SHAPE };
    uint32_t x;

    memcpy(items, shape->value.exprs.items, shape->value.exprs.count * sizeof(*items));
    items[0] = muc_expr_const(r->graph->pool, 1);
    one.value.exprs.items = items;
    one.value.exprs.count = shape->value.exprs.count;
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &x));
    return muc_rewrite_change(r, node, node->op, &x, 1, &one, 1);
}

muc_status muc_take_one_image(muc_context *ctx, muc_graph *graph, uint32_t *images)
{
    uint32_t count = common_batch(graph);
    muc_status status;
    muc_rewrite r;

    *images = 1;
    if (count < 2)
        return MUC_OK;
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (!keeps_apart(graph, &graph->nodes[i], count))
            return MUC_OK;
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (extent(graph, graph->outputs[i], 0) != count)
            return MUC_OK;
    status = muc_rewrite_begin(ctx, graph, &r);
    for (uint32_t i = 0; status == MUC_OK && i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT)
            graph->tensors[i].dims[0] = muc_expr_const(graph->pool, 1);
    for (uint32_t i = 0; status == MUC_OK && i < r.old.node_count; i++) {
        const muc_node *node = &r.old.nodes[i];

        if (r.needed[i])
            status =
                node->op == MUC_OP_RESHAPE ? reshape_one(&r, node) : muc_rewrite_keep(&r, node);
    }
    if (status == MUC_OK)
        status = muc_rewrite_end(&r);
    muc_rewrite_free(&r);
    *images = count;
    return status;
}
