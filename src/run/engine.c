/* engine.c - what every engine has in common, and engines side by side. */
#include "run/engine.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"

muc_status muc_engine_facts_of(muc_context *ctx, const muc_model *model, muc_engine_facts *out)
{
    if (model->kind == MUC_MODEL_BLOCKS)
        return muc_fail(ctx, MUC_UNSUPPORTED, model->path, MUC_NO_OFFSET,
                        "a .bdt file is compiled before it runs: muc compile FILE -o PROGRAM");
    if (model->kind == MUC_MODEL_NETWORK)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "the file is a network, which runs on arrays, not on text");
    model->engine->facts(model, out);
    return MUC_OK;
}

muc_status muc_engine_new(muc_context *ctx, const muc_model *model, muc_engine **out)
{
    muc_engine_facts facts;
    muc_engine *engine;
    muc_status status;

    MUC_TRY(muc_engine_facts_of(ctx, model, &facts));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "engine", 1, &engine));
    engine->kind = model->engine;
    engine->ctx = ctx;
    engine->model = model;
    engine->facts = facts;
    status = engine->kind->open(engine);
    if (status != MUC_OK) {
        muc_engine_free(engine);
        return status;
    }
    *out = engine;
    return MUC_OK;
}

void muc_engine_reset(muc_engine *engine)
{
    engine->kind->reset(engine);
    engine->position = 0;
}

void muc_engine_seek(muc_engine *engine, uint32_t position)
{
    if (engine->kind->seek)
        engine->kind->seek(engine, position);
    engine->position = position;
}

void muc_engine_free(muc_engine *engine)
{
    if (!engine)
        return;
    engine->kind->close(engine);
    free(engine);
}

muc_status muc_engine_feed(muc_engine *engine, const uint32_t *tokens, uint32_t count, bool all,
                           const float **logits)
{
    if (count > engine->facts.context - engine->position)
        return muc_fail(engine->ctx, MUC_USAGE, engine->model->path, MUC_NO_OFFSET,
                        "%u tokens after %u: the context has %u", count, engine->position,
                        engine->facts.context);
    MUC_TRY(engine->kind->feed(engine, tokens, count, all, logits));
    engine->position += count;
    return MUC_OK;
}

/* ---- side by side ---- */

typedef struct crew {
    muc_context *ctx;
    const muc_model *model, *reference;
    size_t count;
    const char *step;
    muc_engine_body *body;
    void *arg;
    atomic_size_t next, done;
} crew;

static muc_status run_jobs(crew *c, muc_engine *engine, muc_engine *reference)
{
    for (;;) {
        size_t i = atomic_fetch_add(&c->next, 1);

        if (i >= c->count)
            return MUC_OK;
        muc_engine_reset(engine);
        if (reference)
            muc_engine_reset(reference);
        MUC_TRY(c->body(c->arg, engine, reference, i));
        muc_progress(c->ctx, c->step, atomic_fetch_add(&c->done, 1) + 1, c->count);
    }
}

static muc_status run_member(void *arg, size_t i)
{
    crew *c = arg;
    muc_engine *engine = NULL, *reference = NULL;
    muc_status status = muc_engine_new(c->ctx, c->model, &engine);

    (void)i;
    if (status == MUC_OK && c->reference)
        status = muc_engine_new(c->ctx, c->reference, &reference);
    if (status == MUC_OK)
        status = run_jobs(c, engine, reference);
    muc_engine_free(reference);
    muc_engine_free(engine);
    return status;
}

muc_status muc_engines_for(muc_context *ctx, const muc_model *model, const muc_model *reference,
                           size_t count, const char *step, muc_engine_body *body, void *arg)
{
    crew c = { ctx, model, reference, count, step, body, arg, 0, 0 };
    size_t threads = muc_context_threads(ctx);
    muc_engine_facts facts, other;

    MUC_TRY(muc_engine_facts_of(ctx, model, &facts));
    if (reference) {
        MUC_TRY(muc_engine_facts_of(ctx, reference, &other));
        if (other.vocabulary != facts.vocabulary)
            return muc_fail(ctx, MUC_USAGE, reference->path, MUC_NO_OFFSET,
                            "the reference has %u tokens, %s has %u", other.vocabulary, model->path,
                            facts.vocabulary);
    }
    return muc_parallel_for(ctx, threads < count ? threads : count, run_member, &c);
}
