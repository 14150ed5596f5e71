/* verify.c - proves that a graph keeps the promises of graph.h, whoever built or changed it. */
#include "graph/graph_check.h"

#include <math.h>
#include <string.h>

static bool is_expr(const muc_graph *graph, muc_expr e)
{
    return e != MUC_EXPR_NONE && e <= muc_expr_count(graph->pool);
}

static muc_status check_bytes(muc_context *ctx, const muc_graph *graph, const muc_tensor *tensor,
                              muc_status status)
{
    uint64_t dims[MUC_GRAPH_MAX_RANK], elements, bytes;

    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (!muc_expr_is_const(graph->pool, tensor->dims[i]))
            return muc_fail(ctx, status, graph->name, MUC_NO_OFFSET,
                            "tensor '%s': dimension %u of a %s depends on an input", tensor->name,
                            i, muc_tensor_kind_name(tensor->kind));
        dims[i] = muc_expr_get(graph->pool, tensor->dims[i])->immediate;
    }
    if (!muc_dtype_measure(tensor->dtype, tensor->rank, dims, &elements, &bytes))
        return muc_fail(ctx, status, graph->name, MUC_NO_OFFSET, "tensor '%s' has no size in bytes",
                        tensor->name);
    if (tensor->kind == MUC_TENSOR_CONST && tensor->bytes != bytes)
        return muc_fail(ctx, status, graph->name, MUC_NO_OFFSET,
                        "tensor '%s' has %llu bytes, expected %llu", tensor->name,
                        (unsigned long long)tensor->bytes, (unsigned long long)bytes);
    return MUC_OK;
}

static bool fits(muc_dtype dtype, int32_t value)
{
    uint32_t bits = 8 * muc_dtype_get(dtype)->block_bytes;
    bool is_signed = muc_dtype_is_signed(dtype);
    int64_t least = is_signed ? -((int64_t)1 << (bits - 1)) : 0;

    return bits >= 32 + (uint32_t)!is_signed ||
           (value >= least && value < least + ((int64_t)1 << bits));
}

static muc_status check_quantization(muc_context *ctx, const muc_graph *graph,
                                     const muc_tensor *tensor, muc_status status)
{
    const muc_quantization *q = tensor->quantization;

    if (!q)
        return MUC_OK;
    if (muc_dtype_get(tensor->dtype)->kind != MUC_DTYPE_INTEGER || tensor->dtype == MUC_BOOL)
        return muc_fail(ctx, status, graph->name, MUC_NO_OFFSET,
                        "tensor '%s': quantization of %s, expected integers", tensor->name,
                        muc_dtype_get(tensor->dtype)->name);
    if (q->count == 0 || (q->count == 1 && q->axis != 0) ||
        (q->count > 1 &&
         (q->axis >= tensor->rank || !muc_expr_is_const(graph->pool, tensor->dims[q->axis]) ||
          muc_expr_get(graph->pool, tensor->dims[q->axis])->immediate != q->count)))
        return muc_fail(ctx, status, graph->name, MUC_NO_OFFSET,
                        "tensor '%s': %u scales along dimension %u are not its extent",
                        tensor->name, q->count, q->axis);
    for (uint32_t i = 0; i < q->count; i++)
        if (!(isfinite(q->scales[i]) && q->scales[i] > 0) ||
            !fits(tensor->dtype, q->zero_points[i]))
            return muc_fail(ctx, status, graph->name, MUC_NO_OFFSET,
                            "tensor '%s': scale %g and zero point %d, expected a scale above 0 "
                            "and a value of %s",
                            tensor->name, (double)q->scales[i], q->zero_points[i],
                            muc_dtype_get(tensor->dtype)->name);
    return MUC_OK;
}

