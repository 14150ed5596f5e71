/* engine_code.c - C code for a microcontroller, run here: what it computes there, bit for bit. */
#include "targets/mcu/run/engine_code.h"

#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "targets/mcu/emit/code_folder.h"
#include "run/engine.h"
#include "targets/target.h"
#include "report/report_builder.h"
#include "targets/mcu/plan/plan_arena.h"

/* ---- the folder ---- */

static const json_t *description_of(const muc_code_folder *folder)
{
    return json_object_get(folder->json, "language_model");
}

static muc_status find_symbol(muc_context *ctx, const muc_code_folder *folder, void *library,
                              const char *suffix, void **out)
{
    muc_arena arena = { 0 };
    const char *name;
    muc_status status = muc_arena_format(ctx, &arena, &name, "%s_%s", folder->name, suffix);

    if (status == MUC_OK && !(*out = muc_library_find(library, name)))
        status = muc_fail(ctx, MUC_MALFORMED, folder->path, MUC_NO_OFFSET,
                          "its code does not define %s", name);
    muc_arena_free(&arena);
    return status;
}

static muc_status read_numbers(muc_context *ctx, const muc_code_folder *folder, muc_model *model)
{
    muc_model_code *code = muc_model_code_of(model);
    const json_t *description = description_of(folder);
    const json_t *ends = json_object_get(description, "ends");
    uint64_t vocabulary, context, tokenizer_bytes;

    vocabulary = (uint64_t)json_integer_value(json_object_get(description, "vocabulary"));
    context = (uint64_t)json_integer_value(json_object_get(description, "context"));
    tokenizer_bytes = (uint64_t)json_integer_value(json_object_get(description, "tokenizer_bytes"));
    code->arena_bytes = (uint64_t)json_integer_value(json_object_get(folder->json, "arena_bytes"));
    if (vocabulary < 1 || vocabulary > UINT32_MAX || context < 1 || context > UINT32_MAX ||
        tokenizer_bytes < sizeof(mur_tokenizer_header) || tokenizer_bytes > UINT32_MAX ||
        code->arena_bytes < 1 || code->arena_bytes > UINT32_MAX ||
        json_array_size(ends) > MUC_MODEL_MAX_ENDS)
        return muc_fail(ctx, MUC_MALFORMED, folder->path, MUC_NO_OFFSET,
                        "what its description says of the language model is damaged");
    code->vocabulary = (uint32_t)vocabulary;
    code->levels =
        json_is_true(json_object_get(description, "blocks")) ? MUC_HYBRID_BLOCKS : MUC_HYBRID_INT8;
    model->context = (uint32_t)context;
    model->tokenizer_bytes = (size_t)tokenizer_bytes;
    memset(&model->tokens, 0xff, sizeof(model->tokens));
    for (size_t i = 0; i < json_array_size(ends); i++)
        model->tokens.ends[i] = (uint32_t)json_integer_value(json_array_get(ends, i));
    return MUC_OK;
}

static muc_status load(muc_context *ctx, const muc_code_folder *folder, muc_model *model)
{
    void *feed, *tokenizer, *prompt;
    muc_model_code *code;

    MUC_TRY(MUC_ARENA_NEW(ctx, &model->arena, 1, &code));
    model->compiled = code;
    MUC_TRY(read_numbers(ctx, folder, model));
    MUC_TRY(muc_code_load(ctx, folder, &code->library));
    MUC_TRY(find_symbol(ctx, folder, code->library, "feed", &feed));
    MUC_TRY(find_symbol(ctx, folder, code->library, "tokenizer", &tokenizer));
    MUC_TRY(find_symbol(ctx, folder, code->library, "prompt", &prompt));
    memcpy(&code->feed, &feed, sizeof(feed));
    model->tokenizer_form = tokenizer;
    if (*(const char *)prompt)
        return muc_model_set_template(ctx, model, folder->path, prompt, strlen(prompt));
    return MUC_OK;
}

/* ---- the engine ---- */

typedef struct code_state {
    void *arena;
    float *rows; /* logits after each token of a feed */
} code_state;

