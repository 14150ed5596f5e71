/* eval_parts.c - makes the report of an evaluation from its sums; those of shards are merged first.
 */
#include "driver/run/eval_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/locale.h"
#include "base/real.h"
#include "report/report_builder.h"

enum { MOST_PARTS = 4096, MOST_ITEMS = 1 << 24 };

void muc_eval_describe(const muc_model *model, const muc_eval_options *options,
                       const muc_engine_facts *engine, muc_eval_facts *out)
{
    *out = (muc_eval_facts){
        .arithmetic = engine->arithmetic,
        .bits_per_weight = model->bits_per_weight,
        .bos = (model->tokenizer.header->flags & MUR_TOKENIZER_ADD_BOS) != 0,
        .has_reference = options->reference != NULL,
        .tokenizer_crc32 = muc_crc32(0, model->tokenizer_form, model->tokenizer_bytes),
    };
}

bool muc_eval_is_mine(const muc_eval_options *options, size_t i)
{
    return options->shards == 0 || i % options->shards == options->shard - 1;
}

static muc_eval_sums add_up(const muc_eval_sums *sums, size_t count)
{
    muc_eval_sums total = { 0 };

    for (size_t i = 0; i < count; i++) {
        total.tokens += sums[i].tokens;
        total.agreed += sums[i].agreed;
        total.right += sums[i].right;
        total.nll += sums[i].nll;
        total.nll_squared += sums[i].nll_squared;
        total.reference_nll += sums[i].reference_nll;
        total.kl += sums[i].kl;
    }
    return total;
}

static bool is(const muc_eval_facts *facts, const char *items)
{
    return strcmp(facts->items, items) == 0;
}

static void add_arithmetic(muc_report *report, const muc_eval_facts *facts)
{
    muc_report_add_text(report, "arithmetic", "%s", facts->arithmetic);
    if (facts->bits_per_weight > 0)
        muc_report_add_real(report, "bits_per_weight", facts->bits_per_weight);
}

/* the uncertainty of a mean, as llama-perplexity has it, in perplexity */
static double error_of(const muc_eval_sums *total)
{
    double tokens = (double)total->tokens, mean = total->nll / tokens;
    double variance = total->nll_squared / tokens - mean * mean;

    return variance > 0 && total->tokens > 1 ? sqrt(variance / (tokens - 1)) * muc_exp(mean) : 0;
}

static void add_text(muc_report *report, const muc_eval_facts *facts, const muc_eval_sums *total,
                     size_t count)
{
    double tokens = (double)total->tokens;

    muc_report_add_real(report, "perplexity", muc_exp(total->nll / tokens));
    if (is(facts, "windows"))
        muc_report_add_real(report, "perplexity_error", error_of(total));
    muc_report_add_count(report, "tokens", total->tokens);
    muc_report_add_count(report, facts->items, count);
    add_arithmetic(report, facts);
    muc_report_add_count(report, "window", facts->window);
    if (facts->stride)
        muc_report_add_count(report, "stride", facts->stride);
    else
        muc_report_add_text(report, "stride", "none: the rest of a document is left out");
    muc_report_add_bool(report, "bos", facts->bos);
    muc_report_add_text(report, "tokenizer_crc32", "%08x", facts->tokenizer_crc32);
    if (facts->has_reference) {
        muc_report_add_real(report, "reference_perplexity", muc_exp(total->reference_nll / tokens));
        muc_report_add_real(report, "kl", total->kl / tokens);
        muc_report_add_real(report, "top1_agreement", (double)total->agreed / tokens);
    }
}

static void add_choices(muc_report *report, const muc_eval_facts *facts, const muc_eval_sums *total)
{
    double tasks = (double)total->tokens, share = (double)total->agreed / tasks;
    double z = 1.95996398454 * 1.95996398454 / tasks;
    double half =
        sqrt(z * (4 * share * (1 - share) + z)) / 2; /* Wilson's interval of 95 %, as llama.cpp */

    muc_report_add_real(report, "accuracy", share);
    muc_report_add_real(report, "accuracy_low", (share + z / 2 - half) / (1 + z));
    muc_report_add_real(report, "accuracy_high", (share + z / 2 + half) / (1 + z));
    muc_report_add_real(report, "accuracy_by_sum", (double)total->right / tasks);
    muc_report_add_count(report, "right", total->agreed);
    muc_report_add_count(report, "choices", total->tokens);
    add_arithmetic(report, facts);
    muc_report_add_bool(report, "bos", facts->bos);
    muc_report_add_text(report, "tokenizer_crc32", "%08x", facts->tokenizer_crc32);
}

