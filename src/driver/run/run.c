/* run.c - runs a prompt, or one message after the other, and gives the text token by token. */
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "base/text.h"
#include "run/chat.h"
#include "run/generate.h"
#include "run/stop_texts.h"
#include "muc/run.h"
#include "report/report_builder.h"
#include "targets/target.h"
#include "text/tokenizer.h"

/* what a run leaves to be told */
typedef struct run_result {
    muc_generation generation;
    muc_speech speech; /* on a board */
} run_result;

/* what was generated, and where it goes */
typedef struct run_sink {
    const muc_run_options *options;
    muc_text text;
    bool answers; /* a template was filled: the text is an answer, and begins with a letter */
} run_sink;

enum { MOST_STOPS = 64 };

struct muc_session {
    muc_context *ctx;
    const muc_model *model;
    muc_run_options options;
    const muc_chat *chat; /* or NULL */
    uint32_t turn_end;    /* the token of its end of an answer, or MUR_NO_TOKEN */
    const char *stop_list[MOST_STOPS + 1];
    muc_stop_texts stops;
    run_sink sink;
    muc_generate_options how;
    muc_engine *engine;
    muc_generator *generator;
    muc_generation last;
    bool began, ended; /* something was said; the model ended its last answer itself */
};

static bool take_text(void *arg, const char *text, size_t size)
{
    run_sink *sink = arg;

    while (sink->answers && sink->text.size == 0 && size && (*text == ' ' || *text == '\n'))
        text++, size--;
    if (size == 0)
        return true;
    muc_text_add_bytes(&sink->text, text, size);
    return sink->options->text ? sink->options->text(sink->options->arg, text, size) : true;
}

static void add_results(muc_report *report, const muc_run_options *options, const char *chat,
                        const char *prompt, const run_result *result, const char *text)
{
    const muc_generation *generation = &result->generation;

    muc_report_add_text(report, "prompt", "%s", prompt);
    muc_report_add_text(report, "text", "%s", text ? text : "");
    muc_report_add_count(report, "prompt_tokens", generation->prompt_tokens);
    muc_report_add_count(report, "tokens", generation->tokens);
    if (options->board) {
        muc_report_add_text(report, "board", "%s", options->board);
        muc_report_add_count(report, "prompt_instructions", result->speech.prompt_instructions);
        muc_report_add_count(report, "instructions", result->speech.instructions);
    } else {
        muc_report_add_real(report, "prompt_seconds", generation->prompt_seconds);
        muc_report_add_real(report, "seconds", generation->seconds);
    }
    muc_report_add_text(report, "end", "%s", generation->end);
    if (options->prompt_cache)
        muc_report_add_count(report, "cached_tokens", generation->cached_tokens);
    if (chat)
        muc_report_add_text(report, "chat", "%s", chat);
    muc_report_begin_group(report, "sampling");
    muc_report_add_real(report, "temperature", options->sampling.temperature);
    muc_report_add_count(report, "top_k", options->sampling.top_k);
    muc_report_add_real(report, "top_p", options->sampling.top_p);
    muc_report_add_real(report, "min_p", options->sampling.min_p);
    muc_report_add_real(report, "repeat_penalty", options->sampling.repeat_penalty);
    muc_report_add_count(report, "seed", options->sampling.seed);
    muc_report_end(report);
}

static muc_status check_range(muc_context *ctx, const char *name, double value, double most)
{
    if (value >= 0 && value <= most)
        return MUC_OK;
    return muc_fail(ctx, MUC_USAGE, "run", MUC_NO_OFFSET, "%s %g is outside 0 to %g", name, value,
                    most);
}

static muc_status check_sampling(muc_context *ctx, const muc_sampling *sampling)
{
    MUC_TRY(check_range(ctx, "repeat penalty", sampling->repeat_penalty, 100));
    MUC_TRY(check_range(ctx, "top-p", sampling->top_p, 1));
    MUC_TRY(check_range(ctx, "min-p", sampling->min_p, 1));
    return check_range(ctx, "temperature", sampling->temperature, 100);
}

