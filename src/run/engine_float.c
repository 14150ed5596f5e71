/* engine_float.c - runs a checkpoint's graph with the reference in float32. */
#include <stdlib.h>

#include "run/engine.h"
#include "models/llama.h"
#include "ref/ref.h"

typedef struct float_state {
    muc_graph *graph;
    muc_ref *ref;
} float_state;

static void facts(const muc_model *model, muc_engine_facts *out)
{
    *out = (muc_engine_facts){
        .arithmetic = model->checkpoint.embedding ? "float32 between int8 products" : "float32",
        .vocabulary = model->checkpoint.config.vocabulary,
        .context = model->context,
    };
}

static muc_status open_float(muc_engine *engine)
{
    const muc_llama_options options = { .context = engine->facts.context, .skips = true };
    float_state *state;

    MUC_TRY(MUC_NEW_ARRAY(engine->ctx, "engine", 1, &state));
    engine->state = state;
    MUC_TRY(muc_llama_build(engine->ctx, &engine->model->checkpoint, &options, &state->graph));
    MUC_TRY(muc_ref_open(engine->ctx, state->graph, &state->ref));
    return muc_ref_share(state->ref);
}

static muc_status feed(muc_engine *engine, const uint32_t *tokens, uint32_t count, bool all,
                       const float **logits)
{
    float_state *state = engine->state;
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { engine->position, count, all ? 0 : count - 1 };
    int32_t signed_tokens[MUC_ENGINE_MOST_TOKENS];
    const muc_ref_input input = { "tokens", signed_tokens, count * sizeof(*signed_tokens) };
    size_t rows, columns;

    for (uint32_t i = 0; i < count; i++)
        signed_tokens[i] = (int32_t)tokens[i];
    MUC_TRY(muc_ref_run(state->ref, bindings, &input, 1));
    *logits = muc_ref_read(state->ref, "head", &rows, &columns);
    return MUC_OK;
}

static void reset(muc_engine *engine)
{
    float_state *state = engine->state;

    muc_ref_reset(state->ref);
}

static void close_float(muc_engine *engine)
{
    float_state *state = engine->state;

    if (!state)
        return;
    muc_ref_close(state->ref);
    muc_graph_free(state->graph);
    free(state);
}

/* Rows of a cache up to the position; other states whole. */
static bool memory(muc_engine *engine, size_t i, void **data, size_t *bytes)
{
    const float_state *state = engine->state;
    const muc_graph *graph = state->graph;
    muc_ref_view view;
    uint32_t t = 0;

    for (size_t left = i + 1; t < graph->tensor_count; t++)
        if (graph->tensors[t].kind == MUC_TENSOR_STATE && --left == 0)
            break;
    if (t == graph->tensor_count)
        return false;
    *data = muc_ref_state(state->ref, t, bytes);
    if (muc_ref_get(state->ref, t, &view) && view.rank > 1 && view.dims[0] == engine->facts.context)
        *bytes = *bytes / engine->facts.context * engine->position;
    return true;
}

const muc_engine_kind muc_engine_float = {
    .facts = facts,
    .open = open_float,
    .feed = feed,
    .reset = reset,
    .close = close_float,
    .memory = memory,
};
