/* fold.c - computes constant nodes with the reference, each as a graph of its own. */
#include "passes/simplify/fold.h"

#include <stdlib.h>
#include <string.h>

#include "passes/simplify/canonical.h"
#include "passes/simplify/outline.h"
#include "ref/ref.h"

/* Results may be larger than operands by this factor, and any may be small; together, no more than
 * the constants by the factor, and some. */
enum { MOST_GROWTH = 4, SMALL_BYTES = 1 << 20, FREE_BYTES = 64 << 20 };

static bool is_output(const muc_graph *graph, uint32_t tensor)
{
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (graph->outputs[i] == tensor)
            return true;
    return false;
}

/* ---- may it be folded ---- */

static bool has_fixed_attributes(const muc_graph *graph, const muc_node *node)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const muc_attribute *a = &node->attributes[i];
        muc_attribute_type type = muc_attribute_get(a->key)->type;

        if (type == MUC_ATTRIBUTE_EXPR && !muc_expr_is_const(graph->pool, a->value.expr))
            return false;
        for (uint32_t j = 0; type == MUC_ATTRIBUTE_EXPRS && j < a->value.exprs.count; j++)
            if (!muc_expr_is_const(graph->pool, a->value.exprs.items[j]))
                return false;
    }
    return true;
}

/* bytes of a tensor of fixed dimensions; false if it has none, or carries quantization, which is
 * another arithmetic's business */
static bool fixed_bytes(const muc_graph *graph, uint32_t id, uint64_t *bytes)
{
    const muc_tensor *tensor = &graph->tensors[id];
    uint64_t dims[MUC_GRAPH_MAX_RANK], elements;

    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (!muc_expr_is_const(graph->pool, tensor->dims[i]))
            return false;
        dims[i] = muc_expr_get(graph->pool, tensor->dims[i])->immediate;
    }
    return !tensor->quantization &&
           muc_dtype_measure(tensor->dtype, tensor->rank, dims, &elements, bytes);
}

/* Weights that a pair of steps quantized are integers as long as the other steps are there:
 * passes/integer/qdq.h. */
static bool is_pair_of_step(const muc_graph *graph, const muc_node *node)
{
    if (node->op != MUC_OP_DEQUANTIZE_LINEAR)
        return false;
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == MUC_OP_QUANTIZE_LINEAR)
            return true;
    return false;
}

/* left: bytes that results may still have, less those of this node if it may be folded */
static bool is_foldable(const muc_graph *graph, const muc_node *node, bool all, uint64_t *left)
{
    uint64_t read = 0, made = 0, bytes;

    if (muc_op_has(node->op, MUC_OP_STATEFUL) || !has_fixed_attributes(graph, node) ||
        is_pair_of_step(graph, node))
        return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == MUC_NO_ID)
            continue;
        if (graph->tensors[node->inputs[i]].kind != MUC_TENSOR_CONST ||
            !graph->tensors[node->inputs[i]].data || graph->tensors[node->inputs[i]].sequence ||
            !fixed_bytes(graph, node->inputs[i], &bytes))
            return false;
        read += bytes;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!fixed_bytes(graph, node->outputs[i], &bytes) || !muc_add_u64(made, bytes, &made))
            return false;
    }
    if ((!all && made > SMALL_BYTES && made / MOST_GROWTH > read) || made > *left)
        return false;
    *left -= made;
    return true;
}

/* ---- one node as a graph ---- */

typedef struct folding {
    muc_context *ctx;
    muc_graph *graph, *alone;
    muc_node *node;
    uint32_t *inputs, *outputs; /* of the node, in `alone` */
} folding;

static muc_expr same_expr(const folding *f, muc_expr e)
{
    return muc_expr_const(f->alone->pool, muc_expr_get(f->graph->pool, e)->immediate);
}

static muc_status copy_operands(folding *f)
{
    muc_arena *arena = &f->alone->arena;

    MUC_TRY(MUC_ARENA_NEW(f->ctx, arena, f->node->input_count + (size_t)1, &f->inputs));
    for (uint32_t i = 0; i < f->node->input_count; i++) {
        muc_tensor tensor;

        f->inputs[i] = MUC_NO_ID;
        if (f->node->inputs[i] == MUC_NO_ID)
            continue;
        tensor = f->graph->tensors[f->node->inputs[i]];
        f->inputs[i] = muc_graph_find(f->alone, tensor.name);
        if (f->inputs[i] != MUC_NO_ID)
            continue; /* read twice */
        for (uint32_t j = 0; j < tensor.rank; j++)
            tensor.dims[j] = same_expr(f, tensor.dims[j]);
        MUC_TRY(muc_graph_add_tensor(f->ctx, f->alone, &tensor, &f->inputs[i]));
    }
    return MUC_OK;
}

static muc_status copy_attributes(const folding *f, muc_attribute **out)
{
    muc_arena *arena = &f->alone->arena;

    MUC_TRY(MUC_ARENA_NEW(f->ctx, arena, f->node->attribute_count + (size_t)1, out));
    for (uint32_t i = 0; i < f->node->attribute_count; i++) {
        muc_attribute *a = &(*out)[i];
        muc_expr *items;

        *a = f->node->attributes[i];
        if (muc_attribute_get(a->key)->type == MUC_ATTRIBUTE_EXPR)
            a->value.expr = same_expr(f, a->value.expr);
        if (muc_attribute_get(a->key)->type != MUC_ATTRIBUTE_EXPRS)
            continue;
        MUC_TRY(MUC_ARENA_NEW(f->ctx, arena, a->value.exprs.count + (size_t)1, &items));
        for (uint32_t j = 0; j < a->value.exprs.count; j++)
            items[j] = same_expr(f, a->value.exprs.items[j]);
        a->value.exprs.items = items;
    }
    return MUC_OK;
}