static muc_status check_board(muc_context *ctx, const muc_model *model,
                              const muc_run_options *options)
{
    const muc_sampling *sampling = &options->sampling;

    if (model->kind != MUC_MODEL_COMPILED || !model->target->speak)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "is not a folder of C code: boards run nothing else");
    if (sampling->temperature > 0 ||
        (sampling->repeat_penalty != 0 && sampling->repeat_penalty != 1))
        return muc_fail(ctx, MUC_USAGE, options->board, MUC_NO_OFFSET,
                        "boards take the likeliest token: no temperature, no repeat penalty");
    if (options->chat || options->stop_count || options->prompt_cache)
        return muc_fail(ctx, MUC_USAGE, options->board, MUC_NO_OFFSET,
                        "boards continue a prompt: no chat, no stop texts, no prompt cache");
    if (options->no_special)
        return muc_fail(ctx, MUC_USAGE, options->board, MUC_NO_OFFSET,
                        "boards take special tokens in a prompt: run without --no-special");
    return MUC_OK;
}

static bool has_clock(const muc_model *model, const muc_run_options *options)
{
    return !options->board && model->engine && model->engine->clock;
}

static muc_status check_machine(muc_context *ctx, const muc_model *model,
                                const muc_run_options *options)
{
    if (!options->machine || has_clock(model, options))
        return MUC_OK;
    return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                    "is not a program for a machine that has a clock");
}

static muc_status speak(muc_context *ctx, const muc_model *model, muc_arena *arena,
                        const char *prompt, run_sink *sink, run_result *out)
{
    MUC_TRY(model->target->speak(ctx, model, sink->options->board, prompt,
                                 sink->options->most_tokens, arena, &out->speech));
    take_text(sink, (const char *)out->speech.text.data, out->speech.text.size);
    out->generation = (muc_generation){
        .prompt_tokens = out->speech.prompt_tokens,
        .tokens = out->speech.tokens,
        .end = out->speech.end,
    };
    return MUC_OK;
}

/* on a board, which has its own generator */
static muc_status run_on_board(muc_context *ctx, const muc_model *model,
                               const muc_run_options *options, run_result *result, run_sink *sink)
{
    const char *prompt = options->prompt;
    muc_arena arena = { 0 };
    muc_status status;

    if (!sink->answers)
        take_text(sink, prompt, strlen(prompt));
    status = muc_model_dress_prompt(ctx, model, &arena, prompt, options->raw, &prompt);
    if (status == MUC_OK)
        status = speak(ctx, model, &arena, prompt, sink, result);
    muc_arena_free(&arena);
    return status;
}

/* ---- sessions ---- */

/* The token that is this text and no other, or MUR_NO_TOKEN. */
static muc_status token_of(muc_context *ctx, const mur_tokenizer *tokenizer, const char *text,
                           uint32_t *out)
{
    const uint8_t *piece;
    uint32_t *ids;
    size_t count, size;

    *out = MUR_NO_TOKEN;
    MUC_TRY(
        muc_tokenizer_encode(ctx, tokenizer, text, strlen(text), MUR_ENCODE_SPECIAL, &ids, &count));
    size = count ? mur_tokenizer_piece(tokenizer, ids[count - 1], &piece) : 0;
    if (size && size == strlen(text) && memcmp(piece, text, size) == 0)
        *out = ids[count - 1];
    free(ids);
    return MUC_OK;
}

