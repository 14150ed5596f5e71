/* host_graphs.c - what the master computes, as graphs of their own. */
#include <string.h>

#include "targets/cnnchip/emit/chip_build.h"

/* the node of the step that makes the tensor, or that read it before input k of node i */
static bool is_known(const muc_cnnchip_lowering *l, uint32_t index, uint32_t i, uint32_t k,
                     uint32_t tensor)
{
    const muc_cnnchip_host *host = &l->hosts[index];

    for (uint32_t n = 0; n <= i; n++) {
        const muc_node *node = &l->graph->nodes[host->nodes[n]];

        for (uint32_t j = 0; n < i && j < node->output_count; j++)
            if (node->outputs[j] == tensor)
                return true;
        for (uint32_t j = 0; j < (n < i ? node->input_count : k); j++)
            if (node->inputs[j] == tensor)
                return true;
    }
    return false;
}

bool muc_cnnchip_host_reads(const muc_cnnchip_lowering *l, uint32_t index, uint32_t i, uint32_t k)
{
    uint32_t tensor = l->graph->nodes[l->hosts[index].nodes[i]].inputs[k];

    return tensor != MUC_NO_ID && !is_known(l, index, i, k, tensor);
}

/* passes a tensor that host.bin holds if it is constant; true: it is the one looked for */
static bool pass(const muc_cnnchip_lowering *l, uint32_t id, uint32_t wanted, muc_text *data,
                 uint64_t *offset)
{
    const muc_tensor *t = muc_cnnchip_tensor(l, id);

    if (id == wanted || t->kind != MUC_TENSOR_CONST)
        return id == wanted;
    *offset += t->bytes;
    if (data)
        muc_text_add_bytes(data, t->data, (size_t)t->bytes);
    return false;
}

uint64_t muc_cnnchip_host_data(const muc_cnnchip_lowering *l, uint32_t tensor, muc_text *data)
{
    uint64_t offset = 0;

    for (uint32_t h = 0; h < l->host_count; h++)
        for (uint32_t i = 0; i < l->hosts[h].node_count; i++) {
            const muc_node *node = &l->graph->nodes[l->hosts[h].nodes[i]];

            for (uint32_t k = 0; k < node->input_count; k++)
                if (muc_cnnchip_host_reads(l, h, i, k) &&
                    pass(l, node->inputs[k], tensor, data, &offset))
                    return offset;
        }
    for (uint32_t i = 0; i < l->graph->output_count; i++)
        if (pass(l, l->graph->outputs[i], tensor, data, &offset))
            break;
    return offset;
}

/* ---- a graph of its own ---- */

typedef struct copier {
    muc_context *ctx;
    const muc_cnnchip_lowering *l;
    muc_graph *graph; /* the new one */
    muc_arena arena;
    uint32_t *map; /* old tensor to new one */
} copier;

static muc_expr copy_expr(const copier *c, muc_expr e)
{
    return muc_expr_const(c->graph->pool, muc_expr_get(c->l->graph->pool, e)->immediate);
}

static muc_status add_input(copier *c, uint32_t id)
{
    muc_tensor tensor = *muc_cnnchip_tensor(c->l, id);

    tensor.kind = MUC_TENSOR_INPUT;
    tensor.producer = MUC_NO_ID;
    tensor.data = tensor.sequence = NULL;
    tensor.bytes = tensor.sequence_bytes = 0;
    for (uint32_t i = 0; i < tensor.rank; i++)
        tensor.dims[i] = copy_expr(c, tensor.dims[i]);
    return muc_graph_add_tensor(c->ctx, c->graph, &tensor, &c->map[id]);
}

/* expressions of attributes are constants of the other graph's pool */
static muc_status copy_attributes(copier *c, const muc_node *node, muc_attribute **out)
{
    MUC_TRY(MUC_ARENA_NEW(c->ctx, &c->arena, node->attribute_count + (size_t)1, out));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        muc_attribute *a = &(*out)[i];
        muc_attribute_type type = muc_attribute_get(node->attributes[i].key)->type;
        muc_expr *items;

        *a = node->attributes[i];
        if (type == MUC_ATTRIBUTE_EXPR)
            a->value.expr = copy_expr(c, a->value.expr);
        if (type != MUC_ATTRIBUTE_EXPRS)
            continue;
        MUC_TRY(MUC_ARENA_NEW(c->ctx, &c->arena, a->value.exprs.count + (size_t)1, &items));
        for (uint32_t k = 0; k < a->value.exprs.count; k++)
            items[k] = copy_expr(c, a->value.exprs.items[k]);
        a->value.exprs.items = items;
    }
    return MUC_OK;
}

static muc_status copy_node(copier *c, const muc_node *node)
{
    uint32_t inputs[MUC_GRAPH_MAX_INPUTS], outputs[MUC_GRAPH_MAX_OUTPUTS];
    const char *names[MUC_GRAPH_MAX_OUTPUTS];
    const muc_quantization *quantization[MUC_GRAPH_MAX_OUTPUTS];
    muc_new_node copy = { .op = node->op,
                          .name = node->name,
                          .input_count = node->input_count,
                          .attribute_count = node->attribute_count,
                          .output_count = node->output_count,
                          .inputs = inputs,
                          .output_names = names,
                          .quantization = quantization };
    muc_attribute *attributes;

    for (uint32_t i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i] == MUC_NO_ID ? MUC_NO_ID : c->map[node->inputs[i]];
    for (uint32_t i = 0; i < node->output_count; i++) {
        names[i] = muc_cnnchip_tensor(c->l, node->outputs[i])->name;
        quantization[i] = muc_cnnchip_tensor(c->l, node->outputs[i])->quantization;
    }
    MUC_TRY(copy_attributes(c, node, &attributes));
    copy.attributes = attributes;
    MUC_TRY(muc_graph_add(c->ctx, c->graph, &copy, outputs));
    for (uint32_t i = 0; i < node->output_count; i++) {
        c->map[node->outputs[i]] = outputs[i];
        MUC_TRY(muc_graph_add_output(c->ctx, c->graph, outputs[i]));
    }
    return MUC_OK;
}

static muc_status copy_step(copier *c, uint32_t index)
{
    const muc_cnnchip_host *host = &c->l->hosts[index];

    MUC_TRY(MUC_ARENA_NEW(c->ctx, &c->arena, c->l->graph->tensor_count + (size_t)1, &c->map));
    for (uint32_t i = 0; i < host->node_count; i++) {
        const muc_node *node = &c->l->graph->nodes[host->nodes[i]];

        for (uint32_t k = 0; k < node->input_count; k++)
            if (muc_cnnchip_host_reads(c->l, index, i, k))
                MUC_TRY(add_input(c, node->inputs[k]));
        MUC_TRY(copy_node(c, node));
    }
    return MUC_OK;
}

muc_status muc_cnnchip_print_host(muc_context *ctx, const muc_cnnchip_build *build, uint32_t index,
                                  muc_text *text)
{
    copier c = { .ctx = ctx, .l = &build->lowering };
    muc_status status;

    MUC_TRY(muc_graph_new(ctx, "host", &c.graph));
    status = copy_step(&c, index);
    if (status == MUC_OK)
        muc_graph_print(c.graph, text);
    muc_graph_free(c.graph);
    muc_arena_free(&c.arena);
    return status;
}
