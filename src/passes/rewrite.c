/* rewrite.c - rebuilds a graph node by node, as a pass decides, and swaps it for the old one. */
#include "passes/rewrite.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void mark_needed(muc_rewrite *r)
{
    for (uint32_t i = 0; i < r->old.output_count; i++) {
        r->readers[r->old.outputs[i]]++;
        r->is_output[r->old.outputs[i]] = true;
    }
    for (uint32_t n = r->old.node_count; n-- > 0;) {
        const muc_node *node = &r->old.nodes[n];
        bool keep = muc_op_has(node->op, MUC_OP_STATEFUL);

        for (uint32_t i = 0; i < node->output_count; i++)
            keep = keep || r->readers[node->outputs[i]] > 0;
        r->needed[n] = keep;
        for (uint32_t i = 0; keep && i < node->input_count; i++)
            if (node->inputs[i] != MUC_NO_ID) {
                r->readers[node->inputs[i]]++;
                r->consumer[node->inputs[i]] = n;
            }
    }
}

static muc_status allocate(muc_rewrite *r)
{
    size_t tensors = r->old.tensor_count;

    MUC_TRY(MUC_NEW_ARRAY(r->ctx, r->old.name, tensors, &r->map));
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, r->old.name, tensors, &r->readers));
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, r->old.name, tensors, &r->consumer));
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, r->old.name, tensors, &r->is_output));
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, r->old.name, r->old.node_count, &r->needed));
    for (size_t i = 0; i < tensors; i++) {
        r->map[i] = MUC_NO_ID;
        r->readers[i] = 0;
        r->is_output[i] = false;
    }
    return MUC_OK;
}

muc_status muc_rewrite_begin(muc_context *ctx, muc_graph *graph, muc_rewrite *r)
{
    memset(r, 0, sizeof(*r));
    r->ctx = ctx;
    r->graph = graph;
    r->old = *graph;
    MUC_TRY(allocate(r));
    mark_needed(r);
    graph->tensors = NULL;
    graph->nodes = NULL;
    graph->outputs = NULL;
    graph->tensor_count = graph->node_count = graph->output_count = 0;
    graph->tensor_capacity = graph->node_capacity = graph->output_capacity = 0;
    memset(&graph->names, 0, sizeof(graph->names));
    for (uint32_t i = 0; i < r->old.tensor_count; i++)
        if (r->old.tensors[i].kind == MUC_TENSOR_INPUT ||
            r->old.tensors[i].kind == MUC_TENSOR_STATE)
            MUC_TRY(muc_graph_add_tensor(ctx, graph, &r->old.tensors[i], &r->map[i]));
    return MUC_OK;
}

void muc_rewrite_free(muc_rewrite *r)
{
    free(r->map);
    free(r->readers);
    free(r->consumer);
    free(r->is_output);
    free(r->needed);
}

muc_status muc_rewrite_tensor(muc_rewrite *r, uint32_t old, uint32_t *out)
{
    *out = MUC_NO_ID;
    if (old == MUC_NO_ID)
        return MUC_OK;
    if (r->map[old] == MUC_NO_ID) {
        if (r->old.tensors[old].kind != MUC_TENSOR_CONST)
            return muc_fail(r->ctx, MUC_BUG, r->old.name, MUC_NO_OFFSET,
                            "a pass left '%s' out, which is read", r->old.tensors[old].name);
        MUC_TRY(muc_graph_add_tensor(r->ctx, r->graph, &r->old.tensors[old], &r->map[old]));
    }
    *out = r->map[old];
    return MUC_OK;
}

muc_status muc_rewrite_change(muc_rewrite *r, const muc_node *node, muc_op op,
                              const uint32_t *inputs, uint32_t input_count,
                              const muc_attribute *attributes, uint32_t attribute_count)
{
    const char *names[MUC_GRAPH_MAX_OUTPUTS];
    const muc_quantization *quantization[MUC_GRAPH_MAX_OUTPUTS];
    uint32_t outputs[MUC_GRAPH_MAX_OUTPUTS];
    const muc_new_node added = { .op = op,
                                 .name = node->name,
                                 .input_count = input_count,
                                 .inputs = inputs,
                                 .attribute_count = attribute_count,
                                 .attributes = attributes,
                                 .output_count = node->output_count,
                                 .output_names = names,
                                 .quantization = quantization };

    for (uint32_t i = 0; i < node->output_count; i++) {
        names[i] = r->old.tensors[node->outputs[i]].name;
        quantization[i] = r->old.tensors[node->outputs[i]].quantization;
    }
    MUC_TRY(muc_graph_add(r->ctx, r->graph, &added, outputs));
    for (uint32_t i = 0; i < node->output_count; i++)
        r->map[node->outputs[i]] = outputs[i];
    return MUC_OK;
}

