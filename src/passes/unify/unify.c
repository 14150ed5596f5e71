/* unify.c - makes one graph from several exports of one network at several lengths.
 *
 * What unify_compare.c found to be one network: dimensions and attributes that differ become
 * expressions of pos and m, constants that differ a part of the calibration record. The graph is
 * built anew, so that all shapes are derived from the expressions, and what is derived is held
 * against every export's shapes.
 */
#include "passes/unify/unify.h"

#include <string.h>

#include "passes/integer/fuse_requantize.h"
#include "passes/rewrite.h"
#include "passes/unify/unifier.h"

/* ---- lengths ---- */

static uint32_t uses_of(const muc_graph *graph, uint32_t tensor)
{
    uint32_t uses = 0;

    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->nodes[i].input_count; k++)
            uses += graph->nodes[i].inputs[k] == tensor;
    for (uint32_t i = 0; i < graph->output_count; i++)
        uses += graph->outputs[i] == tensor;
    return uses;
}

/* node is Concat(cache, new) of export g: rows of the cache and new rows */
static bool append_rows(const muc_unifier *u, uint32_t node, uint32_t g, uint32_t *before,
                        uint32_t *rows)
{
    const muc_graph *graph = u->graphs[g];
    const muc_node *concat = &graph->nodes[node];
    uint32_t axis;

    if (concat->op != MUC_OP_CONCAT || concat->input_count != 2)
        return false;
    axis = (uint32_t)muc_node_integer(concat, MUC_KEY_AXIS);
    return graph->tensors[concat->inputs[0]].kind == MUC_TENSOR_INPUT &&
           uses_of(graph, concat->inputs[0]) == 1 &&
           muc_unifier_dim(graph, muc_unifier_tensor(u, g, node, 0), axis, before) &&
           muc_unifier_dim(graph, muc_unifier_tensor(u, g, node, 1), axis, rows);
}

/* Whether the node grows a cache: an input of nothing else, whose rows or whose new rows differ. */
static bool is_append(const muc_unifier *u, uint32_t node, uint32_t *before, uint32_t *rows)
{
    bool varies = false;

    for (uint32_t g = 0; g < u->count; g++) {
        if (!append_rows(u, node, g, &before[g], &rows[g]))
            return false;
        varies |= before[g] != before[0] || rows[g] != rows[0];
    }
    return varies;
}

static muc_status find_appends(muc_unifier *u, bool *found)
{
    uint32_t *before, *rows;
    size_t bytes = u->count * sizeof(uint32_t);

    *found = false;
    MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, u->count, &before));
    MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, u->count, &rows));
    for (uint32_t i = 0; i < muc_unifier_first(u)->node_count; i++) {
        if (!is_append(u, i, before, rows))
            continue;
        if (*found &&
            (memcmp(before, u->lengths.pos, bytes) != 0 || memcmp(rows, u->lengths.m, bytes) != 0))
            return muc_fail(u->ctx, MUC_UNSUPPORTED, u->paths[0], MUC_NO_OFFSET,
                            "node '%s': its cache does not grow as the first one does",
                            muc_unifier_first(u)->nodes[i].name);
        memcpy(u->lengths.pos, before, bytes);
        memcpy(u->lengths.m, rows, bytes);
        u->appends[i] = *found = true;
    }
    return MUC_OK;
}

static uint32_t input_of(const muc_unifier *u, uint32_t export, uint32_t ordinal)
{
    const muc_graph *graph = u->graphs[export];

    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT && u->ordinals[export][i] == ordinal)
            return i;
    return MUC_NO_ID;
}

/* Dimension i of the tensor that is the first export's `id` in another export, counted from the
 * end, so that a missing leading dimension is 1. */
static muc_status dim_of_input(const muc_unifier *u, uint32_t export, uint32_t id,
                               uint32_t from_end, uint32_t *out)
{
    const muc_graph *graph = u->graphs[export];
    uint32_t other = input_of(u, export, u->ordinals[0][id]);

    *out = 1;
    if (other == MUC_NO_ID)
        return muc_fail(u->ctx, MUC_UNSUPPORTED, u->paths[export], MUC_NO_OFFSET,
                        "no export of the same network as '%s': it has no input for '%s'",
                        u->paths[0], muc_unifier_first(u)->tensors[id].name);
    if (from_end < graph->tensors[other].rank &&
        !muc_unifier_dim(graph, &graph->tensors[other], graph->tensors[other].rank - 1 - from_end,
                         out))
        return muc_fail(
            u->ctx, MUC_UNSUPPORTED, u->paths[export], MUC_NO_OFFSET,
            "input '%s' has a dimension that is not a number: exports to be unified are "
            "each of one length",
            graph->tensors[other].name);
    return MUC_OK;
}

