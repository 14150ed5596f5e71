/* graph.c - looks up rows of the tables, and builds a graph tensor by tensor, node by node. */
#include "graph/graph_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/visible_name.h"

enum { MAX_ITEMS = 1 << 24, MAX_NAME = 65536 };

static const muc_op_info ops[] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    { name, least, most, least_out, most_out, flags, meaning },
#include "graph/ops.def"
};

static const muc_attribute_info attributes_table[] = {
#define MUC_ATTRIBUTE(id, name, type, meaning) \
    { name, MUC_ATTRIBUTE_##type, INT64_MIN, INT64_MAX, meaning },
#define MUC_INTEGER(id, name, least, most, meaning) \
    { name, MUC_ATTRIBUTE_INTEGER, least, most, meaning },
#include "graph/attributes.def"
};

static const char *const words[] = {
#define MUC_WORD(id, name) name,
#include "graph/attribute_words.def"
#undef MUC_WORD
};

typedef enum need { NOT_TAKEN, TAKEN, NEEDED } need;

static const struct {
    muc_op op;
    uint8_t needs[MUC_KEY_COUNT]; /* a need */
    muc_product product;
    muc_gates gates;
} op_facts[] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    { .op = MUC_OP_##id, MUC_FACTS facts },
#define REQUIRED(key) .needs[MUC_KEY_##key] = NEEDED,
#define OPTIONAL(key) .needs[MUC_KEY_##key] = TAKEN,
#define PRODUCT(kind, weights, zero, weights_zero, bias) \
    .product = { MUC_PRODUCT_##kind, weights, zero, weights_zero, bias },
#define GATES(count, wide) .gates = { count, wide },
#include "graph/ops.def"
};

const muc_op_info *muc_op_get(muc_op op)
{
    return &ops[op];
}

const muc_product *muc_op_product(muc_op op)
{
    return &op_facts[op].product;
}

const muc_gates *muc_op_gates(muc_op op)
{
    return &op_facts[op].gates;
}

bool muc_op_has_matrix(muc_op op)
{
    return op == MUC_OP_EMBED || muc_op_has(op, MUC_OP_WEIGHTED);
}

bool muc_op_has(muc_op op, unsigned flag)
{
    return ops[op].flags & flag;
}

bool muc_op_bounds(muc_op op, bool *at_zero)
{
    bool bounds = ops[op].flags & MUC_OP_BOUNDS;

    *at_zero = bounds && ops[op].most_inputs == 1;
    return bounds;
}

muc_product_kind muc_op_real_product(muc_op op)
{
    return ops[op].flags & MUC_OP_FLOAT ? op_facts[op].product.kind : MUC_PRODUCT_NONE;
}

bool muc_op_find(const char *name, muc_op *out)
{
    for (unsigned i = 0; i < MUC_COUNT(ops); i++) {
        if (strcmp(ops[i].name, name) == 0) {
            *out = (muc_op)i;
            return true;
        }
    }
    return false;
}

const muc_attribute_info *muc_attribute_get(muc_attribute_key key)
{
    return &attributes_table[key];
}

bool muc_attribute_find(const char *name, muc_attribute_key *out)
{
    for (unsigned i = 0; i < MUC_COUNT(attributes_table); i++) {
        if (strcmp(attributes_table[i].name, name) == 0) {
            *out = (muc_attribute_key)i;
            return true;
        }
    }
    return false;
}

const char *muc_word_name(muc_word word)
{
    return words[word];
}

bool muc_word_find(const char *name, muc_word *out)
{
    for (unsigned i = 0; i < MUC_COUNT(words); i++) {
        if (strcmp(words[i], name) == 0) {
            *out = (muc_word)i;
            return true;
        }
    }
    return false;
}

bool muc_op_takes(muc_op op, muc_attribute_key key, bool *required)
{
    if (op >= MUC_OP_COUNT || key >= MUC_KEY_COUNT)
        return false;
    *required = op_facts[op].needs[key] == NEEDED;
    return op_facts[op].needs[key] != NOT_TAKEN;
}

const char *muc_tensor_kind_name(muc_tensor_kind kind)
{
    static const char *const names[] = { "input", "const", "state", "activation" };

    return names[kind];
}

muc_status muc_graph_new(muc_context *ctx, const char *name, muc_graph **out)
{
    muc_graph *graph = muc_calloc(1, sizeof(*graph));
    muc_status status;

    if (!graph)
        return muc_fail_nomem(ctx, "graph", sizeof(*graph));
    status = muc_expr_pool_new(ctx, &graph->arena, &graph->pool);
    if (status == MUC_OK)
        status = muc_arena_string(ctx, &graph->arena, name, strlen(name), &graph->name);
    if (status != MUC_OK) {
        muc_graph_free(graph);
        return status;
    }
    *out = graph;
    return MUC_OK;
}

void muc_graph_free(muc_graph *graph)
{
    if (!graph)
        return;
    muc_arena_free(&graph->arena);
    free(graph);
}

/* where a tensor of this name is, or belongs */
static uint32_t *find_slot(const muc_graph *graph, const char *name)
{
    size_t mask = graph->names.capacity - 1, i = muc_hash_text(name) & mask;

    while (graph->names.slots[i] &&
           strcmp(graph->tensors[graph->names.slots[i] - 1].name, name) != 0)
        i = (i + 1) & mask;
    return &graph->names.slots[i];
}

int muc_tensor_first_byte(const muc_tensor *state)
{
    return state->quantization && state->dtype == MUC_I8 ? state->quantization->zero_points[0] : 0;
}

uint32_t muc_graph_find(const muc_graph *graph, const char *name)
{
    muc_text utf8 = { 0 };
    uint32_t id = MUC_NO_ID;

    if (!graph->names.capacity)
        return MUC_NO_ID;
    /* an empty slot holds 0, which becomes MUC_NO_ID */
    if (muc_is_utf8(name, strlen(name)))
        return *find_slot(graph, name) - 1;
    muc_text_add_utf8(&utf8, name);
    if (!utf8.failed)
        id = *find_slot(graph, utf8.data) - 1;
    muc_text_free(&utf8);
    return id;
}

/* copies a name, as UTF-8 */
static muc_status copy_name(muc_context *ctx, muc_graph *graph, const char *name, const char **out)
{
    muc_text utf8 = { 0 };
    muc_status status;

    if (muc_is_utf8(name, strlen(name)))
        return muc_arena_string(ctx, &graph->arena, name, strlen(name), out);
    muc_text_add_utf8(&utf8, name);
    status = muc_text_status(ctx, &utf8);
    if (status == MUC_OK)
        status = muc_arena_string(ctx, &graph->arena, utf8.data, utf8.size, out);
    muc_text_free(&utf8);
    return status;
}

static muc_status grow_names(muc_context *ctx, muc_graph *graph)
{
    muc_names *names = &graph->names;

    if ((graph->tensor_count + 1) * (size_t)2 < names->capacity)
        return MUC_OK;
    names->capacity = names->capacity ? names->capacity * 2 : 64;
    MUC_TRY(MUC_ARENA_NEW(ctx, &graph->arena, names->capacity, &names->slots));
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        *find_slot(graph, graph->tensors[i].name) = i + 1;
    return MUC_OK;
}

void muc_graph_index_names(muc_graph *graph)
{
    for (size_t i = 0; i < graph->names.capacity; i++)
        graph->names.slots[i] = 0;
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        *find_slot(graph, graph->tensors[i].name) = i + 1;
}

/* appends a tensor under a fresh name, which it copies */
static muc_status append(muc_context *ctx, muc_graph *graph, const muc_tensor *tensor,
                         uint32_t *out)
{
    size_t length = strlen(tensor->name);
    muc_tensor *added;

    if (graph->tensor_count >= MAX_ITEMS || length == 0 || length > MAX_NAME)
        return muc_fail(ctx, MUC_UNSUPPORTED, graph->name, MUC_NO_OFFSET,
                        "tensor '%.40s': more than %d tensors, or a name of %zu bytes",
                        tensor->name, MAX_ITEMS, length);
    if (muc_graph_find(graph, tensor->name) != MUC_NO_ID)
        return muc_fail(ctx, MUC_MALFORMED, graph->name, MUC_NO_OFFSET,
                        "two tensors are named '%s'", tensor->name);
    MUC_TRY(grow_names(ctx, graph));
    MUC_TRY(muc_arena_grow(ctx, &graph->arena, graph->tensor_count + (size_t)1, sizeof(*added),
                           &graph->tensor_capacity, (void **)&graph->tensors));
    added = &graph->tensors[graph->tensor_count];
    *added = *tensor;
    MUC_TRY(copy_name(ctx, graph, tensor->name, &added->name));
    *out = graph->tensor_count++;
    *find_slot(graph, added->name) = *out + 1;
    return MUC_OK;
}

static muc_status copy_items(muc_context *ctx, muc_graph *graph, const void *items, size_t count,
                             size_t size, const void **out)
{
    void *copy;

    MUC_TRY(muc_arena_new(ctx, &graph->arena, count, size, &copy));
    if (count)
        memcpy(copy, items, count * size);
    *out = copy;
    return MUC_OK;
}

static muc_status copy_quantization(muc_context *ctx, muc_graph *graph, muc_tensor *tensor)
{
    const muc_quantization *from = tensor->quantization;
    muc_quantization *copy;

    if (!from)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(ctx, &graph->arena, 1, &copy));
    *copy = *from;
    MUC_TRY(copy_items(ctx, graph, from->scales, from->count, sizeof(*from->scales),
                       (const void **)&copy->scales));
    MUC_TRY(copy_items(ctx, graph, from->zero_points, from->count, sizeof(*from->zero_points),
                       (const void **)&copy->zero_points));
    tensor->quantization = copy;
    return MUC_OK;
}

muc_status muc_graph_add_tensor(muc_context *ctx, muc_graph *graph, const muc_tensor *tensor,
                                uint32_t *out)
{
    muc_tensor copy = *tensor;

    copy.producer = MUC_NO_ID;
    MUC_TRY(muc_expr_status(graph->pool));
    MUC_TRY(muc_tensor_check(ctx, graph, &copy, MUC_MALFORMED));
    MUC_TRY(copy_quantization(ctx, graph, &copy));
    return append(ctx, graph, &copy, out);
}

static muc_status copy_attribute(muc_context *ctx, muc_graph *graph, muc_attribute *a)
{
    switch (muc_attribute_get(a->key)->type) {
    case MUC_ATTRIBUTE_INTEGERS:
        return copy_items(ctx, graph, a->value.integers.items, a->value.integers.count,
                          sizeof(*a->value.integers.items),
                          (const void **)&a->value.integers.items);
    case MUC_ATTRIBUTE_REALS:
        return copy_items(ctx, graph, a->value.reals.items, a->value.reals.count,
                          sizeof(*a->value.reals.items), (const void **)&a->value.reals.items);
    case MUC_ATTRIBUTE_EXPRS:
        return copy_items(ctx, graph, a->value.exprs.items, a->value.exprs.count,
                          sizeof(*a->value.exprs.items), (const void **)&a->value.exprs.items);
    case MUC_ATTRIBUTE_INTEGER:
    case MUC_ATTRIBUTE_REAL:
    case MUC_ATTRIBUTE_EXPR:
    case MUC_ATTRIBUTE_WORD:
    case MUC_ATTRIBUTE_DTYPE:
        break;
    }
    return MUC_OK;
}

static muc_status copy_attributes(muc_context *ctx, muc_graph *graph, muc_node *node)
{
    muc_attribute *copy;

    MUC_TRY(MUC_ARENA_NEW(ctx, &graph->arena, node->attribute_count, &copy));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        copy[i] = node->attributes[i];
        MUC_TRY(copy_attribute(ctx, graph, &copy[i]));
    }
    node->attributes = copy;
    return MUC_OK;
}

