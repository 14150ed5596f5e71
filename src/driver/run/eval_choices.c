/* eval_choices.c - evaluates multiple choice as HellaSwag has it: which ending is the likeliest. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/locale.h"
#include "driver/run/eval_parts.h"
#include "run/logits.h"
#include "run/text_passages.h"
#include "text/tokenizer.h"

enum { ENDINGS = 4, LINES = ENDINGS + 2 };

typedef struct choice {
    muc_passage context, endings[ENDINGS];
    unsigned right;
} choice;

typedef struct choice_work {
    const muc_model *model;
    const muc_eval_options *options;
    const choice *choices;
    muc_eval_sums *sums; /* [count] */
} choice_work;

/* ---- the file ---- */

static muc_passage next_line(muc_passage *rest)
{
    const char *end = memchr(rest->text, '\n', rest->size);
    muc_passage line = { rest->text, end ? (size_t)(end - rest->text) : rest->size };
    size_t used = line.size + (end != NULL);

    rest->text += used;
    rest->size -= used;
    if (line.size && line.text[line.size - 1] == '\r')
        line.size--;
    return line;
}

static muc_status read_choice(muc_context *ctx, const char *name, size_t number, muc_passage *rest,
                              choice *out)
{
    muc_passage label;

    out->context = next_line(rest);
    label = next_line(rest);
    if (label.size != 1 || label.text[0] < '0' || label.text[0] >= '0' + ENDINGS)
        return muc_fail(ctx, MUC_MALFORMED, name, MUC_NO_OFFSET,
                        "line %zu is '%.*s', expected the number of the right ending, 0 to %d: "
                        "each choice is a line of context, that number and %d endings",
                        number * LINES + 2, (int)(label.size < 40 ? label.size : 40), label.text,
                        ENDINGS - 1, ENDINGS);
    out->right = (unsigned)(label.text[0] - '0');
    for (unsigned e = 0; e < ENDINGS; e++) {
        if (rest->size == 0)
            return muc_fail(ctx, MUC_MALFORMED, name, MUC_NO_OFFSET,
                            "the file ends within choice %zu: each has %d lines", number + 1,
                            LINES);
        out->endings[e] = next_line(rest);
    }
    return MUC_OK;
}

static muc_status read_choices(muc_context *ctx, muc_bytes bytes, uint32_t limit, muc_arena *arena,
                               choice **out, size_t *count)
{
    muc_passage rest = { (const char *)bytes.data, bytes.size };
    size_t capacity = 0;

    *out = NULL;
    *count = 0;
    while (rest.size && (limit == 0 || *count < limit)) {
        MUC_TRY(MUC_ARENA_GROW(ctx, arena, *count + 1, &capacity, out));
        MUC_TRY(read_choice(ctx, bytes.name, *count, &rest, &(*out)[*count]));
        ++*count;
    }
    if (*count == 0)
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, MUC_NO_OFFSET, "there is no text in it");
    return MUC_OK;
}

/* ---- likelihoods ---- */

typedef struct ending_tokens {
    uint32_t *ids;
    size_t count;
} ending_tokens;

static muc_status encode(muc_engine *engine, const muc_model *model, const choice *c, unsigned e,
                         ending_tokens *out)
{
    muc_text text = { 0 };
    muc_status status;

    muc_text_add_bytes(&text, c->context.text, c->context.size);
    muc_text_add(&text, " ");
    muc_text_add_bytes(&text, c->endings[e].text, c->endings[e].size);
    status = muc_text_status(engine->ctx, &text);
    if (status == MUC_OK)
        status = muc_tokenizer_encode(engine->ctx, &model->tokenizer, text.data, text.size,
                                      MUR_ENCODE_BOS, &out->ids, &out->count);
    muc_text_free(&text);
    if (status == MUC_OK && out->count > engine->facts.context)
        status = muc_fail(engine->ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                          "a choice has %zu tokens, the model's context %u", out->count,
                          engine->facts.context);
    return status;
}

/* Tokens at the beginning that all endings have; one at least stays for each. */
static size_t common_tokens(const ending_tokens endings[ENDINGS])
{
    size_t common = 0;

    for (;; common++) {
        for (unsigned e = 0; e < ENDINGS; e++)
            if (common + 1 >= endings[e].count || endings[e].ids[common] != endings[0].ids[common])
                return common;
    }
}

