/* generate.c - continues a prompt: prefill, then one token after the other. */
#include "run/generate.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/system.h"
#include "mur_sampler.h"
#include "run/prompt_cache.h"
#include "text/tokenizer.h"

enum { RECENT = 64 }; /* tokens that the repeat penalty looks back on */

/* The logits after the last of the tokens. */
static muc_status prefill(muc_engine *engine, const uint32_t *tokens, size_t count,
                          const float **logits)
{
    if (count == 0)
        return muc_fail(engine->ctx, MUC_USAGE, engine->model->path, MUC_NO_OFFSET,
                        "an empty prompt, and the tokenizer has no token to begin a text");
    if (count + engine->position >= engine->facts.context)
        return muc_fail(engine->ctx, MUC_USAGE, engine->model->path, MUC_NO_OFFSET,
                        engine->position ? "the conversation has %zu tokens, the model's context %u"
                                         : "the prompt has %zu tokens, the model's context %u",
                        count + engine->position, engine->facts.context);
    for (size_t at = 0; at < count; at += MUC_ENGINE_MOST_TOKENS) {
        size_t n = count - at < MUC_ENGINE_MOST_TOKENS ? count - at : MUC_ENGINE_MOST_TOKENS;

        muc_progress(engine->ctx, "prompt", at, count);
        MUC_TRY(muc_engine_feed(engine, tokens + at, (uint32_t)n, false, logits));
    }
    muc_progress(engine->ctx, "prompt", count, count);
    return MUC_OK;
}

/* Draws from logits; remembers what was drawn. */
typedef struct chooser {
    mur_sampler sampler;
    float penalty, *row; /* a copy of the logits, to be penalized */
    void *scratch;
    uint32_t n, recent[RECENT];
    size_t seen; /* tokens, of the prompt too; the latest lie in recent */
} chooser;

static muc_status chooser_open(muc_context *ctx, const muc_sampling *sampling, uint32_t n,
                               chooser *out)
{
    *out = (chooser){
        .sampler = {
            .top_k = sampling->top_k,
            .top_p = sampling->top_p == 0 ? 1 : (float)sampling->top_p,
            .min_p = (float)sampling->min_p,
            .temperature = (float)sampling->temperature,
        },
        .penalty = sampling->repeat_penalty == 0 ? 1 : (float)sampling->repeat_penalty,
        .n = n,
    };
    mur_sampler_seed(&out->sampler, sampling->seed);
    MUC_TRY(muc_new_array(ctx, "sampler", 1, mur_sampler_scratch_bytes(n), &out->scratch));
    return MUC_NEW_ARRAY(ctx, "sampler", n, &out->row);
}

static void chooser_close(chooser *c)
{
    free(c->row);
    free(c->scratch);
}

static void remember(chooser *c, uint32_t token)
{
    c->recent[c->seen++ % RECENT] = token;
}

static uint32_t choose(chooser *c, const float *logits)
{
    uint32_t token;

    memcpy(c->row, logits, c->n * sizeof(*logits));
    mur_sampler_penalize(c->row, c->n, c->recent, c->seen < RECENT ? c->seen : RECENT, c->penalty);
    token = mur_sampler_next(&c->sampler, c->row, c->n, c->scratch);
    remember(c, token);
    return token;
}

struct muc_generator {
    muc_engine *engine;
    const muc_generate_options *options;
    chooser chooser;
    uint32_t previous; /* the last token; drawn but not fed yet if pending */
    bool pending;
};

static bool ends_text(const muc_generator *g, uint32_t token)
{
    return muc_model_is_end(g->engine->model, token) ||
           (g->options->turn_end && token == *g->options->turn_end);
}

/* Why generation ends with this token, or NULL: it goes on. */
static const char *take_token(muc_generator *g, uint32_t token, muc_generation *out)
{
    const muc_generate_options *options = g->options;
    const uint8_t *text;
    size_t size;

    if (ends_text(g, token))
        return "end of text";
    size = mur_tokenizer_decode(&g->engine->model->tokenizer, token, g->previous, &text);
    out->tokens++;
    if (options->text && !options->text(options->arg, (const char *)text, size))
        return "caller";
    if (out->tokens == options->most_tokens)
        return "length";
    return g->engine->position == g->engine->facts.context ? "context" : NULL;
}

