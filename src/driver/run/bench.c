/* bench.c - times prompts and generation, as llama-bench does. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/locale.h"
#include "base/system.h"
#include "muc/bench.h"
#include "report/report_builder.h"
#include "run/engine.h"

enum { MOST_TESTS = 32, MOST_REPETITIONS = 1000 };

typedef struct bench_test {
    uint32_t tokens;
    bool is_prompt; /* fed at once, not one after the other */
} bench_test;

typedef struct bench_tests {
    bench_test rows[MOST_TESTS];
    size_t count;
    uint32_t depth, repetitions;
} bench_tests;

/* What a test of some tokens took. */
typedef struct bench_time {
    double seconds, processor; /* of the clock; of processors, all threads together */
} bench_time;

/* Adds a test for each number of a list, or one of `fallback` tokens; 0 adds none. */
static muc_status add_tests(muc_context *ctx, bench_tests *tests, const char *list, bool is_prompt,
                            uint32_t fallback)
{
    const char *at = list;

    if (!list && fallback)
        tests->rows[tests->count++] = (bench_test){ fallback, is_prompt };
    while (at) {
        char *end = NULL;
        unsigned long long value = *at >= '0' && *at <= '9' ? strtoull(at, &end, 10) : 0;

        if (!end || (*end && *end != ',') || value > UINT32_MAX)
            return muc_fail(ctx, MUC_USAGE, "bench", MUC_NO_OFFSET,
                            "'%s' is not a list of numbers of tokens, as 128,512", list);
        if (value && tests->count == MOST_TESTS)
            return muc_fail(ctx, MUC_USAGE, "bench", MUC_NO_OFFSET, "more than %d tests",
                            MOST_TESTS);
        if (value)
            tests->rows[tests->count++] = (bench_test){ (uint32_t)value, is_prompt };
        at = *end ? end + 1 : NULL;
    }
    return MUC_OK;
}

static muc_status plan_tests(muc_context *ctx, const muc_model *model, uint32_t context,
                             const muc_bench_options *options, bench_tests *out)
{
    uint32_t room = context > options->depth ? context - options->depth : 0;

    *out = (bench_tests){
        .depth = options->depth,
        .repetitions = options->repetitions ? options->repetitions : 5,
    };
    if (out->repetitions > MOST_REPETITIONS)
        return muc_fail(ctx, MUC_USAGE, "bench", MUC_NO_OFFSET, "%u repetitions, at most %d",
                        out->repetitions, MOST_REPETITIONS);
    MUC_TRY(add_tests(ctx, out, options->prompts, true, room < 512 ? room : 512));
    MUC_TRY(add_tests(ctx, out, options->tokens, false, room < 128 ? room : 128));
    for (size_t i = 0; i < out->count; i++)
        if (out->rows[i].tokens > room)
            return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                            "%u tokens after %u exceed the context of %u", out->rows[i].tokens,
                            options->depth, context);
    if (out->count == 0)
        return muc_fail(ctx, MUC_USAGE, "bench", MUC_NO_OFFSET, "there is no test to run");
    return MUC_OK;
}

/* Tokens of no meaning, `at_once` in a feed. */
static muc_status feed(muc_engine *engine, uint32_t count, uint32_t at_once, uint64_t *chance)
{
    uint32_t tokens[MUC_ENGINE_MOST_TOKENS];
    const float *logits;

    while (count) {
        uint32_t n = count < at_once ? count : at_once;

        for (uint32_t i = 0; i < n; i++) {
            *chance = *chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            tokens[i] = (uint32_t)(*chance >> 33) % engine->facts.vocabulary;
        }
        MUC_TRY(muc_engine_feed(engine, tokens, n, false, &logits));
        count -= n;
    }
    return MUC_OK;
}

/* One repetition. */
static muc_status time_once(muc_engine *engine, const bench_test *test, uint32_t depth,
                            bench_time *time)
{
    uint64_t chance = 1;
    uint64_t start, processor;

    muc_engine_reset(engine);
    MUC_TRY(feed(engine, depth, MUC_ENGINE_MOST_TOKENS, &chance));
    start = muc_nanoseconds();
    processor = muc_processor_nanoseconds();
    MUC_TRY(feed(engine, test->tokens, test->is_prompt ? MUC_ENGINE_MOST_TOKENS : 1, &chance));
    time->seconds = 1e-9 * (double)(muc_nanoseconds() - start);
    time->processor = 1e-9 * (double)(muc_processor_nanoseconds() - processor);
    return MUC_OK;
}

/* Of a test's repetitions. */
typedef struct bench_result {
    double mean, deviation; /* of tokens per second; of a sample */
    double processor;       /* seconds a token, the least */
} bench_result;

