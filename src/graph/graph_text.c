/* graph_text.c - the text form of a graph, one fact a line:
 *
 *     graph llama
 *     input pos 0..511                          an input of expressions: lo..hi, "by N" multiples
 *     table offsets 20, 39, 80                  a table of expressions
 *     assume pos + m at most 512
 *     tensor tokens = input i32 [m]
 *     tensor embedding = const f32 [512, 64] bytes 131072 sequence 19712
 *     tensor two = const f32 [2] values 1, -0.5            small constants have their values
 *     tensor x = input i8 [1, 8] scale 0.5 zero -3         quantization for all elements
 *     tensor w = const i8 [2, 8] scale 0.5, 0.25 zero 0, 0 axis 0 bytes 16
 *     tensor layers.0.k_cache = state f32 [512, 32]
 *     node q f32 [m, 64] = linear x, w          outputs, operator, inputs, attributes
 *     node y f32 [m, 64] = clip q, *, high      an absent input
 *     node q_rope f32 [m, 64] = rope q, cos, sin heads=8 head_dim=8 position=pos
 *     output logits
 *
 * In this order. A name is bare if it has only letters, digits and "_./:-", else a JSON string.
 */
#include "graph/graph.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

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
    const muc_expr_promise *promise;

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
    for (uint32_t i = 0; (promise = muc_expr_get_promise(pool, i)); i++) {
        if (promise->what)
            continue; /* of a node's shape, which promises it again */
        muc_text_add(text, "assume ");
        muc_expr_print(pool, promise->a, text);
        muc_text_add(text, " at most %u\n", muc_expr_get(pool, promise->b)->immediate);
    }
}

static void print_quantization(const muc_tensor *tensor, muc_text *text)
{
    const muc_quantization *q = tensor->quantization;

    if (!q)
        return;
    for (uint32_t i = 0; i < q->count; i++)
        muc_text_add(text, "%s %.9g", i ? "," : " scale", (double)q->scales[i]);
    for (uint32_t i = 0; i < q->count; i++)
        muc_text_add(text, "%s %d", i ? "," : " zero", q->zero_points[i]);
    if (q->count > 1)
        muc_text_add(text, " axis %u", q->axis);
}

/* the sign of a NaN and what else it may carry do not count */
static void print_real(double value, int digits, muc_text *text)
{
    if (isnan(value))
        muc_text_add(text, "nan");
    else
        muc_text_add(text, "%.*g", digits, value);
}

static void print_element(const muc_tensor *tensor, uint64_t i, muc_text *text)
{
    const uint8_t *p = tensor->data + i * muc_dtype_get(tensor->dtype)->block_bytes;
    float single;

    if (tensor->dtype == MUC_F64) {
        uint64_t bits = muc_load_u64(p);
        double value;

        memcpy(&value, &bits, sizeof(value));
        print_real(value, 17, text);
    } else if (muc_dtype_to_f32(tensor->dtype, tensor->data, i, 1, &single)) {
        print_real((double)single, 9, text);
    } else if (muc_dtype_is_signed(tensor->dtype)) {
        muc_text_add(text, "%lld", (long long)muc_dtype_integer(tensor->dtype, p));
    } else {
        muc_text_add(text, "%llu", (unsigned long long)muc_dtype_integer(tensor->dtype, p));
    }
}

/* values of a constant of at most so many elements, of types of blocks its bytes; else its size */
static void print_constant(const muc_tensor *tensor, uint64_t most, muc_text *text)
{
    const muc_dtype_info *info = muc_dtype_get(tensor->dtype);
    uint64_t count = tensor->bytes / info->block_bytes * info->block_elements;

    if (!tensor->data || count == 0 || count > most || tensor->sequence_bytes) {
        muc_text_add(text, " bytes %llu", (unsigned long long)tensor->bytes);
        return;
    }
    if (info->block_elements > 1)
        count = tensor->bytes;
    for (uint64_t i = 0; i < count; i++) {
        muc_text_add(text, i ? ", " : " values ");
        if (info->block_elements > 1)
            muc_text_add(text, "%u", tensor->data[i]);
        else
            print_element(tensor, i, text);
    }
}