static muc_status generate(muc_generator *g, const float *logits, muc_generation *out)
{
    for (;;) {
        uint32_t token = choose(&g->chooser, logits);

        out->end = take_token(g, token, out);
        g->previous = token;
        g->pending = out->end != NULL;
        if (out->end)
            return MUC_OK;
        MUC_TRY(muc_engine_feed(g->engine, &token, 1, false, &logits));
    }
}

muc_status muc_generator_new(muc_engine *engine, const muc_generate_options *options,
                             muc_generator **out)
{
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(engine->ctx, "sampler", 1, out));
    (*out)->engine = engine;
    (*out)->options = options;
    status =
        chooser_open(engine->ctx, &options->sampling, engine->facts.vocabulary, &(*out)->chooser);
    if (status != MUC_OK) {
        muc_generator_free(*out);
        *out = NULL;
    }
    return status;
}

void muc_generator_free(muc_generator *g)
{
    if (!g)
        return;
    chooser_close(&g->chooser);
    free(g);
}

/* what was drawn last goes before the prompt */
static muc_status feed_pending(muc_generator *g)
{
    const float *unused;

    if (!g->pending)
        return MUC_OK;
    g->pending = false;
    return muc_engine_feed(g->engine, &g->previous, 1, false, &unused);
}

/* The first prompt, with what a file has of it, which then has all of it. */
static muc_status prefill_cached(muc_engine *engine, const char *path, const uint32_t *tokens,
                                 size_t count, const float **logits, uint32_t *cached)
{
    MUC_TRY(muc_output_precheck(engine->ctx, path));
    MUC_TRY(muc_prompt_cache_load(engine, path, tokens, count, cached));
    MUC_TRY(prefill(engine, tokens + *cached, count - *cached, logits));
    return *cached + 1 < count ? muc_prompt_cache_save(engine, path, tokens, count) : MUC_OK;
}

static muc_status continue_tokens(muc_generator *g, const uint32_t *tokens, size_t count,
                                  muc_generation *out)
{
    double start = muc_seconds(), middle;
    const float *logits = NULL;
    muc_status status;

    MUC_TRY(feed_pending(g));
    if (g->options->cache && g->engine->position == 0)
        MUC_TRY(prefill_cached(g->engine, g->options->cache, tokens, count, &logits,
                               &out->cached_tokens));
    else
        MUC_TRY(prefill(g->engine, tokens, count, &logits));
    middle = muc_seconds();
    for (size_t i = 0; i < count; i++)
        remember(&g->chooser, tokens[i]);
    g->previous = tokens[count - 1];
    status = generate(g, logits, out);
    out->prompt_tokens = (uint32_t)count;
    out->prompt_seconds = middle - start;
    out->seconds = muc_seconds() - middle;
    return status;
}

muc_status muc_generator_continue(muc_generator *g, const char *prompt, muc_generation *out)
{
    uint32_t *tokens, flags = g->options->special ? MUR_ENCODE_SPECIAL : 0;
    size_t count;
    muc_status status;

    *out = (muc_generation){ 0 };
    flags |= g->engine->position == 0 ? MUR_ENCODE_BOS : 0;
    MUC_TRY(muc_tokenizer_encode(g->engine->ctx, &g->engine->model->tokenizer, prompt,
                                 strlen(prompt), flags, &tokens, &count));
    status = continue_tokens(g, tokens, count, out);
    free(tokens);
    return status;
}

muc_status muc_generate(muc_engine *engine, const char *prompt, const muc_generate_options *options,
                        muc_generation *out)
{
    muc_generator *generator;
    muc_status status;

    MUC_TRY(muc_generator_new(engine, options, &generator));
    status = muc_generator_continue(generator, prompt, out);
    muc_generator_free(generator);
    return status;
}
