/* eval.c - evaluates a model: perplexity of a text, exact answers to a task, agreement with a
 * reference.
 *
 * Documents and cases run side by side, each on an engine of its own; sums are made afterwards in
 * the order of the file, so the figures are the same at any thread count.
 */
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "base/locale.h"
#include "base/text.h"
#include "driver/run/eval_parts.h"
#include "run/generate.h"
#include "run/logits.h"
#include "run/text_passages.h"
#include "muc/eval.h"
#include "report/report_builder.h"
#include "text/tokenizer.h"

/* ---- perplexity ---- */

typedef struct text_work {
    const muc_model *model;
    const muc_eval_options *options;
    const muc_passage *documents;
    size_t count;
    muc_eval_sums *sums; /* [count] */
} text_work;

/* Adds what `count` rows of logits say of the tokens that follow each. reference may be NULL. */
static void add_rows(muc_eval_sums *sums, const float *logits, const float *reference,
                     uint32_t vocabulary, const uint32_t *next, uint32_t count)
{
    for (uint32_t r = 0; r < count; r++) {
        const float *row = logits + (size_t)r * vocabulary;
        double partition = muc_logits_partition(row, vocabulary);

        sums->tokens++;
        sums->nll += partition - (double)row[next[r]];
        if (reference) {
            const float *other = reference + (size_t)r * vocabulary;
            double other_partition = muc_logits_partition(other, vocabulary);

            sums->reference_nll += other_partition - (double)other[next[r]];
            sums->kl += muc_logits_divergence(other, other_partition, row, partition, vocabulary);
            sums->agreed +=
                muc_logits_arg_max(row, vocabulary) == muc_logits_arg_max(other, vocabulary);
        }
    }
}

/* Feeds ids[0..count-2], each predicting the one after it. */
static muc_status measure(muc_engine *engine, muc_engine *reference, const uint32_t *ids,
                          size_t count, muc_eval_sums *sums)
{
    for (size_t at = 0; at + 1 < count; at += MUC_ENGINE_MOST_TOKENS) {
        size_t left = count - 1 - at;
        uint32_t n = (uint32_t)(left < MUC_ENGINE_MOST_TOKENS ? left : MUC_ENGINE_MOST_TOKENS);
        const float *logits, *other = NULL;

        MUC_TRY(muc_engine_feed(engine, ids + at, n, true, &logits));
        if (reference)
            MUC_TRY(muc_engine_feed(reference, ids + at, n, true, &other));
        add_rows(sums, logits, other, engine->facts.vocabulary, ids + at + 1, n);
    }
    return MUC_OK;
}

static muc_status measure_document(void *arg, muc_engine *engine, muc_engine *reference, size_t i)
{
    text_work *work = arg;
    const muc_passage *document = &work->documents[i];
    uint32_t *ids = NULL, window = engine->facts.context;
    size_t count = 0;
    muc_status status;

    if (!muc_eval_is_mine(work->options, i))
        return MUC_OK;
    if (work->options->window && work->options->window < window)
        window = work->options->window;
    MUC_TRY(muc_tokenizer_encode(engine->ctx, &work->model->tokenizer, document->text,
                                 document->size, MUR_ENCODE_BOS, &ids, &count));
    count = count < window ? count : window;
    status = measure(engine, reference, ids, count, &work->sums[i]);
    free(ids);
    return status;
}

static void add_arithmetic(muc_report *report, const muc_model *model, const char *arithmetic)
{
    muc_report_add_text(report, "arithmetic", "%s", arithmetic);
    if (model->bits_per_weight > 0)
        muc_report_add_real(report, "bits_per_weight", model->bits_per_weight);
}

muc_status muc_eval_text(muc_context *ctx, const muc_model *model, const char *path,
                         const muc_eval_options *options, muc_report **out)
{
    MUC_IN_C_LOCALE;

    text_work work = { .model = model, .options = options };
    muc_engine_facts engine;
    muc_eval_facts facts;
    muc_arena arena = { 0 };
    muc_passage *documents;
    muc_file file;
    muc_status status;

    if (options->stride || options->save_logits || options->kl)
        return muc_eval_windows(ctx, model, options->kl ? options->kl : path, options, out);
    MUC_TRY(muc_engine_facts_of(ctx, model, &engine));
    MUC_TRY(muc_model_need_tokenizer(ctx, model));
    MUC_TRY(muc_file_open(ctx, path, &file));
    muc_eval_describe(model, options, &engine, &facts);
    facts.items = "documents";
    facts.text_crc32 = muc_crc32(0, file.bytes.data, file.bytes.size);
    facts.window = engine.context;
    if (options->window && options->window < facts.window)
        facts.window = options->window;
    status = muc_split_passages(ctx, file.bytes, MUC_DOCUMENT_MARK, options->limit, &arena,
                                &documents, &work.count);
    work.documents = documents;
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(ctx, &arena, work.count, &work.sums);
    if (status == MUC_OK)
        status = muc_engines_for(ctx, model, options->reference, work.count, "documents",
                                 measure_document, &work);
    if (status == MUC_OK)
        status = muc_eval_report(ctx, path, &facts, options, work.sums, work.count, out);
    muc_arena_free(&arena);
    muc_file_close(&file);
    return status;
}

