/* generate.c - prefill, then one token after the other. */
#include "run/generate.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mur_sampler.h"
#include "text/tokenizer.h"

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

enum { RECENT = 64 }; /* tokens that the repeat penalty looks back on */

/* The logits after the last of the tokens. */
static muc_status prefill(muc_engine *engine, const uint32_t *tokens, size_t count,
                          const float **logits)
{
    if (count == 0)
        return muc_fail(engine->ctx, MUC_USAGE, engine->model->path, MUC_NO_OFFSET,
                        "an empty prompt, and the tokenizer has no token to begin a text");
    if (count >= engine->facts.context)
        return muc_fail(engine->ctx, MUC_USAGE, engine->model->path, MUC_NO_OFFSET,
                        "the prompt has %zu tokens, the model's context %u", count,
                        engine->facts.context);
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

static muc_status continue_text(muc_engine *engine, const muc_generate_options *options,
                                uint32_t previous, const float *logits, chooser *c,
                                muc_generation *out)
{
    for (;;) {
        uint32_t token = choose(c, logits);
        const uint8_t *text;
        size_t size;

        if (muc_model_is_end(engine->model, token)) {
            out->end = "end of text";
            return MUC_OK;
        }
        size = mur_tokenizer_decode(&engine->model->tokenizer, token, previous, &text);
        out->tokens++;
        if (options->text && !options->text(options->arg, (const char *)text, size)) {
            out->end = "caller";
            return MUC_OK;
        }
        if (out->tokens == options->most_tokens) {
            out->end = "length";
            return MUC_OK;
        }
        if (engine->position == engine->facts.context) {
            out->end = "context";
            return MUC_OK;
        }
        MUC_TRY(muc_engine_feed(engine, &token, 1, false, &logits));
        previous = token;
    }
}

static muc_status feed_and_continue(muc_engine *engine, const uint32_t *tokens, size_t count,
                                    const muc_generate_options *options, muc_generation *out)
{
    const float *logits = NULL;
    double start = seconds_now(), middle;
    muc_status status;
    chooser c;

    MUC_TRY(prefill(engine, tokens, count, &logits));
    middle = seconds_now();
    status = chooser_open(engine->ctx, &options->sampling, engine->facts.vocabulary, &c);
    for (size_t i = 0; i < count; i++)
        remember(&c, tokens[i]);
    if (status == MUC_OK)
        status = continue_text(engine, options, tokens[count - 1], logits, &c, out);
    chooser_close(&c);
    out->prompt_tokens = (uint32_t)count;
    out->prompt_seconds = middle - start;
    out->seconds = seconds_now() - middle;
    return status;
}

muc_status muc_generate(muc_engine *engine, const char *prompt, const muc_generate_options *options,
                        muc_generation *out)
{
    uint32_t *tokens;
    size_t count;
    muc_status status;

    *out = (muc_generation){ 0 };
    MUC_TRY(muc_tokenizer_encode(engine->ctx, &engine->model->tokenizer, prompt, strlen(prompt),
                                 MUR_ENCODE_BOS | (options->special ? MUR_ENCODE_SPECIAL : 0),
                                 &tokens, &count));
    status = feed_and_continue(engine, tokens, count, options, out);
    free(tokens);
    return status;
}