muc_status muc_tensor_check(muc_context *ctx, const muc_graph *graph, const muc_tensor *tensor,
                            muc_status status)
{
    bool is_const = tensor->kind == MUC_TENSOR_CONST;

    if (tensor->kind >= MUC_TENSOR_KIND_COUNT || tensor->dtype >= MUC_DTYPE_COUNT ||
        tensor->rank > MUC_GRAPH_MAX_RANK)
        return muc_fail(ctx, status, graph->name, MUC_NO_OFFSET,
                        "tensor '%s': kind %u, type %u, rank %u: one is not a valid number",
                        tensor->name, tensor->kind, tensor->dtype, tensor->rank);
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!is_expr(graph, tensor->dims[i]))
            return muc_fail(ctx, status, graph->name, MUC_NO_OFFSET,
                            "tensor '%s': dimension %u is not an expression", tensor->name, i);
    if ((tensor->kind == MUC_TENSOR_ACTIVATION) != (tensor->producer != MUC_NO_ID))
        return muc_fail(ctx, status, graph->name, MUC_NO_OFFSET,
                        "tensor '%s': an activation has a producer, a %s has none", tensor->name,
                        muc_tensor_kind_name(tensor->kind));
    if (!is_const && (tensor->data || tensor->bytes || tensor->sequence || tensor->sequence_bytes))
        return muc_fail(ctx, status, graph->name, MUC_NO_OFFSET, "tensor '%s': a %s has data",
                        tensor->name, muc_tensor_kind_name(tensor->kind));
    MUC_TRY(check_quantization(ctx, graph, tensor, status));
    if (is_const || tensor->kind == MUC_TENSOR_STATE)
        return check_bytes(ctx, graph, tensor, status);
    return MUC_OK;
}

static bool is_value(const muc_graph *graph, muc_attribute_type type, const muc_attribute *a)
{
    switch (type) {
    case MUC_ATTRIBUTE_EXPR:
        return is_expr(graph, a->value.expr);
    case MUC_ATTRIBUTE_REAL:
        return isfinite(a->value.real);
    case MUC_ATTRIBUTE_WORD:
        return a->value.integer >= 0 && a->value.integer < MUC_WORD_COUNT;
    case MUC_ATTRIBUTE_DTYPE:
        return a->value.integer >= 0 && a->value.integer < MUC_DTYPE_COUNT;
    case MUC_ATTRIBUTE_REALS:
        for (uint32_t i = 0; i < a->value.reals.count; i++)
            if (!isfinite(a->value.reals.items[i]))
                return false;
        return true;
    case MUC_ATTRIBUTE_EXPRS:
        for (uint32_t i = 0; i < a->value.exprs.count; i++)
            if (!is_expr(graph, a->value.exprs.items[i]))
                return false;
        return true;
    case MUC_ATTRIBUTE_INTEGER:
    case MUC_ATTRIBUTE_INTEGERS:
        break;
    }
    return true;
}

static muc_status check_attribute(muc_context *ctx, const muc_graph *graph, const muc_node *node,
                                  const muc_attribute *attribute, muc_status status)
{
    const muc_attribute_info *info;
    bool required;

    if (attribute->key >= MUC_KEY_COUNT || !muc_op_takes(node->op, attribute->key, &required))
        return muc_fail_on(muc_node_subject(ctx, graph, node), status, "%s has no attribute '%s'",
                           muc_op_get(node->op)->name,
                           attribute->key < MUC_KEY_COUNT ? muc_attribute_get(attribute->key)->name
                                                          : "?");
    info = muc_attribute_get(attribute->key);
    if (muc_node_attribute(node, attribute->key) != attribute)
        return muc_fail_on(muc_node_subject(ctx, graph, node), status,
                           "attribute '%s' is there twice", info->name);
    if (!is_value(graph, info->type, attribute))
        return muc_fail_on(muc_node_subject(ctx, graph, node), status,
                           "attribute '%s' has no valid value", info->name);
    return MUC_OK;
}