/* the highest rank that an input has in any export */
static muc_status rank_of_input(const muc_unifier *u, uint32_t id, uint32_t *out)
{
    *out = 0;
    for (uint32_t g = 0; g < u->count; g++) {
        uint32_t other = input_of(u, g, u->ordinals[0][id]), rank;

        if (other == MUC_NO_ID)
            continue; /* dim_of_input tells */
        rank = u->graphs[g]->tensors[other].rank;
        *out = rank > *out ? rank : *out;
    }
    return MUC_OK;
}

/* without caches: the first dimension of an input that differs is the number of tokens */
static muc_status find_tokens(muc_unifier *u)
{
    for (uint32_t id = 0; id < muc_unifier_first(u)->tensor_count; id++) {
        uint32_t rank;

        if (muc_unifier_first(u)->tensors[id].kind != MUC_TENSOR_INPUT)
            continue;
        MUC_TRY(rank_of_input(u, id, &rank));
        for (uint32_t i = rank; i-- > 0;) {
            bool varies = false;

            for (uint32_t g = 0; g < u->count; g++) {
                MUC_TRY(dim_of_input(u, g, id, i, &u->lengths.m[g]));
                varies |= u->lengths.m[g] != u->lengths.m[0];
            }
            if (varies)
                return MUC_OK;
        }
    }
    return muc_fail(u->ctx, MUC_USAGE, u->paths[0], MUC_NO_OFFSET,
                    "all %u exports are of one length: give exports of different lengths",
                    u->count);
}

/* Exports must tell pos, m and pos + m apart, from each other and from constants. */
static muc_status check_lengths(const muc_unifier *u)
{
    const muc_lengths *l = &u->lengths;
    bool varies = false, same_sum = true, same = true;

    for (uint32_t g = 0; g < u->count; g++) {
        varies |= l->pos[g] != l->pos[0];
        same_sum &= l->pos[g] + l->m[g] == l->pos[0] + l->m[0];
        same &= l->pos[g] == l->m[g];
    }
    if (varies && (same_sum || same))
        return muc_fail(u->ctx, MUC_USAGE, u->paths[0], MUC_NO_OFFSET,
                        same ? "as many tokens are in the cache as are new in all %u exports: give "
                               "one more that differs"
                             : "tokens in the cache and new ones are as many together in all %u "
                               "exports: give one more that differs",
                        u->count);
    return MUC_OK;
}

static muc_status find_lengths(muc_unifier *u)
{
    uint32_t context = 1, tokens = 1;
    bool found;

    MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, u->count, &u->lengths.pos));
    MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, u->count, &u->lengths.m));
    u->lengths.count = u->count;
    u->lengths.pool = u->out->graph->pool;
    MUC_TRY(find_appends(u, &found));
    if (!found)
        MUC_TRY(find_tokens(u));
    MUC_TRY(check_lengths(u));
    for (uint32_t g = 0; g < u->count; g++) {
        uint32_t end = u->lengths.pos[g] + u->lengths.m[g];

        context = end > context ? end : context;
        tokens = u->lengths.m[g] > tokens ? u->lengths.m[g] : tokens;
        u->out->exports[g].pos = u->lengths.pos[g];
        u->out->exports[g].m = u->lengths.m[g];
    }
    if ((u->options->context && u->options->context < context) ||
        (u->options->tokens && u->options->tokens < tokens))
        return muc_fail(u->ctx, MUC_USAGE, u->paths[0], MUC_NO_OFFSET,
                        "a context of %u and %u tokens are less than the exports' own: %u and %u",
                        u->options->context, u->options->tokens, context, tokens);
    context = u->options->context ? u->options->context : context;
    tokens = u->options->tokens ? u->options->tokens : tokens;
    u->out->context = context;
    return muc_lengths_declare(&u->lengths, context, tokens < context ? tokens : context);
}

/* ---- building ---- */