muc_status muc_rewrite_keep(muc_rewrite *r, const muc_node *node)
{
    uint32_t *inputs;
    muc_status status = MUC_NEW_ARRAY(r->ctx, r->old.name, node->input_count, &inputs);

    for (uint32_t i = 0; i < node->input_count && status == MUC_OK; i++)
        status = muc_rewrite_tensor(r, node->inputs[i], &inputs[i]);
    if (status == MUC_OK)
        status = muc_rewrite_change(r, node, node->op, inputs, node->input_count, node->attributes,
                                    node->attribute_count);
    free(inputs);
    return status;
}

/* old names are taken too: their tensors may still come */
static bool is_taken(const muc_rewrite *r, const char *name)
{
    return muc_graph_find(r->graph, name) != MUC_NO_ID ||
           muc_graph_find(&r->old, name) != MUC_NO_ID;
}

muc_status muc_rewrite_free_name(muc_rewrite *r, const char *wanted, const char **out)
{
    *out = wanted;
    for (uint32_t i = 2; is_taken(r, *out); i++)
        MUC_TRY(muc_arena_format(r->ctx, &r->graph->arena, out, "%s#%" PRIu32, wanted, i));
    return MUC_OK;
}

muc_status muc_rewrite_add_named(muc_rewrite *r, muc_op op, const char *name,
                                 const uint32_t *inputs, uint32_t input_count,
                                 const muc_attribute *attributes, uint32_t attribute_count,
                                 const muc_quantization *quantization, uint32_t *out)
{
    const muc_new_node node = { .op = op,
                                .name = name,
                                .input_count = input_count,
                                .inputs = inputs,
                                .attribute_count = attribute_count,
                                .attributes = attributes,
                                .output_count = 1,
                                .quantization = &quantization };

    return muc_graph_add(r->ctx, r->graph, &node, out);
}

muc_status muc_rewrite_add(muc_rewrite *r, muc_op op, const char *name, const uint32_t *inputs,
                           uint32_t input_count, const muc_attribute *attributes,
                           uint32_t attribute_count, const muc_quantization *quantization,
                           uint32_t *out)
{
    MUC_TRY(muc_rewrite_free_name(r, name, &name));
    return muc_rewrite_add_named(r, op, name, inputs, input_count, attributes, attribute_count,
                                 quantization, out);
}

muc_cut muc_cut_of(const int64_t *axes, const muc_expr *starts, const muc_expr *sizes,
                   const int64_t *steps, uint32_t count)
{
    return (muc_cut){ MUC_OP_SLICE,
                      { { MUC_KEY_AXES, .value.integers = { axes, count } },
                        { MUC_KEY_STARTS, .value.exprs = { starts, count } },
                        { MUC_KEY_SIZES, .value.exprs = { sizes, count } },
                        { MUC_KEY_STEPS, .value.integers = { steps, count } } },
                      steps ? 4 : 3 };
}

muc_status muc_rewrite_add_view(muc_rewrite *r, const char *name, uint32_t x, const muc_expr *dims,
                                uint32_t rank, uint32_t *out)
{
    const muc_attribute shape = { .key = MUC_KEY_SHAPE, .value.exprs = { dims, rank } };

    return muc_rewrite_add(r, MUC_OP_RESHAPE, name, &x, 1, &shape, 1, NULL, out);
}

muc_status muc_rewrite_change_to_view(muc_rewrite *r, const muc_node *node, uint32_t x)
{
    const muc_tensor *y = muc_rewrite_old(r, node->outputs[0]);
    const muc_attribute shape = { .key = MUC_KEY_SHAPE, .value.exprs = { y->dims, y->rank } };

    return muc_rewrite_change(r, node, MUC_OP_RESHAPE, &x, 1, &shape, 1);
}

bool muc_attribute_list_of(muc_attribute_list *a, const muc_node *node)
{
    if (node->attribute_count + 2 > MUC_COUNT(a->items))
        return false;
    memcpy(a->items, node->attributes, node->attribute_count * sizeof(*node->attributes));
    a->count = node->attribute_count;
    return true;
}

void muc_attribute_list_set(muc_attribute_list *a, muc_attribute attribute)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (a->items[i].key == attribute.key) {
            a->items[i] = attribute;
            return;
        }
    a->items[a->count++] = attribute;
}

muc_status muc_rewrite_constant(muc_rewrite *r, const char *name, const muc_tensor *like,
                                const void *data, uint64_t bytes, uint32_t *out)
{
    muc_tensor tensor = *like;
    uint8_t *copy;

    tensor.data = data;
    if (!muc_graph_is_shape(r->graph, &tensor)) {
        MUC_TRY(muc_arena_new(r->ctx, &r->graph->arena, (size_t)bytes, 1, (void **)&copy));
        memcpy(copy, data, (size_t)bytes);
        tensor.data = copy;
    }
    MUC_TRY(muc_rewrite_free_name(r, name, &tensor.name));
    tensor.kind = MUC_TENSOR_CONST;
    tensor.bytes = bytes;
    return muc_graph_add_tensor(r->ctx, r->graph, &tensor, out);
}