/* what output i carries: what was given, or what goes with the elements that a node moves */
static const muc_quantization *quantization_of(const muc_graph *graph, const muc_new_node *node,
                                               uint32_t i, const muc_tensor *derived)
{
    const muc_tensor *input;

    if (node->quantization && node->quantization[i])
        return node->quantization[i];
    if (!(ops[node->op].flags & MUC_OP_MOVES))
        return NULL;
    input = &graph->tensors[node->inputs[0]];
    return input->quantization && input->quantization->count == 1 && input->dtype == derived->dtype
               ? input->quantization
               : NULL;
}

/* completes the derived outputs and checks them */
static muc_status describe_outputs(muc_context *ctx, muc_graph *graph, const muc_new_node *node,
                                   const muc_node *added, muc_tensor *derived)
{
    for (uint32_t i = 0; i < added->output_count; i++) {
        derived[i].kind = MUC_TENSOR_ACTIVATION;
        derived[i].producer = graph->node_count;
        derived[i].quantization = quantization_of(graph, node, i, &derived[i]);
        derived[i].name = node->output_names ? node->output_names[i] : NULL;
        if (!derived[i].name && i > 0)
            MUC_TRY(muc_arena_format(ctx, &graph->arena, &derived[i].name, "%s:%u", node->name, i));
        else if (!derived[i].name)
            derived[i].name = node->name;
        MUC_TRY(muc_tensor_check(ctx, graph, &derived[i], MUC_MALFORMED));
        MUC_TRY(copy_quantization(ctx, graph, &derived[i]));
    }
    return muc_node_check_quantization(ctx, graph, added, derived, MUC_MALFORMED);
}