/* u->vector as an expression; what names it in the message */
static muc_status fit(muc_unifier *u, const char *what, const char *name, muc_expr *out)
{
    *out = muc_lengths_fit(&u->lengths, u->vector);
    MUC_TRY(muc_expr_status(u->lengths.pool));
    if (*out != MUC_EXPR_NONE)
        return MUC_OK;
    for (uint32_t g = 1; g < u->count; g++)
        if (u->vector[g] != u->vector[0])
            return muc_fail(u->ctx, MUC_UNSUPPORTED, u->paths[g], MUC_NO_OFFSET,
                            "%s '%s': %u here and %u in '%s' is not a k * m + c, k * pos + c or "
                            "k * (pos + m) + c",
                            what, name, u->vector[g], u->vector[0], u->paths[0]);
    return MUC_OK;
}

static muc_status build_input(muc_unifier *u, uint32_t id)
{
    muc_tensor tensor = { .name = muc_unifier_first(u)->tensors[id].name,
                          .kind = MUC_TENSOR_INPUT,
                          .dtype = muc_unifier_first(u)->tensors[id].dtype,
                          .producer = MUC_NO_ID,
                          .quantization = muc_unifier_first(u)->tensors[id].quantization };

    MUC_TRY(rank_of_input(u, id, &tensor.rank));
    for (uint32_t i = 0; i < tensor.rank; i++) {
        for (uint32_t g = 0; g < u->count; g++)
            MUC_TRY(dim_of_input(u, g, id, tensor.rank - 1 - i, &u->vector[g]));
        MUC_TRY(fit(u, "input", tensor.name, &tensor.dims[i]));
    }
    return muc_graph_add_tensor(u->ctx, u->out->graph, &tensor, &u->map[id]);
}

/* the cache of Concat(cache, new), with room for the context */
static muc_status build_state(muc_unifier *u, uint32_t node)
{
    const muc_node *concat = &muc_unifier_first(u)->nodes[node];
    const muc_tensor *cache = &muc_unifier_first(u)->tensors[concat->inputs[0]];
    uint32_t axis = (uint32_t)muc_node_integer(concat, MUC_KEY_AXIS);
    muc_unified_cache *entry = &u->out->caches[u->out->cache_count++];
    muc_tensor state = { .name = cache->name,
                         .kind = MUC_TENSOR_STATE,
                         .dtype = cache->dtype,
                         .rank = cache->rank,
                         .producer = MUC_NO_ID };

    for (uint32_t i = 0; i < cache->rank; i++) {
        uint32_t dim = u->out->context;

        if (i != axis && !muc_unifier_dim(muc_unifier_first(u), cache, i, &dim))
            return muc_unifier_differ(u, 0, node,
                                      "has a cache with a dimension that is not a number");
        state.dims[i] = muc_expr_const(u->lengths.pool, dim);
    }
    MUC_TRY(
        muc_arena_string(u->ctx, &u->out->arena, cache->name, strlen(cache->name), &entry->name));
    entry->axis = axis;
    return muc_graph_add_tensor(u->ctx, u->out->graph, &state, &u->map[concat->inputs[0]]);
}

static muc_status build_inputs(muc_unifier *u)
{
    const muc_graph *first = muc_unifier_first(u);
    muc_unified *out = u->out;
    uint32_t inputs = 0;

    for (uint32_t i = 0; i < first->tensor_count; i++)
        inputs += first->tensors[i].kind == MUC_TENSOR_INPUT;
    MUC_TRY(MUC_ARENA_NEW(u->ctx, &out->arena, inputs, &out->caches));
    MUC_TRY(MUC_ARENA_NEW(u->ctx, &out->arena, inputs, &out->inputs));
    for (uint32_t i = 0; i < first->tensor_count; i++) {
        const char *name = first->tensors[i].name;

        if (first->tensors[i].kind == MUC_TENSOR_INPUT)
            MUC_TRY(muc_arena_string(u->ctx, &out->arena, name, strlen(name),
                                     &out->inputs[out->input_count++]));
    }
    for (uint32_t i = 0; i < first->node_count; i++)
        if (u->appends[i])
            MUC_TRY(build_state(u, i));
    for (uint32_t i = 0; i < first->tensor_count; i++)
        if (first->tensors[i].kind == MUC_TENSOR_INPUT && u->map[i] == MUC_NO_ID)
            MUC_TRY(build_input(u, i));
    return MUC_OK;
}

static int32_t word_of(const muc_tensor *tensor, uint64_t i)
{
    int32_t word;

    memcpy(&word, tensor->data + i * sizeof(word), sizeof(word));
    return word;
}

