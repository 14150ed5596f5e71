/* outline.c - copies a graph without the data of its large constants. */
#include "passes/simplify/outline.h"

#include <stdlib.h>

#include "passes/rewrite.h"

/* bytes of a tensor in float32 or its own type, whichever are more; 0: of open dimensions */
static uint64_t most_bytes(const muc_graph *graph, const muc_tensor *tensor)
{
    uint64_t dims[MUC_GRAPH_MAX_RANK], elements, bytes, as_float;

    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (!muc_expr_is_const(graph->pool, tensor->dims[i]))
            return 0;
        dims[i] = muc_expr_get(graph->pool, tensor->dims[i])->immediate;
    }
    if (!muc_dtype_measure(tensor->dtype, tensor->rank, dims, &elements, &bytes) ||
        !muc_dtype_measure(MUC_F32, tensor->rank, dims, &elements, &as_float))
        return 0;
    return bytes > as_float ? bytes : as_float;
}

/* neither an input nor a state decides what the node computes */
static bool is_constant(const muc_node *node, const bool *constant)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != MUC_NO_ID && !constant[node->inputs[i]])
            return false;
    return !muc_op_has(node->op, MUC_OP_STATEFUL);
}

/* of all constants, and the most of one; constant: [tensor_count] */
static void measure(const muc_graph *graph, bool *constant, uint64_t *total, uint64_t *most)
{
    *total = *most = 0;
    for (uint32_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->nodes[n].output_count; i++)
            constant[graph->nodes[n].outputs[i]] = is_constant(&graph->nodes[n], constant);
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        uint64_t bytes = constant[i] ? most_bytes(graph, &graph->tensors[i]) : 0;

        *most = bytes > *most ? bytes : *most;
        if (!muc_add_u64(*total, bytes, total))
            *total = UINT64_MAX;
    }
}

/* weights; what other constants say decides shapes */
static bool may_be_shape(const muc_tensor *tensor)
{
    const muc_dtype_info *type = muc_dtype_get(tensor->dtype);

    return tensor->kind == MUC_TENSOR_CONST && tensor->data && !tensor->sequence &&
           tensor->bytes >= MUC_OUTLINE_BYTES &&
           (type->kind == MUC_DTYPE_FLOAT || type->block_bytes == 1);
}

/* most: bytes of the greatest constant, which packing makes a little more */
static muc_status copy(muc_context *ctx, const muc_graph *graph, uint64_t most, muc_graph *out)
{
    muc_tensor *tensors;
    uint8_t *zeros;

    most += most / 4;
    MUC_TRY(muc_expr_pool_copy(ctx, &out->arena, graph->pool, &out->pool));
    MUC_TRY(MUC_ARENA_NEW(ctx, &out->arena, (size_t)most + 1, &zeros));
    MUC_TRY(MUC_ARENA_NEW(ctx, &out->arena, graph->tensor_count + (size_t)1, &tensors));
    out->zeros = zeros;
    out->zero_bytes = most;
    out->tensors = tensors;
    out->tensor_count = graph->tensor_count;
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        tensors[i] = graph->tensors[i];
        if (may_be_shape(&tensors[i]))
            tensors[i].data = zeros;
    }
    out->nodes = graph->nodes;
    out->node_count = graph->node_count;
    out->outputs = graph->outputs;
    out->output_count = graph->output_count;
    out->names = graph->names;
    return muc_rewrite_with(ctx, out, NULL, 0, NULL); /* everything anew, in its own arena */
}

muc_status muc_outline(muc_context *ctx, const muc_graph *graph, uint64_t least_bytes,
                       muc_graph **out)
{
    uint64_t total, most;
    muc_status status;
    bool *constant;

    *out = NULL;
    MUC_TRY(MUC_NEW_ARRAY(ctx, graph->name, graph->tensor_count + (size_t)1, &constant));
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        constant[i] = graph->tensors[i].kind == MUC_TENSOR_CONST;
    measure(graph, constant, &total, &most);
    free(constant);
    if (total < least_bytes)
        return MUC_OK;
    MUC_TRY(muc_graph_new(ctx, graph->name, out));
    status = copy(ctx, graph, most, *out);
    if (status != MUC_OK) {
        muc_graph_free(*out);
        *out = NULL;
    }
    return status;
}