static muc_status append_node(muc_context *ctx, muc_graph *graph, muc_node *node,
                              const muc_tensor *derived)
{
    uint32_t *outputs;

    MUC_TRY(copy_items(ctx, graph, node->inputs, node->input_count, sizeof(*node->inputs),
                       (const void **)&node->inputs));
    MUC_TRY(copy_attributes(ctx, graph, node));
    MUC_TRY(MUC_ARENA_NEW(ctx, &graph->arena, node->output_count, &outputs));
    MUC_TRY(muc_arena_grow(ctx, &graph->arena, graph->node_count + (size_t)1, sizeof(*node),
                           &graph->node_capacity, (void **)&graph->nodes));
    for (uint32_t i = 0; i < node->output_count; i++)
        MUC_TRY(append(ctx, graph, &derived[i], &outputs[i]));
    node->outputs = outputs;
    node->name = graph->tensors[outputs[0]].name;
    graph->nodes[graph->node_count++] = *node;
    return MUC_OK;
}

muc_status muc_graph_add(muc_context *ctx, muc_graph *graph, const muc_new_node *node,
                         uint32_t *outputs)
{
    muc_node added = { .op = node->op,
                       .name = node->name,
                       .input_count = node->input_count,
                       .output_count = node->output_count,
                       .attribute_count = node->attribute_count,
                       .inputs = node->inputs,
                       .attributes = node->attributes };
    muc_tensor derived[MUC_GRAPH_MAX_OUTPUTS] = { { 0 } };

    if (added.output_count == 0)
        added.output_count = ops[node->op].least_outputs;
    while (added.input_count > 0 && added.inputs[added.input_count - 1] == MUC_NO_ID)
        added.input_count--;
    MUC_TRY(muc_expr_status(graph->pool));
    MUC_TRY(muc_node_check(ctx, graph, &added, MUC_MALFORMED));
    MUC_TRY(muc_graph_derive(ctx, graph, &added, derived));
    MUC_TRY(describe_outputs(ctx, graph, node, &added, derived));
    MUC_TRY(append_node(ctx, graph, &added, derived));
    if (outputs)
        memcpy(outputs, added.outputs, added.output_count * sizeof(*outputs));
    return MUC_OK;
}