/* The sum of ln p of the tokens from `common` on. */
static muc_status likelihood(muc_engine *engine, const ending_tokens *ending, size_t common,
                             double *out)
{
    uint32_t vocabulary = engine->facts.vocabulary;

    *out = 0;
    muc_engine_reset(engine);
    for (size_t at = 0; at + 1 < ending->count; at += MUC_ENGINE_MOST_TOKENS) {
        size_t left = ending->count - 1 - at;
        uint32_t n = (uint32_t)(left < MUC_ENGINE_MOST_TOKENS ? left : MUC_ENGINE_MOST_TOKENS);
        const float *logits;

        MUC_TRY(muc_engine_feed(engine, ending->ids + at, n, true, &logits));
        for (uint32_t r = 0; r < n; r++, logits += vocabulary)
            if (at + r + 1 >= common)
                *out += (double)logits[ending->ids[at + r + 1]] -
                        muc_logits_partition(logits, vocabulary);
    }
    return MUC_OK;
}

/* Which ending is likeliest by the sum, and by the mean of its tokens; the first of equals. */
static muc_status choose(muc_engine *engine, const ending_tokens endings[ENDINGS], unsigned *by_sum,
                         unsigned *by_mean)
{
    size_t common = common_tokens(endings);
    double best = 0, best_mean = 0;

    /* the first token has nothing before it that would predict it */
    common = common ? common : 1;
    *by_sum = *by_mean = 0;
    for (unsigned e = 0; e < ENDINGS; e++) {
        double sum, mean;

        MUC_TRY(likelihood(engine, &endings[e], common, &sum));
        mean = endings[e].count > common ? sum / (double)(endings[e].count - common) : 0;
        if (e == 0 || sum > best) {
            best = sum;
            *by_sum = e;
        }
        if (e == 0 || mean > best_mean) {
            best_mean = mean;
            *by_mean = e;
        }
    }
    return MUC_OK;
}

static muc_status measure_choice(void *arg, muc_engine *engine, muc_engine *reference, size_t i)
{
    choice_work *work = arg;
    const choice *c = &work->choices[i];
    ending_tokens endings[ENDINGS] = { { NULL, 0 } };
    unsigned by_sum = 0, by_mean = 0;
    muc_status status = MUC_OK;

    (void)reference;
    if (!muc_eval_is_mine(work->options, i))
        return MUC_OK;
    for (unsigned e = 0; e < ENDINGS && status == MUC_OK; e++)
        status = encode(engine, work->model, c, e, &endings[e]);
    if (status == MUC_OK)
        status = choose(engine, endings, &by_sum, &by_mean);
    for (unsigned e = 0; e < ENDINGS; e++)
        free(endings[e].ids);
    work->sums[i] = (muc_eval_sums){
        .tokens = 1,
        .agreed = by_mean == c->right,
        .right = by_sum == c->right,
    };
    return status;
}

muc_status muc_eval_choices(muc_context *ctx, const muc_model *model, const char *path,
                            const muc_eval_options *options, muc_report **out)
{
    MUC_IN_C_LOCALE;

    choice_work work = { .model = model, .options = options };
    muc_engine_facts engine;
    muc_eval_facts facts;
    muc_arena arena = { 0 };
    choice *choices = NULL;
    muc_status status;
    muc_file file;
    size_t count;

    MUC_TRY(muc_engine_facts_of(ctx, model, &engine));
    MUC_TRY(muc_model_need_tokenizer(ctx, model));
    if (options->reference)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "choices have a right ending: they are not compared with a reference");
    MUC_TRY(muc_file_open(ctx, path, &file));
    muc_eval_describe(model, options, &engine, &facts);
    facts.items = "choices";
    facts.text_crc32 = muc_crc32(0, file.bytes.data, file.bytes.size);
    status = read_choices(ctx, file.bytes, options->limit, &arena, &choices, &count);
    work.choices = choices;
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(ctx, &arena, count, &work.sums);
    if (status == MUC_OK)
        status = muc_engines_for(ctx, model, NULL, count, "choices", measure_choice, &work);
    if (status == MUC_OK)
        status = muc_eval_report(ctx, path, &facts, options, work.sums, count, out);
    muc_arena_free(&arena);
    muc_file_close(&file);
    return status;
}