/* the input that holds what exports differ in, and every export's values for it */
static muc_status build_record(muc_unifier *u)
{
    muc_tensor tensor = { .name = MUC_UNIFY_RECORD,
                          .kind = MUC_TENSOR_INPUT,
                          .dtype = MUC_I32,
                          .rank = 1,
                          .producer = MUC_NO_ID };

    for (uint32_t g = 0; g < u->count; g++) {
        int32_t *record;

        MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->out->arena, u->out->record_words, &record));
        u->out->exports[g].record = record;
        for (uint32_t i = 0; i < muc_unifier_first(u)->tensor_count; i++)
            for (const muc_unifier_constant *c = u->constants[i]; c; c = c->next)
                for (uint32_t w = 0; w < c->words; w++)
                    record[c->first_word + w] = word_of(&u->graphs[g]->tensors[c->ids[g]], w);
    }
    if (!u->out->record_words)
        return MUC_OK;
    tensor.dims[0] = muc_expr_const(u->lengths.pool, u->out->record_words);
    MUC_TRY(muc_expr_status(u->lengths.pool));
    return muc_graph_add_tensor(u->ctx, u->out->graph, &tensor, &u->record);
}

/* a name of the first export; of a constant that became several, with a number behind it */
static muc_status fresh_name(muc_unifier *u, const char *name, const char **out)
{
    *out = name;
    for (uint32_t i = 2; muc_graph_find(u->out->graph, *out) != MUC_NO_ID; i++)
        MUC_TRY(muc_arena_format(u->ctx, &u->scratch, out, "%s#%u", name, i));
    return MUC_OK;
}

static muc_attribute exprs_attribute(muc_attribute_key key, const muc_expr *items, uint32_t count)
{
    return (muc_attribute){ key, { .exprs = { items, count } } };
}

/* words of the record in the constant's shape, or [1] where all its elements are the same */
static muc_status build_from_record(muc_unifier *u, const muc_unifier_constant *c,
                                    const muc_tensor *original, uint32_t *out)
{
    muc_graph *graph = u->out->graph;
    const int64_t axis = 0;
    const muc_expr start = muc_expr_const(graph->pool, c->first_word);
    const muc_expr size = muc_expr_const(graph->pool, c->words);
    const muc_cut cut = muc_cut_of(&axis, &start, &size, NULL, 1);
    muc_expr dims[MUC_GRAPH_MAX_RANK];
    muc_attribute shape;
    const char *name;

    MUC_TRY(muc_expr_status(graph->pool));
    MUC_TRY(fresh_name(u, original->name, &name));
    MUC_TRY(muc_graph_add_node(u->ctx, graph, cut.op, name, &u->record, 1, cut.attributes,
                               cut.attribute_count, out));
    if (c->words == 1 || original->rank == 1)
        return MUC_OK;
    for (uint32_t i = 0; i < original->rank; i++)
        dims[i] = muc_expr_const(
            graph->pool, muc_expr_get(muc_unifier_first(u)->pool, original->dims[i])->immediate);
    MUC_TRY(muc_expr_status(graph->pool));
    shape = exprs_attribute(MUC_KEY_SHAPE, dims, original->rank);
    MUC_TRY(fresh_name(u, original->name, &name));
    return muc_graph_add_node(u->ctx, graph, MUC_OP_RESHAPE, name, out, 1, &shape, 1, out);
}

static muc_status build_constant(muc_unifier *u, uint32_t node, uint32_t input, uint32_t *out)
{
    const muc_tensor *original = muc_unifier_tensor(u, 0, node, input);
    muc_tensor tensor = *original;
    muc_unifier_constant *c;

    MUC_TRY(muc_unifier_constant_at(u, node, input, &c));
    if (c->tensor == MUC_NO_ID && c->differs)
        MUC_TRY(build_from_record(u, c, original, &c->tensor));
    if (c->tensor == MUC_NO_ID) {
        MUC_TRY(fresh_name(u, original->name, &tensor.name));
        for (uint32_t i = 0; i < tensor.rank; i++)
            tensor.dims[i] = muc_expr_const(
                u->lengths.pool,
                muc_expr_get(muc_unifier_first(u)->pool, original->dims[i])->immediate);
        MUC_TRY(muc_expr_status(u->lengths.pool));
        MUC_TRY(muc_graph_add_tensor(u->ctx, u->out->graph, &tensor, &c->tensor));
    }
    *out = c->tensor;
    return MUC_OK;
}