muc_status muc_graph_add_node(muc_context *ctx, muc_graph *graph, muc_op op, const char *name,
                              const uint32_t *inputs, uint32_t input_count,
                              const muc_attribute *attributes, uint32_t attribute_count,
                              uint32_t *output)
{
    const muc_new_node node = { .op = op,
                                .name = name,
                                .input_count = input_count,
                                .attribute_count = attribute_count,
                                .inputs = inputs,
                                .attributes = attributes };
    uint32_t outputs[MUC_GRAPH_MAX_OUTPUTS];

    MUC_TRY(muc_graph_add(ctx, graph, &node, outputs));
    *output = outputs[0];
    return MUC_OK;
}

muc_status muc_graph_add_output(muc_context *ctx, muc_graph *graph, uint32_t tensor)
{
    if (tensor >= graph->tensor_count)
        return muc_fail(ctx, MUC_MALFORMED, graph->name, MUC_NO_OFFSET, "output %u of %u tensors",
                        tensor, graph->tensor_count);
    MUC_TRY(muc_arena_grow(ctx, &graph->arena, graph->output_count + (size_t)1, sizeof(tensor),
                           &graph->output_capacity, (void **)&graph->outputs));
    graph->outputs[graph->output_count++] = tensor;
    return MUC_OK;
}

