/* golden.c - which stage of the machine a node is, and what it must keep from call to call. */
#include "ref/golden/golden.h"

#include "graph/graph_check.h"

#include <stdlib.h>
#include <string.h>

static muc_status refuse(muc_context *ctx, const muc_graph *graph, const muc_node *node,
                         const char *why)
{
    return muc_fail_on(muc_node_subject(ctx, graph, node), MUC_UNSUPPORTED,
                       "the machine's arithmetic %s", why);
}

/* the number of nodes that read a tensor; *reader is the last of them */
static unsigned count_readers(const muc_graph *graph, uint32_t tensor, uint32_t *reader)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        for (uint32_t j = 0; j < graph->nodes[i].input_count; j++) {
            if (graph->nodes[i].inputs[j] == tensor) {
                count++;
                *reader = i;
            }
        }
    }
    return count;
}

static bool is_output(const muc_graph *graph, uint32_t tensor)
{
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (graph->outputs[i] == tensor)
            return true;
    return false;
}

static bool is_made_by(const muc_graph *graph, uint32_t tensor, muc_op op)
{
    uint32_t producer = graph->tensors[tensor].producer;

    return producer != MUC_NO_ID && graph->nodes[producer].op == op;
}

/* a product with one number */
static bool is_scaled(const muc_graph *graph, const muc_node *node)
{
    return node->op == MUC_OP_MUL && graph->tensors[node->inputs[1]].rank == 0 &&
           graph->tensors[node->inputs[1]].kind == MUC_TENSOR_CONST;
}

/* the letter of SPEC section 8 for the activations of a linear node, from its surroundings */
static unsigned terms_of(const muc_graph *graph, const muc_node *node, const muc_ref_terms *terms)
{
    uint32_t reader = 0;

    if (is_made_by(graph, node->inputs[0], MUC_OP_ATTENTION))
        return terms->o;
    if (is_made_by(graph, node->inputs[0], MUC_OP_MUL))
        return terms->h;
    if (count_readers(graph, node->outputs[0], &reader) == 0 ||
        is_scaled(graph, &graph->nodes[reader]))
        return terms->l;
    if (muc_golden_activates(graph->nodes[reader].op) || graph->nodes[reader].op == MUC_OP_MUL)
        return terms->f;
    return terms->x;
}

/* a layer's by the node's name, else those of all */
static const muc_ref_terms *find_layer(const muc_golden *golden, const char *name)
{
    static const char prefix[] = "layers.";
    unsigned long layer;
    char *end;

    if (!golden->terms.layers || strncmp(name, prefix, sizeof(prefix) - 1) != 0)
        return &golden->terms;
    layer = strtoul(name + sizeof(prefix) - 1, &end, 10);
    return *end == '.' && layer < golden->terms.layer_count ? &golden->terms.layers[layer]
                                                            : &golden->terms;
}

/* An addition starts the accumulators of the linear node that it alone reads; of other results it
 * is one. */
static muc_status absorb(muc_context *ctx, muc_golden *golden, uint32_t id)
{
    const muc_graph *graph = golden->graph;
    const muc_node *add = &graph->nodes[id];
    uint32_t linear = graph->tensors[add->inputs[1]].producer, reader;

    if (!is_made_by(graph, add->inputs[0], MUC_OP_LINEAR) &&
        !is_made_by(graph, add->inputs[1], MUC_OP_LINEAR))
        return MUC_OK;
    if (!is_made_by(graph, add->inputs[1], MUC_OP_LINEAR) ||
        count_readers(graph, add->inputs[1], &reader) != 1 || is_output(graph, add->inputs[1]))
        return refuse(ctx, graph, add, "adds only the result of a matrix to a residual");
    golden->nodes[id].linear = &graph->nodes[linear];
    golden->nodes[linear].absorbed = true;
    return MUC_OK;
}

static uint32_t dimension(const muc_graph *graph, const muc_tensor *tensor, uint32_t i)
{
    return muc_expr_get(graph->pool, tensor->dims[i])->lo;
}