static muc_status fit_attribute(muc_unifier *u, uint32_t id, muc_attribute_key key, uint32_t item,
                                muc_expr *out)
{
    for (uint32_t g = 0; g < u->count; g++) {
        const muc_attribute *a = muc_node_attribute(&u->graphs[g]->nodes[id], key);
        muc_expr e = muc_attribute_get(key)->type == MUC_ATTRIBUTE_EXPR
                         ? a->value.expr
                         : a->value.exprs.items[item];

        if (!muc_expr_is_const(u->graphs[g]->pool, e))
            return muc_unifier_differ(u, g, id, "depends on a dimension that is not a number");
        u->vector[g] = muc_expr_get(u->graphs[g]->pool, e)->immediate;
    }
    return fit(u, muc_attribute_get(key)->name, muc_unifier_first(u)->nodes[id].name, out);
}

/* copies of the first export's attributes, with expressions for what differs */
static muc_status build_attributes(muc_unifier *u, uint32_t id, muc_attribute **out)
{
    const muc_node *node = &muc_unifier_first(u)->nodes[id];

    MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, node->attribute_count, out));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        muc_attribute *a = &(*out)[i];
        muc_expr *items;

        *a = node->attributes[i];
        if (muc_attribute_get(a->key)->type == MUC_ATTRIBUTE_EXPR)
            MUC_TRY(fit_attribute(u, id, a->key, 0, &a->value.expr));
        if (muc_attribute_get(a->key)->type != MUC_ATTRIBUTE_EXPRS)
            continue;
        MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, a->value.exprs.count, &items));
        for (uint32_t k = 0; k < a->value.exprs.count; k++)
            MUC_TRY(fit_attribute(u, id, a->key, k, &items[k]));
        a->value.exprs.items = items;
    }
    return MUC_OK;
}

/* what is derived must be what every export has */
static muc_status check_shape(const muc_unifier *u, uint32_t node, uint32_t output, uint32_t built)
{
    const muc_tensor *tensor = &u->out->graph->tensors[built];

    for (uint32_t g = 0; g < u->count; g++) {
        const muc_graph *graph = u->graphs[g];
        const muc_tensor *original = &graph->tensors[graph->nodes[node].outputs[output]];

        for (uint32_t i = 0; i < tensor->rank || i < original->rank; i++) {
            uint32_t expected = 1, found = 1; /* dimension i from the end */

            if (i < tensor->rank)
                MUC_TRY(muc_lengths_eval(u->ctx, &u->lengths, tensor->dims[tensor->rank - 1 - i], g,
                                         &found));
            if (i < original->rank &&
                !muc_unifier_dim(graph, original, original->rank - 1 - i, &expected))
                return muc_unifier_differ(u, g, node, "has a dimension that is not a number");
            if (found != expected)
                return muc_unifier_differ(u, g, node, "has another shape than that of pos and m");
        }
    }
    return MUC_OK;
}

static muc_status build_append(muc_unifier *u, uint32_t id)
{
    const muc_node *concat = &muc_unifier_first(u)->nodes[id];
    const uint32_t inputs[] = { u->map[concat->inputs[0]], u->map[concat->inputs[1]] };
    const muc_attribute attributes[] = {
        { MUC_KEY_AXIS, { .integer = muc_node_integer(concat, MUC_KEY_AXIS) } },
        { MUC_KEY_POSITION, { .expr = u->lengths.pos_expr } },
    };

    return muc_graph_add_node(u->ctx, u->out->graph, MUC_OP_APPEND, concat->name, inputs,
                              MUC_COUNT(inputs), attributes, MUC_COUNT(attributes),
                              &u->map[concat->outputs[0]]);
}

static muc_status build_plain(muc_unifier *u, uint32_t id)
{
    const muc_node *node = &muc_unifier_first(u)->nodes[id];
    muc_new_node copy = { .op = node->op,
                          .name = node->name,
                          .input_count = node->input_count,
                          .attribute_count = node->attribute_count,
                          .output_count = node->output_count };
    const char *names[MUC_GRAPH_MAX_OUTPUTS];
    const muc_quantization *quantization[MUC_GRAPH_MAX_OUTPUTS];
    uint32_t *inputs, outputs[MUC_GRAPH_MAX_OUTPUTS];
    muc_attribute *attributes;

    MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, node->input_count + 1u, &inputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = node->inputs[i];
        if (inputs[i] == MUC_NO_ID)
            continue;
        if (muc_unifier_first(u)->tensors[inputs[i]].kind == MUC_TENSOR_CONST)
            MUC_TRY(build_constant(u, id, i, &inputs[i]));
        else
            inputs[i] = u->map[inputs[i]];
    }
    MUC_TRY(build_attributes(u, id, &attributes));
    for (uint32_t i = 0; i < node->output_count; i++) {
        names[i] = muc_unifier_first(u)->tensors[node->outputs[i]].name;
        quantization[i] = muc_unifier_first(u)->tensors[node->outputs[i]].quantization;
    }
    copy.inputs = inputs;
    copy.attributes = attributes;
    copy.output_names = names;
    copy.quantization = quantization;
    MUC_TRY(muc_graph_add(u->ctx, u->out->graph, &copy, outputs));
    for (uint32_t i = 0; i < node->output_count; i++)
        u->map[node->outputs[i]] = outputs[i];
    return MUC_OK;
}