static muc_status check_attributes(muc_context *ctx, const muc_graph *graph, const muc_node *node,
                                   muc_status status)
{
    bool required;

    for (uint32_t i = 0; i < node->attribute_count; i++)
        MUC_TRY(check_attribute(ctx, graph, node, &node->attributes[i], status));
    for (unsigned key = 0; key < MUC_KEY_COUNT; key++)
        if (muc_op_takes(node->op, (muc_attribute_key)key, &required) && required &&
            !muc_node_attribute(node, (muc_attribute_key)key))
            return muc_fail_on(muc_node_subject(ctx, graph, node), status,
                               "%s lacks attribute '%s'", muc_op_get(node->op)->name,
                               muc_attribute_get((muc_attribute_key)key)->name);
    return MUC_OK;
}

muc_status muc_node_check(muc_context *ctx, const muc_graph *graph, const muc_node *node,
                          muc_status status)
{
    const muc_op_info *info;

    if (node->op >= MUC_OP_COUNT)
        return muc_fail_on(muc_node_subject(ctx, graph, node), status, "no operator %u", node->op);
    info = muc_op_get(node->op);
    if (node->input_count < info->least_inputs || node->input_count > info->most_inputs ||
        node->output_count < info->least_outputs || node->output_count > info->most_outputs)
        return muc_fail_on(muc_node_subject(ctx, graph, node), status,
                           "%s with %u inputs and %u outputs, expected %u..%u and %u..%u",
                           info->name, node->input_count, node->output_count, info->least_inputs,
                           info->most_inputs, info->least_outputs, info->most_outputs);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == MUC_NO_ID && i >= info->least_inputs && i + 1 < node->input_count)
            continue;
        if (node->inputs[i] >= graph->tensor_count)
            return muc_fail_on(muc_node_subject(ctx, graph, node), status,
                               "input %u is tensor %u of %u", i, node->inputs[i],
                               graph->tensor_count);
        if (graph->tensors[node->inputs[i]].kind == MUC_TENSOR_STATE &&
            !(info->flags & MUC_OP_STATEFUL))
            return muc_fail_on(muc_node_subject(ctx, graph, node), status,
                               "%s cannot use the state '%s'", info->name,
                               graph->tensors[node->inputs[i]].name);
    }
    return check_attributes(ctx, graph, node, status);
}

muc_status muc_node_check_quantization(muc_context *ctx, const muc_graph *graph,
                                       const muc_node *node, const muc_tensor *outputs,
                                       muc_status status)
{
    const muc_op_info *info = muc_op_get(node->op);
    uint32_t data = info->flags & MUC_OP_CHOOSES ? 1 : 0;
    bool from = node->input_count > data && graph->tensors[node->inputs[data]].quantization != NULL;
    bool is_quantized = outputs[0].quantization != NULL;

    if (info->flags & MUC_OP_CONVERTS && info->flags & MUC_OP_QUANTIZED)
        from = info->flags & MUC_OP_FLOAT; /* which real numbers are not given */
    /* indices and truths have no scale */
    if (outputs[0].dtype == MUC_I64 || outputs[0].dtype == MUC_BOOL)
        from = is_quantized;
    if (from == is_quantized || (from && info->flags & MUC_OP_MOVES))
        return MUC_OK;
    return muc_fail_on(muc_node_subject(ctx, graph, node), status,
                       "%s gives '%s' %s quantization, expected %s", info->name, outputs[0].name,
                       is_quantized ? "a" : "no", from ? "one" : "none");
}

static muc_status check_order(muc_context *ctx, const muc_graph *graph, uint32_t id)
{
    const muc_node *node = &graph->nodes[id];

    for (uint32_t i = 0; i < node->input_count; i++) {
        const muc_tensor *input;

        if (node->inputs[i] == MUC_NO_ID)
            continue;
        input = &graph->tensors[node->inputs[i]];
        if (input->kind == MUC_TENSOR_ACTIVATION && input->producer >= id)
            return muc_fail(ctx, MUC_BUG, graph->name, MUC_NO_OFFSET,
                            "node '%s' reads '%s' before it is computed", node->name, input->name);
    }
    return MUC_OK;
}

bool muc_tensor_same_dims(const muc_tensor *a, const muc_tensor *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof(a->dims[0])) == 0;
}