static muc_status build_alone(folding *f)
{
    muc_new_node node = { .op = f->node->op,
                          .name = f->node->name,
                          .input_count = f->node->input_count,
                          .attribute_count = f->node->attribute_count,
                          .output_count = f->node->output_count };
    muc_attribute *attributes;
    const char **names;

    MUC_TRY(copy_operands(f));
    MUC_TRY(copy_attributes(f, &attributes));
    MUC_TRY(MUC_ARENA_NEW(f->ctx, &f->alone->arena, node.output_count, &names));
    MUC_TRY(MUC_ARENA_NEW(f->ctx, &f->alone->arena, node.output_count, &f->outputs));
    for (uint32_t i = 0; i < node.output_count; i++)
        names[i] = f->graph->tensors[f->node->outputs[i]].name;
    node.inputs = f->inputs;
    node.attributes = attributes;
    node.output_names = names;
    return muc_graph_add(f->ctx, f->alone, &node, f->outputs);
}

/* ---- its results ---- */

static void set_constant(muc_tensor *tensor, const uint8_t *data, uint64_t bytes)
{
    tensor->kind = MUC_TENSOR_CONST;
    tensor->producer = MUC_NO_ID;
    tensor->data = data;
    tensor->bytes = bytes;
}

static muc_status run_alone(folding *f)
{
    uint32_t count = f->node->output_count;
    const uint8_t **data;

    MUC_TRY(build_alone(f));
    MUC_TRY(MUC_ARENA_NEW(f->ctx, &f->alone->arena, count, &data));
    MUC_TRY(muc_ref_compute(f->ctx, f->alone, f->outputs, count, &f->graph->arena, data));
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = 0;

        fixed_bytes(f->graph, f->node->outputs[i], &bytes);
        set_constant(&f->graph->tensors[f->node->outputs[i]], data[i], bytes);
    }
    return MUC_OK;
}

/* In a graph of shapes a large result is another shape: nothing is computed. */
static bool become_shapes(muc_graph *graph, muc_node *node)
{
    muc_tensor *tensor = &graph->tensors[node->outputs[0]];
    uint64_t bytes;

    if (!graph->zeros || node->output_count != 1 ||
        muc_dtype_get(tensor->dtype)->kind != MUC_DTYPE_FLOAT ||
        !fixed_bytes(graph, node->outputs[0], &bytes) || bytes < MUC_OUTLINE_BYTES ||
        bytes > graph->zero_bytes)
        return false;
    set_constant(tensor, graph->zeros, bytes);
    node->output_count = 0; /* and so nothing needs it */
    return true;
}

/* What the reference cannot run stays as it is, to be told by whoever needs it. */
static muc_status fold_node(muc_context *ctx, muc_graph *graph, muc_node *node)
{
    folding f = { .ctx = ctx, .graph = graph, .node = node };
    muc_status status;

    if (become_shapes(graph, node))
        return MUC_OK;
    MUC_TRY(muc_graph_new(ctx, graph->name, &f.alone));
    status = run_alone(&f);
    muc_graph_free(f.alone);
    if (status == MUC_OK) {
        node->output_count = 0; /* and so nothing needs it */
    } else if (status == MUC_UNSUPPORTED || status == MUC_MALFORMED) {
        muc_error_clear(ctx);
        status = MUC_OK;
    }
    return status;
}

/* ---- nodes that give what they take ---- */

/* inputs are of the graph's own arena */
static void pass_by(muc_node *node, const uint32_t *stands_for)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != MUC_NO_ID)
            ((uint32_t *)(uintptr_t)node->inputs)[i] = stands_for[node->inputs[i]];
}

/* most_bytes: that results may have together, however small their operands are; 0: in proportion */
static muc_status fold(muc_context *ctx, muc_graph *graph, uint64_t most_bytes,
                       uint32_t *stands_for)
{
    uint64_t left = most_bytes ? most_bytes : FREE_BYTES;

    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        stands_for[i] = i;
        left += most_bytes ? 0 : graph->tensors[i].bytes * MOST_GROWTH;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        muc_node *node = &graph->nodes[i];

        pass_by(node, stands_for);
        if (is_foldable(graph, node, most_bytes != 0, &left))
            MUC_TRY(fold_node(ctx, graph, node));
        else if (muc_gives_input(graph, node) && !is_output(graph, node->outputs[0]) &&
                 graph->tensors[node->inputs[0]].kind != MUC_TENSOR_STATE)
            stands_for[node->outputs[0]] = node->inputs[0];
    }
    return muc_graph_prune(ctx, graph);
}

static muc_status fold_graph(muc_context *ctx, muc_graph *graph, uint64_t most_bytes)
{
    uint32_t *stands_for;
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(ctx, graph->name, graph->tensor_count, &stands_for));
    status = fold(ctx, graph, most_bytes, stands_for);
    free(stands_for);
    return status;
}

muc_status muc_fold(muc_context *ctx, muc_graph *graph)
{
    return fold_graph(ctx, graph, 0);
}

muc_status muc_fold_up_to(muc_context *ctx, muc_graph *graph, uint64_t most_bytes)
{
    return fold_graph(ctx, graph, most_bytes);
}
