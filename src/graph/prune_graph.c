/* prune_graph.c - removes from a graph what no result needs, and renumbers the rest. */
#include "graph/graph_check.h"

typedef struct pruner {
    muc_graph *graph;
    bool *tensors, *nodes; /* needed */
    uint32_t *moved;       /* a tensor's new index */
} pruner;

/* From the last node to the first, for a node is after those it reads. */
static void mark(pruner *p)
{
    muc_graph *graph = p->graph;

    for (uint32_t i = 0; i < graph->output_count; i++)
        p->tensors[graph->outputs[i]] = true;
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT)
            p->tensors[i] = true; /* callers give it */
    for (uint32_t i = graph->node_count; i-- > 0;) {
        const muc_node *node = &graph->nodes[i];

        p->nodes[i] = muc_op_has(node->op, MUC_OP_STATEFUL);
        for (uint32_t j = 0; j < node->output_count; j++)
            p->nodes[i] = p->nodes[i] || p->tensors[node->outputs[j]];
        if (!p->nodes[i])
            continue;
        for (uint32_t j = 0; j < node->output_count; j++)
            p->tensors[node->outputs[j]] = true;
        for (uint32_t j = 0; j < node->input_count; j++)
            if (node->inputs[j] != MUC_NO_ID)
                p->tensors[node->inputs[j]] = true;
    }
}

static muc_status move_ids(muc_context *ctx, const pruner *p, const uint32_t **ids, uint32_t count)
{
    uint32_t *moved;

    MUC_TRY(MUC_ARENA_NEW(ctx, &p->graph->arena, count, &moved));
    for (uint32_t i = 0; i < count; i++)
        moved[i] = (*ids)[i] == MUC_NO_ID ? MUC_NO_ID : p->moved[(*ids)[i]];
    *ids = moved;
    return MUC_OK;
}

static muc_status close_gaps(muc_context *ctx, pruner *p)
{
    muc_graph *graph = p->graph;
    uint32_t tensors = 0, nodes = 0;

    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        p->moved[i] = tensors;
        if (p->tensors[i])
            graph->tensors[tensors++] = graph->tensors[i];
    }
    graph->tensor_count = tensors;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        muc_node node = graph->nodes[i];

        if (!p->nodes[i])
            continue;
        MUC_TRY(move_ids(ctx, p, &node.inputs, node.input_count));
        MUC_TRY(move_ids(ctx, p, &node.outputs, node.output_count));
        for (uint32_t j = 0; j < node.output_count; j++)
            graph->tensors[node.outputs[j]].producer = nodes;
        graph->nodes[nodes++] = node;
    }
    graph->node_count = nodes;
    for (uint32_t i = 0; i < graph->output_count; i++)
        graph->outputs[i] = p->moved[graph->outputs[i]];
    muc_graph_index_names(graph);
    return MUC_OK;
}

muc_status muc_graph_prune(muc_context *ctx, muc_graph *graph)
{
    pruner p = { .graph = graph };
    muc_arena scratch = { 0 };
    muc_status status;

    status = MUC_ARENA_NEW(ctx, &scratch, graph->tensor_count + (size_t)1, &p.tensors);
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(ctx, &scratch, graph->node_count + (size_t)1, &p.nodes);
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(ctx, &scratch, graph->tensor_count + (size_t)1, &p.moved);
    if (status == MUC_OK) {
        mark(&p);
        status = close_gaps(ctx, &p);
    }
    muc_arena_free(&scratch);
    return status;
}