static muc_status report_whole(muc_context *ctx, const char *path, const muc_eval_facts *facts,
                               const muc_eval_sums *sums, size_t count, muc_report **out)
{
    muc_eval_sums total = add_up(sums, count);

    if (total.tokens == 0)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET, "no document has two tokens");
    MUC_TRY(muc_report_new(ctx, out));
    if (is(facts, "choices"))
        add_choices(*out, facts, &total);
    else
        add_text(*out, facts, &total, count);
    return muc_report_status(ctx, *out);
}

/* ---- parts ---- */

/* the keys of a part and where they are: what is written is what is read */
static void add_part_facts(muc_report *report, const muc_eval_facts *facts)
{
    muc_report_add_text(report, "items", "%s", facts->items);
    muc_report_add_text(report, "arithmetic", "%s", facts->arithmetic);
    muc_report_add_real(report, "bits_per_weight", facts->bits_per_weight);
    muc_report_add_count(report, "window", facts->window);
    muc_report_add_count(report, "stride", facts->stride);
    muc_report_add_bool(report, "bos", facts->bos);
    muc_report_add_bool(report, "reference", facts->has_reference);
    muc_report_add_count(report, "tokenizer", facts->tokenizer_crc32);
    muc_report_add_count(report, "text", facts->text_crc32);
}

static muc_status report_part(muc_context *ctx, const muc_eval_facts *facts,
                              const muc_eval_options *options, const muc_eval_sums *sums,
                              size_t count, muc_report **out)
{
    muc_report *report;

    MUC_TRY(muc_report_new(ctx, out));
    report = *out;
    muc_report_add_text(report, "part_of", "eval");
    muc_report_add_count(report, "shard", options->shard);
    muc_report_add_count(report, "shards", options->shards);
    muc_report_add_count(report, "count", count);
    muc_report_begin_group(report, "facts");
    add_part_facts(report, facts);
    muc_report_end(report);
    muc_report_begin_table(report, "sums");
    for (size_t i = options->shard - 1; i < count; i += options->shards) {
        muc_report_begin_row(report);
        muc_report_add_count(report, "item", i);
        muc_report_add_count(report, "tokens", sums[i].tokens);
        muc_report_add_count(report, "agreed", sums[i].agreed);
        muc_report_add_count(report, "right", sums[i].right);
        muc_report_add_real(report, "nll", sums[i].nll);
        muc_report_add_real(report, "nll_squared", sums[i].nll_squared);
        muc_report_add_real(report, "reference_nll", sums[i].reference_nll);
        muc_report_add_real(report, "kl", sums[i].kl);
        muc_report_end(report);
    }
    muc_report_end(report);
    return muc_report_status(ctx, report);
}

muc_status muc_eval_report(muc_context *ctx, const char *path, const muc_eval_facts *facts,
                           const muc_eval_options *options, const muc_eval_sums *sums, size_t count,
                           muc_report **out)
{
    return options->shards ? report_part(ctx, facts, options, sums, count, out)
                           : report_whole(ctx, path, facts, sums, count, out);
}

/* ---- merging ---- */

typedef struct merge {
    muc_context *ctx;
    json_t *first;      /* the first part, which the others must fit */
    const char *path;   /* of it */
    muc_eval_sums *all; /* [count] */
    bool *have;         /* [count] */
    uint64_t count, shards;
} merge;

static muc_status not_a_part(muc_context *ctx, const char *path)
{
    return muc_fail(
        ctx, MUC_MALFORMED, path, MUC_NO_OFFSET,
        "is not a part that muc wrote: expected what muc eval --shard I/N --json prints");
}

