/* random_inputs.c - makes up inputs from a small random generator, in the shapes that a network
 * expects. */
#include "run/random_inputs.h"

#include <string.h>

typedef struct maker {
    muc_context *ctx;
    const muc_graph *graph;
    const muc_unified *unified; /* or NULL */
    muc_arena *arena;
    uint32_t bindings[MUC_EXPR_MAX_INPUTS];
    bool indexes_one; /* an index other than 0 may be refused */
    uint32_t state;   /* of the generator */
} maker;

static uint32_t draw(maker *m)
{
    m->state ^= m->state << 13;
    m->state ^= m->state >> 17;
    m->state ^= m->state << 5;
    return m->state;
}

static uint32_t length_of(const muc_expr_input *input)
{
    uint32_t multiple = input->multiple ? input->multiple : 1;
    uint32_t length = input->hi - input->lo < 2 ? input->hi : input->lo + 2;

    length -= length % multiple;
    return length < input->lo ? length + multiple : length;
}

static void bind(maker *m, uint32_t export)
{
    const muc_expr_pool *pool = m->graph->pool;
    uint32_t pos = muc_expr_find_input(pool, "pos"), tokens = muc_expr_find_input(pool, "m");

    for (uint32_t i = 0; i < muc_expr_input_count(pool); i++)
        m->bindings[i] = length_of(muc_expr_get_input(pool, i));
    if (m->unified && pos != UINT32_MAX)
        m->bindings[pos] = m->unified->exports[export].pos;
    if (m->unified && tokens != UINT32_MAX)
        m->bindings[tokens] = m->unified->exports[export].m;
}

/* the next of a few lengths of each input, all combinations in turn */
static void next_lengths(maker *m)
{
    enum { FEW = 16 };
    const muc_expr_pool *pool = m->graph->pool;

    for (uint32_t i = 0; i < muc_expr_input_count(pool); i++) {
        const muc_expr_input *input = muc_expr_get_input(pool, i);
        uint32_t length = m->bindings[i];

        if (input->hi - length >= input->multiple &&
            length - input->lo < (FEW - 1) * (uint64_t)input->multiple) {
            m->bindings[i] = length + input->multiple;
            return;
        }
        m->bindings[i] = input->lo;
    }
}

/* other lengths where the shapes do not fit at these, if a few tries find some */
static void fit_lengths(maker *m)
{
    enum { TRIES = 4096 };
    muc_context *quiet = muc_context_new(1); /* what does not fit is not a failure */
    uint32_t first[MUC_EXPR_MAX_INPUTS];
    uint32_t tries = 0;

    memcpy(first, m->bindings, sizeof(first));
    while (quiet && tries < TRIES &&
           muc_expr_check_bindings(quiet, m->graph->pool, m->bindings) != MUC_OK) {
        next_lengths(m);
        tries++;
    }
    if (tries == TRIES)
        memcpy(m->bindings, first, sizeof(first));
    muc_context_free(quiet);
}

/* Whether a node takes indices into a dimension of 1, wherever they come from. */
static muc_status find_indices(maker *m)
{
    for (uint32_t i = 0; i < m->graph->node_count && !m->indexes_one; i++) {
        const muc_node *node = &m->graph->nodes[i];
        bool indexes = muc_op_has(node->op, MUC_OP_INDEXES);
        bool tuples = indexes && !muc_node_attribute(node, MUC_KEY_AXIS);
        uint32_t axis = (uint32_t)muc_node_integer_or(node, MUC_KEY_AXIS, 0), dim;
        const muc_tensor *data;

        if (!indexes && node->op != MUC_OP_EMBED)
            continue;
        data = &m->graph->tensors[node->inputs[node->op == MUC_OP_EMBED]];
        for (uint32_t d = 0; d < data->rank; d++) {
            MUC_TRY(muc_expr_eval(m->ctx, m->graph->pool, data->dims[d], m->bindings, &dim));
            m->indexes_one = m->indexes_one || (dim == 1 && (tuples || d == axis));
        }
    }
    return MUC_OK;
}

static void fill(maker *m, const muc_tensor_view *view, uint8_t *data)
{
    uint32_t size = muc_dtype_get(view->dtype)->block_bytes;
    bool is_real = muc_dtype_get(view->dtype)->kind == MUC_DTYPE_FLOAT;

    memset(data, 0, (size_t)view->bytes);
    for (uint64_t i = 0; i < view->elements; i++) {
        uint32_t random = draw(m);
        float real = (float)(int32_t)random * 0x1p-31f;

        if (is_real)
            memcpy(data + i * size, &real, size);
        else if (size <= 2 || !m->indexes_one)
            data[i * size] =
                (uint8_t)(size <= 2 && view->dtype != MUC_BOOL ? random >> 24 : random >> 31);
        if (view->dtype == MUC_I16 && data[i * size] >> 7)
            data[i * size + 1] = 0xff;
    }
}

/* axis: of a cache, the one along which it has rows for all positions; else MUC_MAX_RANK */
static muc_status make(maker *m, const muc_tensor *tensor, uint32_t axis, muc_tensor_view *out)
{
    muc_tensor_view view = {
        .name = tensor->name, .file = "inputs made up", .dtype = tensor->dtype, .rank = tensor->rank
    };
    uint32_t pos = muc_expr_find_input(m->graph->pool, "pos"), dim;
    uint8_t *data;

    if (muc_dtype_get(tensor->dtype)->kind == MUC_DTYPE_FLOAT)
        view.dtype = MUC_F32;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        MUC_TRY(muc_expr_eval(m->ctx, m->graph->pool, tensor->dims[i], m->bindings, &dim));
        view.dims[i] = i == axis && pos != UINT32_MAX ? m->bindings[pos] : dim;
    }
    MUC_TRY(muc_tensor_measure(m->ctx, &view));
    MUC_TRY(MUC_ARENA_NEW(m->ctx, m->arena, (size_t)view.bytes + 1, &data));
    fill(m, &view, data);
    view.data = data;
    *out = view;
    return MUC_OK;
}

static uint32_t axis_of(const muc_unified *unified, const char *name)
{
    for (uint32_t i = 0; i < unified->cache_count; i++)
        if (strcmp(unified->caches[i].name, name) == 0)
            return unified->caches[i].axis;
    return MUC_MAX_RANK;
}

muc_status muc_made_arrays(muc_context *ctx, const muc_graph *graph, const muc_unified *unified,
                           uint32_t export, muc_arena *arena, muc_tensor_view **out, size_t *count)
{
    maker m = { .ctx = ctx,
                .graph = graph,
                .unified = unified,
                .arena = arena,
                .state = MUC_MADE_ARRAYS_SEED };

    bind(&m, export);
    if (!unified)
        fit_lengths(&m);
    MUC_TRY(find_indices(&m));
    *count = 0;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, graph->tensor_count + (size_t)1, out));
    for (uint32_t i = 0; unified && i < unified->input_count; i++) {
        const char *name = unified->inputs[i];
        uint32_t id = muc_graph_find(graph, name);

        if (id != MUC_NO_ID)
            MUC_TRY(make(&m, &graph->tensors[id], axis_of(unified, name), &(*out)[(*count)++]));
    }
    for (uint32_t i = 0; !unified && i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT)
            MUC_TRY(make(&m, &graph->tensors[i], MUC_MAX_RANK, &(*out)[(*count)++]));
    return MUC_OK;
}