static void facts(const muc_model *model, muc_engine_facts *out)
{
    *out = (muc_engine_facts){
        .arithmetic = "mcu int8",
        .vocabulary = muc_model_code_of(model)->vocabulary,
        .context = model->context,
    };
}

static muc_status open_code(muc_engine *engine)
{
    size_t bytes = (size_t)muc_model_code_of(engine->model)->arena_bytes;
    code_state *state;

    MUC_TRY(MUC_NEW_ARRAY(engine->ctx, "engine", 1, &state));
    engine->state = state;
    bytes = (bytes + MUC_MCU_ALIGNMENT - 1) / MUC_MCU_ALIGNMENT * MUC_MCU_ALIGNMENT;
    state->arena = muc_aligned_alloc(MUC_MCU_ALIGNMENT, bytes);
    if (!state->arena)
        return muc_fail_nomem(engine->ctx, engine->model->path, bytes);
    return MUC_NEW_ARRAY(engine->ctx, "engine",
                         (size_t)MUC_ENGINE_MOST_TOKENS * engine->facts.vocabulary, &state->rows);
}

static muc_status feed_code(muc_engine *engine, uint32_t pos, const uint32_t *tokens,
                            uint32_t count, const float **logits)
{
    const code_state *state = engine->state;

    *logits = muc_model_code_of(engine->model)->feed(state->arena, pos, tokens, count);
    return *logits ? MUC_OK
                   : muc_fail(engine->ctx, MUC_BUG, engine->model->path, MUC_NO_OFFSET,
                              "the code refuses %u tokens at position %u", count, pos);
}

static muc_status feed(muc_engine *engine, const uint32_t *tokens, uint32_t count, bool all,
                       const float **logits)
{
    code_state *state = engine->state;
    size_t row = engine->facts.vocabulary;

    if (!all)
        return feed_code(engine, engine->position, tokens, count, logits);
    /* token by token gives the same bits, and the logits after each */
    for (uint32_t i = 0; i < count; i++) {
        MUC_TRY(feed_code(engine, engine->position + i, tokens + i, 1, logits));
        memcpy(state->rows + i * row, *logits, row * sizeof(float));
    }
    *logits = state->rows;
    return MUC_OK;
}

/* a text that begins at position 0 finds nothing of the last */
static void reset(muc_engine *engine)
{
    (void)engine;
}

static void close_code(muc_engine *engine)
{
    code_state *state = engine->state;

    if (!state)
        return;
    muc_aligned_free(state->arena);
    free(state->rows);
    free(state);
}

static bool memory(muc_engine *engine, size_t i, void **data, size_t *bytes)
{
    const code_state *state = engine->state;

    *data = state->arena;
    *bytes = (size_t)muc_model_code_of(engine->model)->arena_bytes;
    return i == 0;
}

static const muc_engine_kind engine_code = {
    .facts = facts,
    .open = open_code,
    .feed = feed,
    .reset = reset,
    .close = close_code,
    .memory = memory,
};

/* ---- the model ---- */

static void release(muc_model *model)
{
    const muc_model_code *code = muc_model_code_of(model);

    if (code && code->library)
        muc_library_close(code->library);
}

static muc_status open_folder(muc_context *ctx, muc_model *model)
{
    muc_code_folder folder;
    muc_status status;

    MUC_TRY(muc_code_open(ctx, model->path, &folder));
    status = load(ctx, &folder, model);
    muc_code_close(&folder);
    return status;
}

muc_status muc_open_mcu(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    if (options->tokenizer)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "the folder carries its tokenizer; --tokenizer is for models without one");
    model->kind = MUC_MODEL_COMPILED;
    model->engine = &engine_code;
    model->release = release;
    MUC_TRY(open_folder(ctx, model));
    MUC_TRY(muc_model_set_context(ctx, model, options->context, model->context));
    MUC_TRY(muc_model_open_tokenizer(ctx, model));
    model->tokens.begin = model->tokenizer.header->bos;
    return MUC_OK;
}

void muc_inspect_mcu(const muc_model *model, muc_report *report)
{
    muc_report_add_count(report, "context", model->context);
    muc_model_add_tokenizer(report, model);
}