/* ---- tasks ---- */

typedef struct task_case {
    const char *prompt; /* up to and including the last line's colon */
    muc_passage expected;
    muc_text found, reference;
} task_case;

typedef struct task_work {
    task_case *cases;
    size_t count;
} task_work;

static muc_status parse_case(muc_context *ctx, const char *name, muc_arena *arena, muc_passage p,
                             size_t number, task_case *out)
{
    muc_case parts;

    MUC_TRY(muc_read_case(ctx, name, p, number, &parts));
    out->expected = parts.answer;
    return muc_arena_string(ctx, arena, p.text, parts.prompt_bytes, &out->prompt);
}

/* an answer ends with its line */
static bool take_answer(void *arg, const char *text, size_t size)
{
    muc_text *answer = arg;

    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n' && answer->size)
            return false;
        if (!muc_is_space(text[i]) || answer->size)
            muc_text_add_bytes(answer, text + i, 1);
    }
    return true;
}

static muc_status answer(muc_engine *engine, const char *prompt, muc_text *out)
{
    const muc_generate_options options = {
        .text = take_answer,
        .arg = out,
    };
    muc_generation generation;

    MUC_TRY(muc_generate(engine, prompt, &options, &generation));
    return muc_text_status(engine->ctx, out);
}

static muc_status answer_case(void *arg, muc_engine *engine, muc_engine *reference, size_t i)
{
    task_work *work = arg;
    task_case *c = &work->cases[i];

    MUC_TRY(answer(engine, c->prompt, &c->found));
    return reference ? answer(reference, c->prompt, &c->reference) : MUC_OK;
}

static bool is_exact(const task_case *c, const muc_text *answer)
{
    muc_passage found = muc_strip((muc_passage){ answer->data, answer->size });

    return found.size == c->expected.size &&
           (found.size == 0 || memcmp(found.text, c->expected.text, found.size) == 0);
}

static muc_status report_task(muc_context *ctx, const task_work *work, const muc_model *model,
                              const char *arithmetic, bool reference, muc_report **out)
{
    size_t exact = 0, reference_exact = 0;
    muc_report *report;

    for (size_t i = 0; i < work->count; i++) {
        exact += is_exact(&work->cases[i], &work->cases[i].found);
        reference_exact += is_exact(&work->cases[i], &work->cases[i].reference);
    }
    MUC_TRY(muc_report_new(ctx, out));
    report = *out;
    muc_report_add_count(report, "exact", exact);
    muc_report_add_count(report, "cases", work->count);
    muc_report_add_real(report, "accuracy", (double)exact / (double)work->count);
    add_arithmetic(report, model, arithmetic);
    if (reference)
        muc_report_add_count(report, "reference_exact", reference_exact);
    muc_report_begin_table(report, "wrong");
    for (size_t i = 0; i < work->count; i++) {
        const task_case *c = &work->cases[i];

        if (is_exact(c, &c->found))
            continue;
        muc_report_begin_row(report);
        muc_report_add_count(report, "case", i + 1);
        muc_report_add_text(report, "expected", "%.*s", (int)c->expected.size, c->expected.text);
        muc_report_add_text(report, "found", "%s", c->found.data ? c->found.data : "");
        muc_report_end(report);
    }
    muc_report_end(report);
    return muc_report_status(ctx, report);
}

static muc_status read_cases(muc_context *ctx, muc_bytes bytes, uint32_t limit, muc_arena *arena,
                             task_work *out)
{
    muc_passage *paragraphs;

    MUC_TRY(muc_split_passages(ctx, bytes, "\n\n", limit, arena, &paragraphs, &out->count));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, out->count, &out->cases));
    for (size_t i = 0; i < out->count; i++)
        MUC_TRY(parse_case(ctx, bytes.name, arena, paragraphs[i], i, &out->cases[i]));
    return MUC_OK;
}

muc_status muc_eval_task(muc_context *ctx, const muc_model *model, const char *path,
                         const muc_eval_options *options, muc_report **out)
{
    MUC_IN_C_LOCALE;

    task_work work = { 0 };
    muc_engine_facts facts;
    muc_arena arena = { 0 };
    muc_file file;
    muc_status status;

    if (options->stride || options->save_logits || options->kl || options->shards)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "a task has answers, not windows: no --stride, --save-logits, --kl and "
                        "--shard");
    MUC_TRY(muc_engine_facts_of(ctx, model, &facts));
    MUC_TRY(muc_model_need_tokenizer(ctx, model));
    MUC_TRY(muc_file_open(ctx, path, &file));
    status = read_cases(ctx, file.bytes, options->limit, &arena, &work);
    if (status == MUC_OK)
        status = muc_engines_for(ctx, model, options->reference, work.count, "cases", answer_case,
                                 &work);
    if (status == MUC_OK)
        status = report_task(ctx, &work, model, facts.arithmetic, options->reference != NULL, out);
    for (size_t i = 0; work.cases && i < work.count; i++) {
        muc_text_free(&work.cases[i].found);
        muc_text_free(&work.cases[i].reference);
    }
    muc_arena_free(&arena);
    muc_file_close(&file);
    return status;
}