static muc_status set_stops(muc_session *s)
{
    const muc_run_options *options = &s->options;

    if (options->stop_count > MOST_STOPS)
        return muc_fail(s->ctx, MUC_USAGE, "run", MUC_NO_OFFSET, "%zu stop texts, at most %d",
                        options->stop_count, MOST_STOPS);
    for (size_t i = 0; i < options->stop_count; i++) {
        if (options->stops[i][0] == '\0')
            return muc_fail(s->ctx, MUC_USAGE, "run", MUC_NO_OFFSET, "a stop text is empty");
        s->stop_list[s->stops.count++] = options->stops[i];
    }
    s->stops.texts = s->stop_list;
    s->stops.next = take_text;
    s->stops.arg = &s->sink;
    return MUC_OK;
}

/* The template, and what ends an answer: a token, or where the model has none the text of it. */
static muc_status set_chat(muc_session *s)
{
    const muc_run_options *options = &s->options;

    s->turn_end = MUR_NO_TOKEN;
    if (!options->chat && options->system)
        return muc_fail(s->ctx, MUC_USAGE, "run", MUC_NO_OFFSET,
                        "a system message is for a conversation: give --chat too");
    if (!options->chat)
        return MUC_OK;
    if (options->no_special)
        return muc_fail(s->ctx, MUC_USAGE, "run", MUC_NO_OFFSET,
                        "chat templates are made of special tokens: run without --no-special");
    MUC_TRY(muc_chat_find(s->ctx, s->model, options->chat, &s->chat));
    if (s->chat->answer_end[0] == '\0')
        return MUC_OK;
    MUC_TRY(token_of(s->ctx, &s->model->tokenizer, s->chat->answer_end, &s->turn_end));
    if (s->turn_end == MUR_NO_TOKEN)
        s->stop_list[s->stops.count++] = s->chat->answer_end;
    return MUC_OK;
}

static muc_status start(muc_session *s)
{
    MUC_TRY(check_sampling(s->ctx, &s->options.sampling));
    MUC_TRY(muc_model_need_tokenizer(s->ctx, s->model));
    MUC_TRY(set_stops(s));
    MUC_TRY(set_chat(s));
    s->sink.options = &s->options;
    s->sink.answers = s->chat || (s->model->prompt_template && !s->options.raw);
    s->how = (muc_generate_options){
        .sampling = s->options.sampling,
        .most_tokens = s->options.most_tokens,
        .text = muc_stop_texts_take,
        .arg = &s->stops,
        .special = !s->options.no_special,
        .cache = s->options.prompt_cache,
        .turn_end = &s->turn_end,
    };
    MUC_TRY(muc_engine_new(s->ctx, s->model, &s->engine));
    return muc_generator_new(s->engine, &s->how, &s->generator);
}

muc_status muc_session_new(muc_context *ctx, const muc_model *model, const muc_run_options *options,
                           muc_session **out)
{
    MUC_IN_C_LOCALE;

    muc_engine_facts facts;
    muc_status status;
    muc_session *s;

    MUC_TRY(muc_engine_facts_of(ctx, model, &facts)); /* some do not run, with a tokenizer or not */
    MUC_TRY(MUC_NEW_ARRAY(ctx, "session", 1, &s));
    s->ctx = ctx;
    s->model = model;
    s->options = *options;
    status = start(s);
    if (status != MUC_OK) {
        muc_session_free(s);
        return status;
    }
    *out = s;
    return MUC_OK;
}

void muc_session_free(muc_session *session)
{
    if (!session)
        return;
    muc_generator_free(session->generator);
    muc_engine_free(session->engine);
    muc_stop_texts_free(&session->stops);
    muc_text_free(&session->sink.text);
    free(session);
}

/* What the model is given of a prompt. */
static muc_status dress(muc_session *s, const char *prompt, muc_arena *arena, const char **out)
{
    muc_text text = { 0 };
    muc_status status;

    if (!s->chat)
        return muc_model_dress_prompt(s->ctx, s->model, arena, prompt, s->options.raw, out);
    if (s->began)
        muc_chat_again(s->chat, s->ended, prompt, &text);
    else
        muc_chat_begin(s->chat, s->options.system, prompt, &text);
    status = muc_text_status(s->ctx, &text);
    if (status == MUC_OK)
        status = muc_arena_string(s->ctx, arena, text.data, text.size, out);
    muc_text_free(&text);
    return status;
}