/* A requantization by 1, which exports have behind every Concat, is not a node: the cache itself is
 * what is read. */
static muc_status is_identity(muc_unifier *u, uint32_t id, bool *out)
{
    const muc_node *node = &muc_unifier_first(u)->nodes[id];

    *out = muc_requant_is_identity(muc_unifier_first(u), node);
    for (uint32_t i = 1; *out && i < node->input_count; i++) {
        muc_unifier_constant *c;

        MUC_TRY(muc_unifier_constant_at(u, id, i, &c));
        *out = !c->differs;
    }
    return MUC_OK;
}

static muc_status build_node(muc_unifier *u, uint32_t id)
{
    const muc_node *node = &muc_unifier_first(u)->nodes[id];
    bool identity;

    MUC_TRY(is_identity(u, id, &identity));
    if (identity) {
        u->map[node->outputs[0]] = u->map[node->inputs[0]];
        return MUC_OK;
    }
    MUC_TRY(u->appends[id] ? build_append(u, id) : build_plain(u, id));
    for (uint32_t i = 0; i < node->output_count; i++)
        MUC_TRY(check_shape(u, id, i, u->map[node->outputs[i]]));
    return MUC_OK;
}

static muc_status build(muc_unifier *u)
{
    MUC_TRY(build_inputs(u));
    MUC_TRY(build_record(u));
    for (uint32_t i = 0; i < muc_unifier_first(u)->node_count; i++)
        MUC_TRY(build_node(u, i));
    for (uint32_t i = 0; i < muc_unifier_first(u)->output_count; i++)
        MUC_TRY(
            muc_graph_add_output(u->ctx, u->out->graph, u->map[muc_unifier_first(u)->outputs[i]]));
    return muc_graph_verify(u->ctx, u->out->graph);
}

static muc_status unify(muc_unifier *u)
{
    uint32_t tensors = muc_unifier_first(u)->tensor_count;

    MUC_TRY(muc_graph_new(u->ctx, muc_unifier_first(u)->name, &u->out->graph));
    MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->out->arena, u->count, &u->out->exports));
    u->out->export_count = u->count;
    MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, tensors, &u->constants));
    MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, tensors, &u->map));
    MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, muc_unifier_first(u)->node_count, &u->appends));
    MUC_TRY(MUC_ARENA_NEW(u->ctx, &u->scratch, u->count, &u->vector));
    for (uint32_t i = 0; i < tensors; i++)
        u->map[i] = MUC_NO_ID;
    MUC_TRY(muc_unifier_compare(u));
    MUC_TRY(find_lengths(u));
    return build(u);
}

muc_status muc_unify(muc_context *ctx, muc_graph *const *graphs, const char *const *paths,
                     uint32_t count, const muc_unify_options *options, muc_unified *out)
{
    muc_unifier u = {
        .ctx = ctx, .graphs = graphs, .paths = paths, .count = count, .options = options, .out = out
    };
    muc_status status;

    memset(out, 0, sizeof(*out));
    if (count < 2 || count > MUC_UNIFY_MAX_EXPORTS)
        return muc_fail(ctx, MUC_USAGE, count ? paths[0] : "unify", MUC_NO_OFFSET,
                        "%u exports: which dimensions grow shows in 2..%u exports of one network "
                        "at different lengths",
                        count, MUC_UNIFY_MAX_EXPORTS);
    status = unify(&u);
    muc_arena_free(&u.scratch);
    if (status != MUC_OK)
        muc_unified_free(out);
    return status;
}

void muc_unified_free(muc_unified *unified)
{
    muc_graph_free(unified->graph);
    muc_arena_free(&unified->arena);
    memset(unified, 0, sizeof(*unified));
}