/* the sequence of a constant [n, k] */
static muc_status take_sequence(muc_context *ctx, muc_golden *golden, const muc_node *node,
                                uint32_t id)
{
    const muc_tensor *tensor = &golden->graph->tensors[id];

    if (!tensor->sequence || tensor->rank != 2)
        return refuse(ctx, golden->graph, node, "needs weights as a BlockDialect sequence");
    golden->weights[id] = (muc_golden_matrix){ .sequence = tensor->sequence,
                                               .bytes = tensor->sequence_bytes,
                                               .k = dimension(golden->graph, tensor, 1),
                                               .n = dimension(golden->graph, tensor, 0) };
    return MUC_OK;
}

static size_t key_blocks(const muc_graph *graph, const muc_node *node)
{
    return (size_t)muc_node_integer(node, MUC_KEY_KV_HEADS) *
           dimension(graph, &graph->tensors[node->inputs[3]], 0) *
           muc_golden_blocks((size_t)muc_node_integer(node, MUC_KEY_HEAD_DIM));
}

static size_t value_blocks(const muc_graph *graph, const muc_node *node, unsigned step)
{
    return (size_t)muc_node_integer(node, MUC_KEY_KV_HEADS) *
           (dimension(graph, &graph->tensors[node->inputs[4]], 0) / step) *
           (size_t)muc_node_integer(node, MUC_KEY_HEAD_DIM) * 2;
}

/* f32 matrices alone, and operands of additions and products alike */
static bool is_plain(const muc_graph *graph, const muc_node *node)
{
    const muc_tensor *out = &graph->tensors[node->outputs[0]];

    if (out->dtype != MUC_F32 || out->rank != 2)
        return false;
    if (is_scaled(graph, node))
        return true;
    for (uint32_t i = 0; i < node->input_count; i++)
        if ((node->op == MUC_OP_ADD || node->op == MUC_OP_MUL) &&
            !muc_tensor_same_shape(&graph->tensors[node->inputs[i]], out))
            return false;
    return true;
}

static muc_status prepare(muc_context *ctx, muc_golden *golden, uint32_t id)
{
    const muc_graph *graph = golden->graph;
    const muc_node *node = &graph->nodes[id];
    muc_golden_node *kept = &golden->nodes[id];
    const char *refusal = muc_golden_refusal(node);

    if (refusal)
        return refuse(ctx, graph, node, refusal);
    if (!is_plain(graph, node))
        return refuse(ctx, graph, node, "has rows of f32 and does not broadcast them");
    if (node->op == MUC_OP_LINEAR || node->op == MUC_OP_EMBED)
        MUC_TRY(take_sequence(ctx, golden, node, node->inputs[1]));
    kept->of_layer = find_layer(golden, node->name);
    if (node->op == MUC_OP_LINEAR)
        kept->terms = terms_of(graph, node, kept->of_layer);
    if (node->op == MUC_OP_ADD)
        MUC_TRY(absorb(ctx, golden, id));
    if (node->op != MUC_OP_ATTENTION)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(ctx, &golden->arena, key_blocks(graph, node), &kept->keys));
    return MUC_ARENA_NEW(ctx, &golden->arena, value_blocks(graph, node, golden->terms.step),
                         &kept->values);
}

static muc_status check_letters(muc_context *ctx, const muc_graph *graph,
                                const muc_ref_terms *terms)
{
    const uint8_t *letters = (const uint8_t *)terms;

    for (size_t i = 0; i < offsetof(muc_ref_terms, step); i++)
        if (letters[i] != 1 && letters[i] != 2)
            return muc_fail(ctx, MUC_USAGE, graph->name, MUC_NO_OFFSET,
                            "%u terms of an activation, expected 1 or 2", letters[i]);
    return MUC_OK;
}

static muc_status check_terms(muc_context *ctx, const muc_graph *graph, const muc_ref_terms *terms)
{
    MUC_TRY(check_letters(ctx, graph, terms));
    for (uint32_t l = 0; terms->layers && l < terms->layer_count; l++)
        MUC_TRY(check_letters(ctx, graph, &terms->layers[l]));
    if (terms->step != 32 && terms->step != 64)
        return muc_fail(ctx, MUC_USAGE, graph->name, MUC_NO_OFFSET,
                        "%u tokens of a step of attention, expected 32 or 64", terms->step);
    return MUC_OK;
}