static muc_status time_test(muc_engine *engine, const bench_tests *tests, const bench_test *test,
                            bench_result *out)
{
    double speeds[MOST_REPETITIONS], squares = 0;
    bench_time time;

    *out = (bench_result){ .processor = INFINITY };
    MUC_TRY(time_once(engine, test, tests->depth, &time)); /* caches and clocks get warm */
    for (uint32_t i = 0; i < tests->repetitions; i++) {
        muc_progress(engine->ctx, test->is_prompt ? "prompt" : "generation", i, tests->repetitions);
        MUC_TRY(time_once(engine, test, tests->depth, &time));
        speeds[i] = test->tokens / time.seconds;
        out->mean += speeds[i] / tests->repetitions;
        out->processor = fmin(out->processor, time.processor / test->tokens);
    }
    for (uint32_t i = 0; i < tests->repetitions; i++)
        squares += (speeds[i] - out->mean) * (speeds[i] - out->mean);
    out->deviation = tests->repetitions > 1 ? sqrt(squares / (tests->repetitions - 1)) : 0;
    return MUC_OK;
}

static void add_model(muc_report *report, const muc_model *model, const char *arithmetic)
{
    uint64_t weights, bytes;

    muc_report_add_text(report, "model", "%s", model->path);
    if (model->kind == MUC_MODEL_CHECKPOINT) {
        muc_checkpoint_weights(&model->checkpoint, &weights, &bytes);
        muc_report_add_count(report, "weights", weights);
        muc_report_add_count(report, "weight_bytes", bytes);
    }
    muc_report_add_text(report, "arithmetic", "%s", arithmetic);
}

static muc_status bench_model(muc_context *ctx, const muc_model *model,
                              const muc_bench_options *options, muc_report *report)
{
    muc_engine *engine = NULL;
    muc_engine_facts facts;
    bench_tests tests;
    muc_status status;

    MUC_TRY(muc_engine_facts_of(ctx, model, &facts));
    MUC_TRY(plan_tests(ctx, model, facts.context, options, &tests));
    status = muc_engine_new(ctx, model, &engine);
    for (size_t i = 0; i < tests.count && status == MUC_OK; i++) {
        const bench_test *test = &tests.rows[i];
        bench_result result;

        status = time_test(engine, &tests, test, &result);
        if (status != MUC_OK)
            break;
        muc_report_begin_row(report);
        add_model(report, model, facts.arithmetic);
        if (tests.depth)
            muc_report_add_text(report, "test", "%s%u @ d%u", test->is_prompt ? "pp" : "tg",
                                test->tokens, tests.depth);
        else
            muc_report_add_text(report, "test", "%s%u", test->is_prompt ? "pp" : "tg",
                                test->tokens);
        muc_report_add_count(report, "repetitions", tests.repetitions);
        muc_report_add_real(report, "tokens_per_second", result.mean);
        muc_report_add_real(report, "deviation", result.deviation);
        muc_report_add_real(report, "processor_ms", 1000 * result.processor);
        muc_report_end(report);
    }
    muc_engine_free(engine);
    return status;
}

muc_status muc_bench(muc_context *ctx, const muc_model *const *models, size_t count,
                     const muc_bench_options *options, muc_report **out)
{
    MUC_IN_C_LOCALE;

    static const muc_report_column columns[] = {
        { "model", NULL, NULL },
        { "weights", NULL, "elements of matrices" },
        { "weight_bytes", "bytes", "of matrices, as stored" },
        { "arithmetic", NULL, NULL },
        { "test", NULL, "pp: tokens fed at once, tg: one after the other, d: after so many" },
        { "repetitions", NULL, NULL },
        { "tokens_per_second", NULL, "mean of the repetitions" },
        { "deviation", NULL, "standard deviation of the repetitions" },
        { "processor_ms", "ms", "processor time of a token, all threads, the least repetition" },
        { NULL, NULL, NULL },
    };
    muc_status status;
    muc_report *report;

    MUC_TRY(muc_report_new(ctx, &report));
    muc_report_add_count(report, "threads", muc_context_threads(ctx));
    muc_report_begin_columns(report, "tests", columns);
    status = MUC_OK;
    for (size_t i = 0; i < count && status == MUC_OK; i++)
        status = bench_model(ctx, models[i], options, report);
    muc_report_end(report);
    if (status == MUC_OK)
        status = muc_report_status(ctx, report);
    if (status != MUC_OK) {
        muc_report_free(report);
        return status;
    }
    *out = report;
    return MUC_OK;
}
