/* run.c - a prompt goes in, text comes out token by token. */
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "base/text.h"
#include "run/generate.h"
#include "muc/run.h"
#include "report/report_builder.h"
#include "targets/target.h"
#include "text/tokenizer.h"

/* what a run leaves to be told */
typedef struct run_result {
    muc_generation generation;
    muc_speech speech; /* on a board */
} run_result;

typedef struct run_sink {
    const muc_run_options *options;
    muc_text text;
    bool answers; /* a template was filled: the text is an answer, and begins with a letter */
} run_sink;

static bool take_text(void *arg, const char *text, size_t size)
{
    run_sink *sink = arg;

    while (sink->answers && sink->text.size == 0 && size && (*text == ' ' || *text == '\n'))
        text++, size--;
    muc_text_add_bytes(&sink->text, text, size);
    return sink->options->text ? sink->options->text(sink->options->arg, text, size) : true;
}

static void add_results(muc_report *report, const muc_run_options *options,
                        const run_result *result, const char *text)
{
    const muc_generation *generation = &result->generation;

    muc_report_add_text(report, "prompt", "%s", options->prompt);
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
                        "is no folder of C code: boards run nothing else");
    if (sampling->temperature > 0 ||
        (sampling->repeat_penalty != 0 && sampling->repeat_penalty != 1))
        return muc_fail(ctx, MUC_USAGE, options->board, MUC_NO_OFFSET,
                        "boards take the likeliest token: no temperature, no repeat penalty");
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
                    "is no program for a machine that has a clock");
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

static muc_status generate_here(muc_context *ctx, const muc_model *model, const char *prompt,
                                run_sink *sink, muc_generation *out)
{
    const muc_generate_options options = {
        .sampling = sink->options->sampling,
        .most_tokens = sink->options->most_tokens,
        .text = take_text,
        .arg = sink,
        .special = !sink->options->no_special,
    };
    muc_engine *engine;
    muc_status status;

    MUC_TRY(muc_engine_new(ctx, model, &engine));
    status = muc_generate(engine, prompt, &options, out);
    muc_engine_free(engine);
    return status;
}

static muc_status generate(muc_context *ctx, const muc_model *model, run_sink *sink,
                           run_result *out)
{
    const char *prompt = sink->options->prompt;
    muc_arena arena = { 0 };
    muc_status status;

    if (!sink->answers)
        take_text(sink, prompt, strlen(prompt));
    status = muc_model_dress_prompt(ctx, model, &arena, prompt, sink->options->raw, &prompt);
    if (status == MUC_OK && sink->options->board)
        status = speak(ctx, model, &arena, prompt, sink, out);
    else if (status == MUC_OK)
        status = generate_here(ctx, model, prompt, sink, &out->generation);
    muc_arena_free(&arena);
    return status;
}

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

muc_status muc_run(muc_context *ctx, const muc_model *model, const muc_run_options *options,
                   muc_report **out)
{
    MUC_IN_C_LOCALE;

    run_sink sink = {
        .options = options,
        .answers = model->prompt_template && !options->raw,
    };
    run_result result;
    muc_status status;

    if (model->kind != MUC_MODEL_BLOCKS) /* those do not run, with one or without */
        MUC_TRY(muc_model_need_tokenizer(ctx, model));
    MUC_TRY(check_sampling(ctx, &options->sampling));
    if (options->board)
        MUC_TRY(check_board(ctx, model, options));
    MUC_TRY(check_machine(ctx, model, options));
    status = generate(ctx, model, &sink, &result);
    if (status == MUC_OK)
        status = muc_text_status(ctx, &sink.text);
    if (status == MUC_OK)
        status = muc_report_new(ctx, out);
    if (status == MUC_OK) {
        add_results(*out, options, &result, sink.text.data);
        status = add_clock(ctx, model, options, &result.generation, *out);
        if (status == MUC_OK)
            status = muc_report_status(ctx, *out);
        if (status != MUC_OK) {
            muc_report_free(*out);
            *out = NULL;
        }
    }
    muc_text_free(&sink.text);
    return status;
}