static muc_status say(muc_session *s, const char *prompt, muc_generation *out)
{
    muc_arena arena = { 0 };
    const char *dressed;
    muc_status status;

    s->sink.text.size = 0;
    if (!s->sink.answers)
        take_text(&s->sink, prompt, strlen(prompt));
    status = dress(s, prompt, &arena, &dressed);
    if (status == MUC_OK)
        status = muc_generator_continue(s->generator, dressed, out);
    if (status == MUC_OK && s->stops.found)
        out->end = "stop";
    if (status == MUC_OK)
        s->ended = strcmp(out->end, "end of text") == 0;
    s->began = true;
    muc_stop_texts_end(&s->stops);
    muc_arena_free(&arena);
    if (status == MUC_OK)
        status = muc_text_status(s->ctx, &s->stops.held);
    return status == MUC_OK ? muc_text_status(s->ctx, &s->sink.text) : status;
}

muc_status muc_session_say(muc_session *session, const char *prompt, muc_report **out)
{
    MUC_IN_C_LOCALE;

    run_result result = { 0 };

    *out = NULL;
    MUC_TRY(say(session, prompt, &result.generation));
    session->last = result.generation;
    MUC_TRY(muc_report_new(session->ctx, out));
    add_results(*out, &session->options, session->chat ? session->chat->name : NULL, prompt,
                &result, session->sink.text.size ? session->sink.text.data : NULL);
    return muc_report_status(session->ctx, *out);
}

/* ---- one run ---- */

/* How long the machine takes for what the simulator did. */
static muc_status add_clock(muc_context *ctx, const muc_model *model,
                            const muc_run_options *options, const muc_generation *generation,
                            muc_report *report)
{
    uint32_t steps = generation->tokens;

    if (!has_clock(model, options))
        return MUC_OK;
    if (steps != 0 && strcmp(generation->end, "end of text") != 0)
        steps--; /* the last token is not fed again */
    return model->engine->clock(ctx, model, options->machine, generation->prompt_tokens, steps,
                                options->sampling.temperature > 0, report);
}

static muc_status run_board(muc_context *ctx, const muc_model *model,
                            const muc_run_options *options, muc_report **out)
{
    run_sink sink = {
        .options = options,
        .answers = model->prompt_template && !options->raw,
    };
    run_result result = { 0 };
    muc_status status;

    MUC_TRY(muc_model_need_tokenizer(ctx, model));
    MUC_TRY(check_sampling(ctx, &options->sampling));
    MUC_TRY(check_board(ctx, model, options));
    status = run_on_board(ctx, model, options, &result, &sink);
    if (status == MUC_OK)
        status = muc_text_status(ctx, &sink.text);
    if (status == MUC_OK)
        status = muc_report_new(ctx, out);
    if (status == MUC_OK) {
        add_results(*out, options, NULL, options->prompt, &result, sink.text.data);
        status = muc_report_status(ctx, *out);
    }
    muc_text_free(&sink.text);
    return status;
}

muc_status muc_run(muc_context *ctx, const muc_model *model, const muc_run_options *options,
                   muc_report **out)
{
    MUC_IN_C_LOCALE;

    muc_session *session;
    muc_status status;

    MUC_TRY(check_machine(ctx, model, options));
    if (options->board)
        return run_board(ctx, model, options, out);
    MUC_TRY(muc_session_new(ctx, model, options, &session));
    status = muc_session_say(session, options->prompt, out);
    if (status == MUC_OK)
        status = add_clock(ctx, model, options, &session->last, *out);
    if (status == MUC_OK)
        status = muc_report_status(ctx, *out);
    if (status != MUC_OK) {
        muc_report_free(*out);
        *out = NULL;
    }
    muc_session_free(session);
    return status;
}