const muc_attribute *muc_node_attribute(const muc_node *node, muc_attribute_key key)
{
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].key == key)
            return &node->attributes[i];
    return NULL;
}

int64_t muc_node_integer(const muc_node *node, muc_attribute_key key)
{
    return muc_node_attribute(node, key)->value.integer;
}

double muc_node_real(const muc_node *node, muc_attribute_key key)
{
    return muc_node_attribute(node, key)->value.real;
}

int64_t muc_node_integer_or(const muc_node *node, muc_attribute_key key, int64_t fallback)
{
    const muc_attribute *attribute = muc_node_attribute(node, key);

    return attribute ? attribute->value.integer : fallback;
}

double muc_node_real_or(const muc_node *node, muc_attribute_key key, double fallback)
{
    const muc_attribute *attribute = muc_node_attribute(node, key);

    return attribute ? attribute->value.real : fallback;
}

muc_word muc_node_word_or(const muc_node *node, muc_attribute_key key, muc_word fallback)
{
    return (muc_word)muc_node_integer_or(node, key, fallback);
}

const int64_t *muc_node_integers(const muc_node *node, muc_attribute_key key)
{
    const muc_attribute *attribute = muc_node_attribute(node, key);

    return attribute ? attribute->value.integers.items : NULL;
}

int64_t muc_node_item_or(const muc_node *node, muc_attribute_key key, uint32_t i, int64_t fallback)
{
    const int64_t *items = muc_node_integers(node, key);

    return items ? items[i] : fallback;
}

bool muc_node_counts_padding(const muc_node *node)
{
    const muc_attribute *pads = muc_node_attribute(node, MUC_KEY_PADS);

    for (uint32_t i = 0; pads && i < pads->value.integers.count; i++)
        if (pads->value.integers.items[i] != 0)
            return muc_node_integer_or(node, MUC_KEY_COUNT_INCLUDE_PAD, 0) != 0;
    return false;
}

const muc_node *muc_graph_only_reader(const muc_graph *graph, uint32_t tensor, uint32_t *input)
{
    const muc_node *found = NULL;

    for (uint32_t i = 0; i < graph->output_count; i++)
        if (graph->outputs[i] == tensor)
            return NULL;
    for (uint32_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->nodes[n].input_count; i++) {
            if (graph->nodes[n].inputs[i] != tensor)
                continue;
            if (found)
                return NULL;
            found = &graph->nodes[n];
            *input = i;
        }
    return found;
}

uint32_t muc_graph_integers_of(const muc_graph *graph, uint32_t tensor)
{
    uint32_t producer = tensor == MUC_NO_ID ? MUC_NO_ID : graph->tensors[tensor].producer;
    const muc_node *node = producer == MUC_NO_ID ? NULL : &graph->nodes[producer];

    return node && muc_op_has(node->op, MUC_OP_CONVERTS) && !graph->tensors[tensor].quantization &&
                   graph->tensors[node->inputs[0]].quantization
               ? node->inputs[0]
               : MUC_NO_ID;
}

uint32_t muc_node_input(const muc_node *node, uint32_t i)
{
    return i < node->input_count ? node->inputs[i] : MUC_NO_ID;
}

muc_subject muc_node_subject(muc_context *ctx, const muc_graph *graph, const muc_node *node)
{
    return muc_subject_of(ctx, graph->name, MUC_NO_OFFSET, "node '%s'", node->name);
}

muc_expr muc_node_expr(const muc_node *node, muc_attribute_key key)
{
    return muc_node_attribute(node, key)->value.expr;
}

muc_status muc_tensor_measure_bound(muc_context *ctx, const muc_graph *graph,
                                    const muc_tensor *tensor, const uint32_t *bindings,
                                    uint64_t *elements, uint64_t *bytes)
{
    uint64_t dims[MUC_GRAPH_MAX_RANK];

    for (uint32_t i = 0; i < tensor->rank; i++) {
        uint32_t dim;

        MUC_TRY(muc_expr_eval(ctx, graph->pool, tensor->dims[i], bindings, &dim));
        dims[i] = dim;
    }
    if (!muc_dtype_measure(tensor->dtype, tensor->rank, dims, elements, bytes))
        return muc_fail(ctx, MUC_UNSUPPORTED, graph->name, MUC_NO_OFFSET,
                        "tensor '%s' has no size in bytes", tensor->name);
    return MUC_OK;
}