static bool count_of(const json_t *row, const char *key, uint64_t *out)
{
    const json_t *value = json_object_get(row, key);

    *out = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool real_of(const json_t *row, const char *key, double *out)
{
    const json_t *value = json_object_get(row, key);

    *out = json_is_null(value) ? (double)NAN : json_number_value(value);
    return json_is_number(value) || json_is_null(value);
}

static bool read_row(const json_t *row, uint64_t *item, muc_eval_sums *out)
{
    return count_of(row, "item", item) && count_of(row, "tokens", &out->tokens) &&
           count_of(row, "agreed", &out->agreed) && count_of(row, "right", &out->right) &&
           real_of(row, "nll", &out->nll) && real_of(row, "nll_squared", &out->nll_squared) &&
           real_of(row, "reference_nll", &out->reference_nll) && real_of(row, "kl", &out->kl);
}

static muc_status begin_merge(merge *m, const char *path, json_t *part)
{
    const char *of = json_string_value(json_object_get(part, "part_of"));

    if (!of || strcmp(of, "eval") != 0 || !count_of(part, "count", &m->count) ||
        !count_of(part, "shards", &m->shards) || m->count == 0 || m->count > MOST_ITEMS)
        return not_a_part(m->ctx, path);
    m->first = json_incref(part);
    m->path = path;
    MUC_TRY(MUC_NEW_ARRAY(m->ctx, path, (size_t)m->count, &m->all));
    return MUC_NEW_ARRAY(m->ctx, path, (size_t)m->count, &m->have);
}

static muc_status add_part(merge *m, const char *path, json_t *part)
{
    static const char *const same[] = { "part_of", "shards", "count", "facts" };
    uint64_t shard, item;
    const json_t *row;
    size_t i;

    if (!m->first)
        MUC_TRY(begin_merge(m, path, part));
    for (i = 0; i < MUC_COUNT(same); i++)
        if (!json_equal(json_object_get(part, same[i]), json_object_get(m->first, same[i])))
            return muc_fail(m->ctx, MUC_MISMATCH, path, MUC_NO_OFFSET,
                            "'%s' is not as in %s: parts of one evaluation have the same model, "
                            "text and options",
                            same[i], m->path);
    if (!count_of(part, "shard", &shard))
        return not_a_part(m->ctx, path);
    json_array_foreach(json_object_get(part, "sums"), i, row)
    {
        muc_eval_sums sums;

        if (!read_row(row, &item, &sums) || item >= m->count)
            return not_a_part(m->ctx, path);
        if (m->have[item])
            return muc_fail(m->ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                            "shard %llu of %llu is given twice", (unsigned long long)shard,
                            (unsigned long long)m->shards);
        m->have[item] = true;
        m->all[item] = sums;
    }
    return MUC_OK;
}

static muc_status read_part(merge *m, const char *path)
{
    muc_status status;
    muc_file file;
    json_t *part;

    MUC_TRY(muc_file_open(m->ctx, path, &file));
    status = muc_json_parse(m->ctx, file.bytes, 0, &part);
    muc_file_close(&file);
    MUC_TRY(status);
    status = add_part(m, path, part);
    json_decref(part);
    return status;
}

static muc_status report_merged(const merge *m, muc_report **out)
{
    static const char *const known[] = { "documents", "windows", "choices" };
    const json_t *f = json_object_get(m->first, "facts");
    const char *items = json_string_value(json_object_get(f, "items"));
    muc_eval_facts facts = { .arithmetic = json_string_value(json_object_get(f, "arithmetic")) };
    uint64_t window, stride, tokenizer;

    for (uint64_t i = 0; i < m->count; i++)
        if (!m->have[i])
            return muc_fail(m->ctx, MUC_USAGE, m->path, MUC_NO_OFFSET,
                            "shard %llu of %llu is missing",
                            (unsigned long long)(i % m->shards + 1), (unsigned long long)m->shards);
    for (size_t i = 0; i < MUC_COUNT(known); i++)
        if (items && strcmp(items, known[i]) == 0)
            facts.items = known[i];
    if (!facts.items || !facts.arithmetic || !count_of(f, "window", &window) ||
        !count_of(f, "stride", &stride) || !count_of(f, "tokenizer", &tokenizer) ||
        !real_of(f, "bits_per_weight", &facts.bits_per_weight))
        return not_a_part(m->ctx, m->path);
    facts.window = (uint32_t)window;
    facts.stride = (uint32_t)stride;
    facts.tokenizer_crc32 = (uint32_t)tokenizer;
    facts.bos = json_is_true(json_object_get(f, "bos"));
    facts.has_reference = json_is_true(json_object_get(f, "reference"));
    return report_whole(m->ctx, m->path, &facts, m->all, (size_t)m->count, out);
}

muc_status muc_merge_parts(muc_context *ctx, const char *const *paths, size_t count,
                           muc_report **out)
{
    MUC_IN_C_LOCALE;

    merge m = { .ctx = ctx };
    muc_status status = MUC_OK;

    if (count == 0 || count > MOST_PARTS)
        return muc_fail(ctx, MUC_USAGE, "merge", MUC_NO_OFFSET, "%zu parts, expected 1 to %d",
                        count, MOST_PARTS);
    for (size_t i = 0; i < count && status == MUC_OK; i++)
        status = read_part(&m, paths[i]);
    if (status == MUC_OK && m.shards == 0)
        status = not_a_part(ctx, m.path);
    if (status == MUC_OK)
        status = report_merged(&m, out);
    json_decref(m.first);
    free(m.all);
    free(m.have);
    return status;
}