static void print_tensor(const muc_graph *graph, const muc_tensor *tensor, uint64_t most,
                         muc_text *text)
{
    if (tensor->kind == MUC_TENSOR_ACTIVATION)
        return;
    muc_text_add(text, "tensor ");
    print_name(tensor->name, text);
    muc_text_add(text, " = %s ", muc_tensor_kind_name(tensor->kind));
    muc_tensor_print_shape(graph, tensor, text);
    print_quantization(tensor, text);
    if (tensor->kind == MUC_TENSOR_CONST)
        print_constant(tensor, most, text);
    if (tensor->sequence_bytes)
        muc_text_add(text, " sequence %llu", (unsigned long long)tensor->sequence_bytes);
    muc_text_add(text, "\n");
}

static void print_list(const muc_graph *graph, const muc_attribute *a, muc_text *text)
{
    muc_attribute_type type = muc_attribute_get(a->key)->type;
    uint32_t count = type == MUC_ATTRIBUTE_INTEGERS ? a->value.integers.count
                     : type == MUC_ATTRIBUTE_REALS  ? a->value.reals.count
                                                    : a->value.exprs.count;

    muc_text_add(text, "[");
    for (uint32_t i = 0; i < count; i++) {
        muc_text_add(text, "%s", i ? ", " : "");
        if (type == MUC_ATTRIBUTE_INTEGERS)
            muc_text_add(text, "%lld", (long long)a->value.integers.items[i]);
        else if (type == MUC_ATTRIBUTE_REALS)
            muc_text_add(text, "%.17g", a->value.reals.items[i]);
        else
            muc_expr_print(graph->pool, a->value.exprs.items[i], text);
    }
    muc_text_add(text, "]");
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
    case MUC_ATTRIBUTE_REALS:
    case MUC_ATTRIBUTE_EXPRS:
        print_list(graph, attribute, text);
        break;
    case MUC_ATTRIBUTE_EXPR:
        muc_expr_print(graph->pool, attribute->value.expr, text);
        break;
    case MUC_ATTRIBUTE_WORD:
        muc_text_add(text, "%s", muc_word_name((muc_word)attribute->value.integer));
        break;
    case MUC_ATTRIBUTE_DTYPE:
        muc_text_add(text, "%s", muc_dtype_get((muc_dtype)attribute->value.integer)->name);
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
        print_quantization(output, text);
    }
    muc_text_add(text, " = %s", muc_op_get(node->op)->name);
    for (uint32_t i = 0; i < node->input_count; i++) {
        muc_text_add(text, "%s", i ? ", " : " ");
        if (node->inputs[i] == MUC_NO_ID)
            muc_text_add(text, "*");
        else
            print_name(graph->tensors[node->inputs[i]].name, text);
    }
    for (uint32_t i = 0; i < node->attribute_count; i++)
        print_attribute(graph, &node->attributes[i], text);
    muc_text_add(text, "\n");
}

/* constants of at most so many elements with their values */
static void print_graph(const muc_graph *graph, uint64_t most, muc_text *text)
{
    muc_text_add(text, "graph ");
    print_name(graph->name, text);
    muc_text_add(text, "\n");
    print_pool(graph->pool, text);
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        print_tensor(graph, &graph->tensors[i], most, text);
    for (uint32_t i = 0; i < graph->node_count; i++)
        print_node(graph, &graph->nodes[i], text);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        muc_text_add(text, "output ");
        print_name(graph->tensors[graph->outputs[i]].name, text);
        muc_text_add(text, "\n");
    }
}

void muc_graph_print(const muc_graph *graph, muc_text *text)
{
    print_graph(graph, MUC_GRAPH_PRINTED_ELEMENTS, text);
}

void muc_graph_print_whole(const muc_graph *graph, muc_text *text)
{
    print_graph(graph, UINT64_MAX, text);
}