static muc_status copy_layers(muc_context *ctx, muc_golden *golden)
{
    size_t count = golden->terms.layer_count;
    muc_ref_terms *layers;

    if (!golden->terms.layers)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(ctx, &golden->arena, count, &layers));
    memcpy(layers, golden->terms.layers, count * sizeof(*layers));
    golden->terms.layers = layers;
    return MUC_OK;
}

static muc_status prepare_all(muc_context *ctx, muc_golden *golden)
{
    const muc_graph *graph = golden->graph;

    MUC_TRY(check_terms(ctx, graph, &golden->terms));
    MUC_TRY(copy_layers(ctx, golden));
    MUC_TRY(MUC_ARENA_NEW(ctx, &golden->arena, graph->node_count, &golden->nodes));
    MUC_TRY(MUC_ARENA_NEW(ctx, &golden->arena, graph->tensor_count, &golden->weights));
    for (uint32_t i = 0; i < graph->node_count; i++)
        MUC_TRY(prepare(ctx, golden, i));
    return MUC_OK;
}

muc_status muc_golden_new(muc_context *ctx, const muc_graph *graph, const muc_ref_terms *terms,
                          muc_golden **out)
{
    muc_golden *golden;
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(ctx, graph->name, 1, &golden));
    golden->graph = graph;
    golden->terms = *terms;
    if (terms->step == 0)
        golden->terms.step = MUC_GOLDEN_TILE_ROWS;
    status = prepare_all(ctx, golden);
    if (status == MUC_OK)
        *out = golden;
    else
        muc_golden_free(golden);
    return status;
}

void muc_golden_free(muc_golden *golden)
{
    if (!golden)
        return;
    muc_arena_free(&golden->arena);
    free(golden->blocks);
    free(golden->seen);
    free(golden);
}

void muc_golden_reset(muc_golden *golden)
{
    const muc_graph *graph = golden->graph;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const muc_node *node = &graph->nodes[i];

        if (node->op != MUC_OP_ATTENTION)
            continue;
        memset(golden->nodes[i].keys, 0, key_blocks(graph, node) * sizeof(muc_golden_block));
        memset(golden->nodes[i].values, 0,
               value_blocks(graph, node, golden->terms.step) * sizeof(muc_golden_block));
    }
}

muc_status muc_golden_reserve(muc_context *ctx, muc_golden *golden, size_t count)
{
    if (count <= golden->block_capacity)
        return MUC_OK;
    free(golden->blocks);
    golden->blocks = NULL;
    golden->block_capacity = 0;
    MUC_TRY(MUC_NEW_ARRAY(ctx, golden->graph->name, count, &golden->blocks));
    golden->block_capacity = count;
    return MUC_OK;
}

static muc_status show_slots(const muc_ref_call *call, const muc_golden_block *blocks, size_t rows,
                             size_t k)
{
    /* the largest slot of 32 elements: two terms of 16 bytes and their headers, and the size */
    size_t per_row = muc_golden_blocks(k) * 37, row_bytes = 0;
    uint8_t *slots;

    MUC_TRY(MUC_NEW_ARRAY(call->ctx, call->graph->name, rows * per_row, &slots));
    for (size_t r = 0; r < rows; r++)
        row_bytes = muc_golden_slots(blocks + r * muc_golden_blocks(k), k, slots + r * row_bytes);
    call->golden->probe(call->golden->probe_arg, call->node, slots, rows, row_bytes);
    free(slots);
    return MUC_OK;
}

muc_status muc_golden_quantize(const muc_ref_call *call, const float *x, size_t rows, size_t k,
                               unsigned terms, muc_golden_block *out)
{
    for (size_t r = 0; r < rows; r++)
        muc_golden_encode(x + r * k, k, terms, out + r * muc_golden_blocks(k));
    return call->golden->probe ? show_slots(call, out, rows, k) : MUC_OK;
}
