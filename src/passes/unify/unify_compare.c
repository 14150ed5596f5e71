/* unify_compare.c - whether exports are of one network: their nodes one by one, operators, where
 * inputs come from, attributes; constants that differ get their words of the calibration record. */
#include <string.h>

#include "passes/unify/unifier.h"

muc_status muc_unifier_differ(const muc_unifier *u, uint32_t export, uint32_t node,
                              const char *sentence)
{
    return muc_fail(u->ctx, MUC_UNSUPPORTED, u->paths[export], MUC_NO_OFFSET,
                    "no export of the same network as '%s': node '%s' (%s) %s", u->paths[0],
                    muc_unifier_first(u)->nodes[node].name,
                    muc_op_get(muc_unifier_first(u)->nodes[node].op)->name, sentence);
}

bool muc_unifier_dim(const muc_graph *graph, const muc_tensor *tensor, uint32_t i, uint32_t *out)
{
    if (!muc_expr_is_const(graph->pool, tensor->dims[i]))
        return false;
    *out = muc_expr_get(graph->pool, tensor->dims[i])->immediate;
    return true;
}

static muc_status number_inputs(muc_unifier *u)
{
    MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, u->count, &u->ordinals));
    for (uint32_t g = 0; g < u->count; g++) {
        const muc_graph *graph = u->graphs[g];
        uint32_t ordinal = 0;

        MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, graph->tensor_count, &u->ordinals[g]));
        for (uint32_t i = 0; i < graph->tensor_count; i++)
            if (graph->tensors[i].kind == MUC_TENSOR_INPUT)
                u->ordinals[g][i] = ordinal++;
            else if (graph->tensors[i].kind == MUC_TENSOR_STATE)
                return muc_fail(u->ctx, MUC_UNSUPPORTED, u->paths[g], MUC_NO_OFFSET,
                                "'%s' is a state: exports to be unified have inputs alone",
                                graph->tensors[i].name);
    }
    return MUC_OK;
}

/* which output of its producer an activation is */
static uint32_t output_index(const muc_graph *graph, uint32_t tensor)
{
    const muc_node *node = &graph->nodes[graph->tensors[tensor].producer];
    uint32_t i = 0;

    while (node->outputs[i] != tensor)
        i++;
    return i;
}

static bool same_source(const muc_unifier *u, uint32_t export, uint32_t a, uint32_t b)
{
    const muc_tensor *ta = &muc_unifier_first(u)->tensors[a], *tb = &u->graphs[export]->tensors[b];

    if (ta->kind != tb->kind || ta->dtype != tb->dtype)
        return false;
    if (ta->kind == MUC_TENSOR_INPUT)
        return u->ordinals[0][a] == u->ordinals[export][b];
    return ta->kind != MUC_TENSOR_ACTIVATION ||
           (ta->producer == tb->producer &&
            output_index(muc_unifier_first(u), a) == output_index(u->graphs[export], b));
}

muc_status muc_unifier_constant_at(muc_unifier *u, uint32_t node, uint32_t input,
                                   muc_unifier_constant **out)
{
    uint32_t *ids;
    muc_unifier_constant *c;

    MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, u->count, &ids));
    for (uint32_t g = 0; g < u->count; g++)
        ids[g] = u->graphs[g]->nodes[node].inputs[input];
    for (c = u->constants[ids[0]]; c; c = c->next)
        if (memcmp(c->ids, ids, u->count * sizeof(*ids)) == 0)
            break;
    if (!c) {
        MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, 1, &c));
        c->ids = ids;
        c->next = u->constants[ids[0]];
        c->tensor = MUC_NO_ID;
        u->constants[ids[0]] = c;
    }
    *out = c;
    return MUC_OK;
}

static bool is_uniform(const muc_tensor *tensor)
{
    for (uint64_t i = sizeof(int32_t); i < tensor->bytes; i += sizeof(int32_t))
        if (memcmp(tensor->data, tensor->data + i, sizeof(int32_t)) != 0)
            return false;
    return true;
}

static muc_status compare_constants(muc_unifier *u, uint32_t node, uint32_t input)
{
    const muc_tensor *a = muc_unifier_tensor(u, 0, node, input);
    bool uniform = a->dtype == MUC_I32 && a->bytes > 0 && a->data && is_uniform(a);
    muc_unifier_constant *c;

    MUC_TRY(muc_unifier_constant_at(u, node, input, &c));
    if (c->words)
        return MUC_OK;
    for (uint32_t g = 1; g < u->count; g++) {
        const muc_tensor *b = muc_unifier_tensor(u, g, node, input);

        if (a->bytes != b->bytes || !a->data || !b->data)
            return muc_unifier_differ(u, g, node, "has a weight of another size");
        if (memcmp(a->data, b->data, a->bytes) == 0)
            continue;
        if (a->dtype != MUC_I32)
            return muc_unifier_differ(u, g, node, "has other weights");
        c->differs = true;
        uniform = uniform && is_uniform(b);
    }
    if (!c->differs)
        return MUC_OK;
    c->words = uniform ? 1 : (uint32_t)(a->bytes / sizeof(int32_t));
    c->first_word = u->out->record_words;
    u->out->record_words += c->words;
    return MUC_OK;
}