bool muc_tensor_same_shape(const muc_tensor *a, const muc_tensor *b)
{
    return a->dtype == b->dtype && muc_tensor_same_dims(a, b);
}

static muc_status fail_shape(muc_context *ctx, const muc_graph *graph, const muc_node *node,
                             const muc_tensor *found, const muc_tensor *expected)
{
    muc_text text = { 0 };
    muc_status status;

    muc_tensor_print_shape(graph, found, &text);
    muc_text_add(&text, ", expected ");
    muc_tensor_print_shape(graph, expected, &text);
    status = muc_fail_on(muc_node_subject(ctx, graph, node), MUC_BUG, "'%s' is %s", found->name,
                         text.data ? text.data : "?");
    muc_text_free(&text);
    return status;
}

static muc_status check_outputs(muc_context *ctx, muc_graph *graph, uint32_t id)
{
    const muc_node *node = &graph->nodes[id];
    muc_tensor derived[MUC_GRAPH_MAX_OUTPUTS] = { { 0 } };

    MUC_TRY(muc_graph_derive(ctx, graph, node, derived));
    for (uint32_t i = 0; i < node->output_count; i++) {
        const muc_tensor *output;

        if (node->outputs[i] >= graph->tensor_count)
            return muc_fail_on(muc_node_subject(ctx, graph, node), MUC_BUG,
                               "output %u is tensor %u of %u", i, node->outputs[i],
                               graph->tensor_count);
        output = &graph->tensors[node->outputs[i]];
        if (output->producer != id || (i == 0 && strcmp(output->name, node->name) != 0))
            return muc_fail_on(muc_node_subject(ctx, graph, node), MUC_BUG,
                               "'%s' is not its output %u", output->name, i);
        if (!muc_tensor_same_shape(output, &derived[i]))
            return fail_shape(ctx, graph, node, output, &derived[i]);
        derived[i] = *output;
    }
    return muc_node_check_quantization(ctx, graph, node, derived, MUC_BUG);
}

/* every activation is an output of the node that it names, once */
static muc_status check_producer(muc_context *ctx, const muc_graph *graph, uint32_t id)
{
    const muc_tensor *tensor = &graph->tensors[id];
    unsigned found = 0;

    if (tensor->kind != MUC_TENSOR_ACTIVATION)
        return MUC_OK;
    if (tensor->producer < graph->node_count) {
        const muc_node *node = &graph->nodes[tensor->producer];

        for (uint32_t i = 0; i < node->output_count; i++)
            found += node->outputs[i] == id;
    }
    if (found == 1)
        return MUC_OK;
    return muc_fail(ctx, MUC_BUG, graph->name, MUC_NO_OFFSET,
                    "tensor '%s' is %u outputs of node %u, expected one", tensor->name, found,
                    tensor->producer);
}

muc_status muc_graph_verify(muc_context *ctx, muc_graph *graph)
{
    MUC_TRY(muc_expr_status(graph->pool));
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        MUC_TRY(muc_tensor_check(ctx, graph, &graph->tensors[i], MUC_BUG));
        /* of two tensors of one name the index finds one */
        if (muc_graph_find(graph, graph->tensors[i].name) != i)
            return muc_fail(ctx, MUC_BUG, graph->name, MUC_NO_OFFSET,
                            "tensor '%s' is not found by its name", graph->tensors[i].name);
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        MUC_TRY(muc_node_check(ctx, graph, &graph->nodes[i], MUC_BUG));
        MUC_TRY(check_order(ctx, graph, i));
        MUC_TRY(check_outputs(ctx, graph, i));
    }
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        MUC_TRY(check_producer(ctx, graph, i));
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (graph->outputs[i] >= graph->tensor_count)
            return muc_fail(ctx, MUC_BUG, graph->name, MUC_NO_OFFSET,
                            "output %u is tensor %u of %u", i, graph->outputs[i],
                            graph->tensor_count);
    return MUC_OK;
}