muc_status muc_rewrite_transpose_bytes(muc_rewrite *r, const muc_tensor *w, uint32_t *out)
{
    muc_tensor like = *w;
    muc_quantization q;
    muc_status status;
    uint32_t k, n;
    uint8_t *bytes;

    if (!muc_rewrite_dim(&r->old, w, 0, &k) || !muc_rewrite_dim(&r->old, w, 1, &n))
        return muc_fail(r->ctx, MUC_BUG, r->old.name, MUC_NO_OFFSET,
                        "constant '%s' has no fixed shape", w->name);
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, r->old.name, (size_t)w->bytes + 1, &bytes));
    for (size_t i = 0; i < (size_t)w->bytes; i++)
        bytes[i % n * k + i / n] = w->data[i];
    like.dims[0] = w->dims[1];
    like.dims[1] = w->dims[0];
    if (w->quantization) {
        q = *w->quantization;
        q.axis = 0;
        like.quantization = &q;
    }
    status = muc_rewrite_constant(r, w->name, &like, bytes, w->bytes, out);
    free(bytes);
    return status;
}

muc_status muc_rewrite_end(muc_rewrite *r)
{
    for (uint32_t i = 0; i < r->old.output_count; i++) {
        uint32_t id;

        MUC_TRY(muc_rewrite_tensor(r, r->old.outputs[i], &id));
        MUC_TRY(muc_graph_add_output(r->ctx, r->graph, id));
    }
    return muc_graph_verify(r->ctx, r->graph);
}

static muc_status go_over(muc_rewrite *r, muc_rewrite_rule *const *rules, size_t count)
{
    for (uint32_t n = 0; n < r->old.node_count; n++) {
        bool done = !r->needed[n];

        r->changed = r->changed || done;
        for (size_t i = 0; i < count && !done; i++) {
            MUC_TRY(rules[i](r, &r->old.nodes[n], &done));
            r->changed = r->changed || done;
        }
        if (!done)
            MUC_TRY(muc_rewrite_keep(r, &r->old.nodes[n]));
    }
    return muc_rewrite_end(r);
}

muc_status muc_rewrite_with(muc_context *ctx, muc_graph *graph, muc_rewrite_rule *const *rules,
                            size_t count, bool *changed)
{
    enum { MOST_ROUNDS = 64 };

    for (int round = 0; round < MOST_ROUNDS; round++) {
        muc_rewrite r;
        muc_status status = muc_rewrite_begin(ctx, graph, &r);

        if (status == MUC_OK)
            status = go_over(&r, rules, count);
        muc_rewrite_free(&r);
        MUC_TRY(status);
        if (!r.changed)
            return MUC_OK;
        if (changed)
            *changed = true;
    }
    return MUC_OK;
}

bool muc_rewrite_alias(muc_rewrite *r, const muc_node *node, uint32_t old, muc_status *status)
{
    uint32_t out = node->outputs[0];

    if (r->is_output[out] || node->output_count != 1)
        return false;
    *status = muc_rewrite_tensor(r, old, &r->map[out]);
    return true;
}

const muc_node *muc_rewrite_only_reader(const muc_rewrite *r, uint32_t tensor)
{
    if (r->readers[tensor] != 1 || r->is_output[tensor])
        return NULL;
    return &r->old.nodes[r->consumer[tensor]];
}

const muc_node *muc_rewrite_producer(const muc_rewrite *r, uint32_t tensor)
{
    uint32_t producer = r->old.tensors[tensor].producer;

    return producer == MUC_NO_ID ? NULL : &r->old.nodes[producer];
}

bool muc_rewrite_is_constant(const muc_rewrite *r, uint32_t tensor)
{
    return tensor != MUC_NO_ID && r->old.tensors[tensor].kind == MUC_TENSOR_CONST &&
           r->old.tensors[tensor].data;
}

bool muc_rewrite_is_shape(const muc_rewrite *r, const muc_tensor *constant, uint64_t bytes)
{
    return muc_graph_is_shape(r->graph, constant) && bytes <= r->graph->zero_bytes;
}

bool muc_rewrite_dim(const muc_graph *graph, const muc_tensor *tensor, uint32_t i, uint32_t *out)
{
    if (!muc_expr_is_const(graph->pool, tensor->dims[i]))
        return false;
    *out = muc_expr_get(graph->pool, tensor->dims[i])->immediate;
    return true;
}