static muc_status compare_inputs(muc_unifier *u, uint32_t id)
{
    const muc_node *node = &muc_unifier_first(u)->nodes[id];

    for (uint32_t i = 0; i < node->input_count; i++) {
        for (uint32_t g = 1; g < u->count; g++) {
            uint32_t a = node->inputs[i], b = u->graphs[g]->nodes[id].inputs[i];

            if ((a == MUC_NO_ID) != (b == MUC_NO_ID) ||
                (a != MUC_NO_ID && !same_source(u, g, a, b)))
                return muc_unifier_differ(u, g, id, "reads something else");
        }
        if (node->inputs[i] != MUC_NO_ID &&
            muc_unifier_first(u)->tensors[node->inputs[i]].kind == MUC_TENSOR_CONST)
            MUC_TRY(compare_constants(u, id, i));
    }
    return MUC_OK;
}

static bool same_attribute(const muc_attribute *a, const muc_attribute *b)
{
    switch (muc_attribute_get(a->key)->type) {
    case MUC_ATTRIBUTE_INTEGER:
    case MUC_ATTRIBUTE_WORD:
    case MUC_ATTRIBUTE_DTYPE:
        return a->value.integer == b->value.integer;
    case MUC_ATTRIBUTE_REAL:
        return memcmp(&a->value.real, &b->value.real, sizeof(double)) == 0;
    case MUC_ATTRIBUTE_INTEGERS:
        return a->value.integers.count == b->value.integers.count &&
               memcmp(a->value.integers.items, b->value.integers.items,
                      a->value.integers.count * sizeof(int64_t)) == 0;
    case MUC_ATTRIBUTE_REALS:
        return a->value.reals.count == b->value.reals.count &&
               memcmp(a->value.reals.items, b->value.reals.items,
                      a->value.reals.count * sizeof(double)) == 0;
    case MUC_ATTRIBUTE_EXPRS:
        return a->value.exprs.count == b->value.exprs.count;
    case MUC_ATTRIBUTE_EXPR:
        return true; /* fitted when the graph is built */
    }
    return false;
}

static muc_status compare_node(muc_unifier *u, uint32_t id)
{
    const muc_node *a = &muc_unifier_first(u)->nodes[id];

    for (uint32_t g = 1; g < u->count; g++) {
        const muc_node *b = &u->graphs[g]->nodes[id];

        if (a->op != b->op || a->input_count != b->input_count ||
            a->output_count != b->output_count || a->attribute_count != b->attribute_count)
            return muc_unifier_differ(u, g, id, "is another operator");
        for (uint32_t i = 0; i < a->attribute_count; i++) {
            const muc_attribute *other = muc_node_attribute(b, a->attributes[i].key);

            if (!other || !same_attribute(&a->attributes[i], other))
                return muc_unifier_differ(u, g, id, "has other attributes");
        }
    }
    return compare_inputs(u, id);
}

static muc_status compare_outputs(const muc_unifier *u)
{
    for (uint32_t g = 1; g < u->count; g++) {
        bool same = u->graphs[g]->output_count == muc_unifier_first(u)->output_count;

        for (uint32_t i = 0; same && i < muc_unifier_first(u)->output_count; i++)
            same = same_source(u, g, muc_unifier_first(u)->outputs[i], u->graphs[g]->outputs[i]);
        if (!same)
            return muc_fail(u->ctx, MUC_UNSUPPORTED, u->paths[g], MUC_NO_OFFSET,
                            "no export of the same network as '%s': other outputs", u->paths[0]);
    }
    return MUC_OK;
}

muc_status muc_unifier_compare(muc_unifier *u)
{
    for (uint32_t g = 1; g < u->count; g++)
        if (u->graphs[g]->node_count != muc_unifier_first(u)->node_count)
            return muc_fail(u->ctx, MUC_UNSUPPORTED, u->paths[g], MUC_NO_OFFSET,
                            "no export of the same network as '%s': %u nodes, expected %u",
                            u->paths[0], u->graphs[g]->node_count,
                            muc_unifier_first(u)->node_count);
    MUC_TRY(number_inputs(u));
    for (uint32_t i = 0; i < muc_unifier_first(u)->node_count; i++)
        MUC_TRY(compare_node(u, i));
    return compare_outputs(u);
}
