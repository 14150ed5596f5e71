/* text.c - the text form of a graph, one fact a line:
 *
 *     graph llama
 *     input pos 0..511                          an input of expressions: lo..hi, "by N" multiples
 *     table offsets 20, 39, 80                  a table of expressions
 *     assume pos + m at most 512
 *     tensor tokens = input i32 [m]
 *     tensor embedding = const f32 [512, 64] bytes 131072 sequence 19712
 *     tensor layers.0.k_cache = state f32 [512, 32]
 *     node q f32 [m, 64] = linear x, w          outputs, operator, inputs, attributes
 *     node q_rope f32 [m, 64] = rope q, cos, sin heads=8 head_dim=8 position=pos
 *     output logits
 *
 * In this order. A name is bare if it has only letters, digits and "_./:-", else a JSON string.
 */
#include "graph/graph.h"

static bool is_bare(const char *name)
{
    for (const char *p = name; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= '-' && *p <= ':') || *p == '_';

        if (!plain)
            return false;
    }
    return *name != '\0';
}

static void print_name(const char *name, muc_text *text)
{
    if (is_bare(name))
        muc_text_add(text, "%s", name);
    else
        muc_text_add_json(text, name);
}

void muc_tensor_print_shape(const muc_graph *graph, const muc_tensor *tensor, muc_text *text)
{
    muc_text_add(text, "%s [", muc_dtype_get(tensor->dtype)->name);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        muc_text_add(text, "%s", i ? ", " : "");
        muc_expr_print(graph->pool, tensor->dims[i], text);
    }
    muc_text_add(text, "]");
}

static void print_pool(const muc_expr_pool *pool, muc_text *text)
{
    muc_expr e;
    uint32_t hi;

    for (uint32_t i = 0; i < muc_expr_input_count(pool); i++) {
        const muc_expr_input *input = muc_expr_get_input(pool, i);

        muc_text_add(text, "input %s %u..%u", input->name, input->lo, input->hi);
        if (input->multiple > 1)
            muc_text_add(text, " by %u", input->multiple);
        muc_text_add(text, "\n");
    }
    for (uint32_t i = 0; i < muc_expr_table_count(pool); i++) {
        const muc_expr_table *table = muc_expr_get_table(pool, i);

        muc_text_add(text, "table %s ", table->name);
        for (uint32_t j = 0; j < table->count; j++)
            muc_text_add(text, "%s%u", j ? ", " : "", table->values[j]);
        muc_text_add(text, "\n");
    }
    for (uint32_t i = 0; muc_expr_assumption(pool, i, &e, &hi); i++) {
        muc_text_add(text, "assume ");
        muc_expr_print(pool, e, text);
        muc_text_add(text, " at most %u\n", hi);
    }
}

static void print_tensor(const muc_graph *graph, const muc_tensor *tensor, muc_text *text)
{
    if (tensor->kind == MUC_TENSOR_ACTIVATION)
        return;
    muc_text_add(text, "tensor ");
    print_name(tensor->name, text);
    muc_text_add(text, " = %s ", muc_tensor_kind_name(tensor->kind));
    muc_tensor_print_shape(graph, tensor, text);
    if (tensor->kind == MUC_TENSOR_CONST)
        muc_text_add(text, " bytes %llu", (unsigned long long)tensor->bytes);
    if (tensor->sequence_bytes)
        muc_text_add(text, " sequence %llu", (unsigned long long)tensor->sequence_bytes);
    muc_text_add(text, "\n");
}

static void print_attribute(const muc_graph *graph, const muc_attribute *attribute, muc_text *text)
{
    const muc_attribute_info *info = muc_attribute_get(attribute->key);

    muc_text_add(text, " %s=", info->name);
    switch (info->type) {
    case MUC_ATTRIBUTE_INTEGER:
        muc_text_add(text, "%lld", (long long)attribute->value.integer);
        break;
    case MUC_ATTRIBUTE_REAL:
        muc_text_add(text, "%.17g", attribute->value.real);
        break;
    case MUC_ATTRIBUTE_INTEGERS:
        muc_text_add(text, "[");
        for (uint32_t i = 0; i < attribute->value.integers.count; i++)
            muc_text_add(text, "%s%lld", i ? ", " : "",
                         (long long)attribute->value.integers.items[i]);
        muc_text_add(text, "]");
        break;
    case MUC_ATTRIBUTE_EXPR:
        muc_expr_print(graph->pool, attribute->value.expr, text);
        break;
    }
}

static void print_node(const muc_graph *graph, const muc_node *node, muc_text *text)
{
    muc_text_add(text, "node ");
    for (uint32_t i = 0; i < node->output_count; i++) {
        const muc_tensor *output = &graph->tensors[node->outputs[i]];

        muc_text_add(text, "%s", i ? ", " : "");
        print_name(output->name, text);
        muc_text_add(text, " ");
        muc_tensor_print_shape(graph, output, text);
    }
    muc_text_add(text, " = %s", muc_op_get(node->op)->name);
    for (uint32_t i = 0; i < node->input_count; i++) {
        muc_text_add(text, "%s", i ? ", " : " ");
        print_name(graph->tensors[node->inputs[i]].name, text);
    }
    for (uint32_t i = 0; i < node->attribute_count; i++)
        print_attribute(graph, &node->attributes[i], text);
    muc_text_add(text, "\n");
}

void muc_graph_print(const muc_graph *graph, muc_text *text)
{
    muc_text_add(text, "graph ");
    print_name(graph->name, text);
    muc_text_add(text, "\n");
    print_pool(graph->pool, text);
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        print_tensor(graph, &graph->tensors[i], text);
    for (uint32_t i = 0; i < graph->node_count; i++)
        print_node(graph, &graph->nodes[i], text);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        muc_text_add(text, "output ");
        print_name(graph->tensors[graph->outputs[i]].name, text);
        muc_text_add(text, "\n");
    }
}
