/* eval_windows.c - evaluates a text in windows of one length: perplexity, and divergence from the
 * logits of another model that a file keeps, both as llama-perplexity has them.
 *
 * The file is that of llama-perplexity --kl-divergence-base, little-endian: "_logits_", u32 window,
 * u32 vocabulary, u32 windows, u32 tokens[windows][window], then for each window a row for each of
 * its predictions from the middle on: f32 scale, f32 least, u16 steps[vocabulary, made even], where
 * ln p is least + scale * step.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/locale.h"
#include "base/real.h"
#include "driver/run/eval_parts.h"
#include "report/report_builder.h"
#include "run/logits.h"
#include "text/tokenizer.h"

enum { DEFAULT_WINDOW = 512, HEADER_BYTES = 20, ROW_HEAD = 4, BUFFER_BYTES = 1 << 27 };

static const char magic[] = "_logits_";

/* Tokens whose probability is below the likeliest's by more than this power of e are left out. */
#define DEPTH 16.0

typedef struct window_work {
    const muc_model *model;
    const muc_eval_options *options;
    const uint32_t
        *tokens; /* [count * stride + ..], windows beginning `stride` after one another */
    uint32_t window, stride, first, vocabulary;
    size_t count, row_steps; /* windows; u16 in a row of the file */
    const uint8_t *base;     /* rows of the file that is compared with, or NULL */
    uint16_t *saved;         /* rows of the windows from `from` on, or NULL */
    size_t from, until;      /* windows of this group */
    muc_eval_sums *sums;     /* [count] */
    float *kl, *shift;       /* [count][rows], or NULL: divergence, and how far p of the token is */
} window_work;

static double load_real(const uint8_t *p)
{
    uint32_t bits = muc_load_u32(p);
    float value;

    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

static size_t rows_of(const window_work *w)
{
    return w->window - 1 - w->first;
}

/* ---- rows of the file ---- */

static void save_row(const window_work *w, const float *logits, double partition, uint16_t *out)
{
    double most = (double)logits[0], least = most;
    float head[2];

    for (uint32_t i = 1; i < w->vocabulary; i++) {
        most = (double)logits[i] > most ? (double)logits[i] : most;
        least = (double)logits[i] < least ? (double)logits[i] : least;
    }
    least = least > most - DEPTH ? least : most - DEPTH;
    head[0] = (float)((most - least) / 65535);
    head[1] = (float)(least - partition);
    memcpy(out, head, sizeof(head));
    for (uint32_t i = 0; i < w->vocabulary; i++) {
        double over = (double)logits[i] - least;

        out[ROW_HEAD + i] = over > 0 ? (uint16_t)(over / (most - least) * 65535 + 0.5) : 0;
    }
    for (size_t i = ROW_HEAD + w->vocabulary; i < w->row_steps; i++)
        out[i] = 0;
}

/* Adds how a row of the model differs from one of the file, for the token that follows. */
static void compare_row(const window_work *w, const uint8_t *row, const float *logits,
                        double partition, uint32_t next, muc_eval_sums *sums, float *kl,
                        float *shift)
{
    double scale = load_real(row), least = load_real(row + 4), sum = 0;
    const uint8_t *steps = row + 2 * ROW_HEAD;
    uint32_t best = 0, best_step = muc_load_u16(steps);
    double told = least + scale * muc_load_u16(steps + 2 * (size_t)next);

    for (uint32_t i = 0; i < w->vocabulary; i++) {
        uint32_t step = muc_load_u16(steps + 2 * (size_t)i);
        double ln_p = least + scale * step;

        if (step > best_step) {
            best_step = step;
            best = i;
        }
        if (ln_p > -DEPTH)
            sum += muc_exp(ln_p) * (ln_p - ((double)logits[i] - partition));
    }
    sums->reference_nll -= told;
    sums->kl += sum;
    sums->agreed += muc_logits_arg_max(logits, w->vocabulary) == best;
    *kl = (float)sum;
    *shift = (float)(muc_exp((double)logits[next] - partition) - muc_exp(told));
}

/* ---- windows ---- */

/* What the logits after the token at `at` of window i say of the one that follows. */
static void take_row(window_work *w, size_t i, size_t at, const float *logits)
{
    size_t row = at - w->first, rows = rows_of(w);
    uint32_t next = w->tokens[i * w->stride + at + 1];
    double partition = muc_logits_partition(logits, w->vocabulary);
    double nll = partition - (double)logits[next];
    muc_eval_sums *sums = &w->sums[i];

    sums->tokens++;
    sums->nll += nll;
    sums->nll_squared += nll * nll;
    if (w->base)
        compare_row(w, w->base + (i * rows + row) * w->row_steps * 2, logits, partition, next, sums,
                    &w->kl[i * rows + row], &w->shift[i * rows + row]);
    if (w->saved)
        save_row(w, logits, partition, w->saved + ((i - w->from) * rows + row) * w->row_steps);
}

/* with another model beside it, which has the same tokens */
static void take_reference(window_work *w, size_t i, size_t at, const float *logits,
                           const float *other)
{
    muc_eval_sums *sums = &w->sums[i];
    double q = muc_logits_partition(logits, w->vocabulary);
    double p = muc_logits_partition(other, w->vocabulary);

    sums->reference_nll += p - (double)other[w->tokens[i * w->stride + at + 1]];
    sums->kl += muc_logits_divergence(other, p, logits, q, w->vocabulary);
    sums->agreed +=
        muc_logits_arg_max(logits, w->vocabulary) == muc_logits_arg_max(other, w->vocabulary);
}

static muc_status measure_window(void *arg, muc_engine *engine, muc_engine *reference, size_t g)
{
    window_work *w = arg;
    size_t i = w->from + g;
    const mur_tokenizer_header *tokenizer = w->model->tokenizer.header;
    uint32_t fed[MUC_ENGINE_MOST_TOKENS];

    if (!muc_eval_is_mine(w->options, i))
        return MUC_OK;
    for (size_t at = 0; at + 1 < w->window; at += MUC_ENGINE_MOST_TOKENS) {
        size_t left = w->window - 1 - at;
        uint32_t n = (uint32_t)(left < MUC_ENGINE_MOST_TOKENS ? left : MUC_ENGINE_MOST_TOKENS);
        bool counts = at + n > w->first;
        const float *logits, *other = NULL;

        memcpy(fed, w->tokens + i * w->stride + at, n * sizeof(*fed));
        if (at == 0 && (tokenizer->flags & MUR_TOKENIZER_ADD_BOS))
            fed[0] = tokenizer->bos;
        MUC_TRY(muc_engine_feed(engine, fed, n, counts, &logits));
        if (reference)
            MUC_TRY(muc_engine_feed(reference, fed, n, counts, &other));
        for (size_t r = at < w->first ? w->first - at : 0; counts && r < n; r++) {
            take_row(w, i, at + r, logits + r * w->vocabulary);
            if (reference)
                take_reference(w, i, at + r, logits + r * w->vocabulary, other + r * w->vocabulary);
        }
    }
    return MUC_OK;
}

/* ---- files of logits ---- */

static muc_status write_head(muc_output *output, const window_work *w)
{
    const uint32_t head[3] = { w->window, w->vocabulary, (uint32_t)w->count };

    MUC_TRY(muc_output_write(output, magic, 8));
    MUC_TRY(muc_output_write(output, head, sizeof(head)));
    return muc_output_write(output, w->tokens, w->count * w->window * sizeof(*w->tokens));
}

/* Windows in groups whose rows fit in a buffer, each group's rows written in their order. */
static muc_status save_windows(muc_context *ctx, window_work *w, const muc_model *reference,
                               muc_output *output)
{
    size_t bytes = rows_of(w) * w->row_steps * sizeof(uint16_t);
    size_t group = BUFFER_BYTES / bytes + 1;
    muc_status status = write_head(output, w);

    group = group < muc_context_threads(ctx) ? muc_context_threads(ctx) : group;
    group = group < w->count ? group : w->count;
    if (status == MUC_OK)
        status = muc_new_array(ctx, "logits", group, bytes, (void **)&w->saved);
    for (w->from = 0; w->from < w->count && status == MUC_OK; w->from += group) {
        size_t left = w->count - w->from, n = left < group ? left : group;

        status = muc_engines_for(ctx, w->model, reference, n, "windows", measure_window, w);
        if (status == MUC_OK)
            status = muc_output_write(output, w->saved, n * bytes);
    }
    free(w->saved);
    return status;
}

static muc_status measure(muc_context *ctx, window_work *w)
{
    const muc_model *reference = w->options->reference;
    muc_output *output;
    muc_status status;

    if (!w->options->save_logits)
        return muc_engines_for(ctx, w->model, reference, w->count, "windows", measure_window, w);
    MUC_TRY(muc_output_begin(ctx, w->options->save_logits, &output));
    status = save_windows(ctx, w, reference, output);
    if (status == MUC_OK)
        return muc_output_commit(output);
    muc_output_discard(output);
    return status;
}

/* The windows of a file, whose tokens are its own; checked against its size and the model. */
static muc_status read_logits(muc_context *ctx, muc_bytes file, muc_arena *arena, window_work *w)
{
    uint64_t rows, cells, tokens_bytes, need;
    uint32_t *tokens;

    if (file.size < HEADER_BYTES || memcmp(file.data, magic, 8) != 0)
        return muc_fail(ctx, MUC_MALFORMED, file.name, 0,
                        "is not a file of logits: expected what --save-logits or llama-perplexity "
                        "--kl-divergence-base writes");
    w->window = w->stride = muc_load_u32(file.data + 8);
    w->count = muc_load_u32(file.data + 16);
    if (muc_load_u32(file.data + 12) != w->vocabulary)
        return muc_fail(ctx, MUC_MISMATCH, file.name, 12, "has logits of %u tokens, the model %u",
                        muc_load_u32(file.data + 12), w->vocabulary);
    if (w->window < 4 || w->count == 0)
        return muc_fail(ctx, MUC_MALFORMED, file.name, 8, "has %zu windows of %u tokens", w->count,
                        w->window);
    w->first = w->window / 2;
    cells = (uint64_t)w->count * w->window;
    rows = (uint64_t)w->count * rows_of(w);
    tokens_bytes = cells * 4;
    if (cells > file.size / 4 || !muc_mul_u64(rows, w->row_steps * 2, &need) || need > file.size ||
        tokens_bytes + HEADER_BYTES > file.size - need)
        return muc_fail(ctx, MUC_MALFORMED, file.name, file.size,
                        "the file ends before the logits of its %zu windows of %u tokens", w->count,
                        w->window);
    if (w->options->limit && w->options->limit < w->count)
        w->count = w->options->limit;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)(tokens_bytes / 4), &tokens));
    for (size_t i = 0; i < tokens_bytes / 4; i++) {
        tokens[i] = muc_load_u32(file.data + HEADER_BYTES + 4 * i);
        if (tokens[i] >= w->vocabulary)
            return muc_fail(ctx, MUC_MALFORMED, file.name, HEADER_BYTES + 4 * i,
                            "token %u is not below %u", tokens[i], w->vocabulary);
    }
    w->tokens = tokens;
    w->base = file.data + HEADER_BYTES + tokens_bytes;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)rows, &w->kl));
    return MUC_ARENA_NEW(ctx, arena, (size_t)rows, &w->shift);
}

/* ---- the report ---- */

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* of sorted values, interpolated between two of them */
static double quantile(const float *values, size_t count, double share)
{
    double at = share * (double)(count - 1);
    size_t below = (size_t)at, above = below + 1 < count ? below + 1 : below;

    return (double)values[below] +
           (at - (double)below) * ((double)values[above] - (double)values[below]);
}

/* Sorts the values of w. */
static void add_divergence(muc_report *report, window_work *w)
{
    static const struct {
        const char *name;
        double share;
    } rows[] = { { "least", 0 },     { "1 %", .01 },   { "5 %", .05 },  { "10 %", .1 },
                 { "median", .5 },   { "90 %", .9 },   { "95 %", .95 }, { "99 %", .99 },
                 { "99.9 %", .999 }, { "greatest", 1 } };
    size_t count = w->count * rows_of(w);
    double squares = 0;

    for (size_t i = 0; i < count; i++)
        squares += (double)w->shift[i] * (double)w->shift[i];
    muc_report_add_real(report, "probability_rms", sqrt(squares / (double)count));
    qsort(w->kl, count, sizeof(*w->kl), ascending);
    qsort(w->shift, count, sizeof(*w->shift), ascending);
    muc_report_begin_table(report, "quantiles");
    for (size_t i = 0; i < MUC_COUNT(rows); i++) {
        muc_report_begin_row(report);
        muc_report_add_text(report, "quantile", "%s", rows[i].name);
        muc_report_add_real(report, "kl", quantile(w->kl, count, rows[i].share));
        muc_report_add_real(report, "probability", quantile(w->shift, count, rows[i].share));
        muc_report_end(report);
    }
    muc_report_end(report);
}

/* ---- the whole ---- */

static muc_status check_window(muc_context *ctx, const muc_model *model, uint32_t context,
                               const window_work *w)
{
    if (w->window > context)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "windows of %u tokens exceed the context of %u: give --window or "
                        "--ctx-size",
                        w->window, context);
    if (w->window < 4 || w->stride == 0 || w->stride > w->window)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "a window of %u and a stride of %u: expected a window of at least 4 and a "
                        "stride of 1 to the window",
                        w->window, w->stride);
    return MUC_OK;
}

/* The text's windows; what does not fill one is left out, as llama-perplexity does. */
static muc_status cut_text(muc_context *ctx, const char *path, muc_bytes text, uint32_t context,
                           window_work *w, uint32_t **tokens)
{
    const muc_eval_options *options = w->options;
    size_t count;

    w->window = options->window            ? options->window
                : context < DEFAULT_WINDOW ? context
                                           : DEFAULT_WINDOW;
    w->stride = options->stride ? options->stride : w->window;
    MUC_TRY(check_window(ctx, w->model, context, w));
    if (options->save_logits && w->stride != w->window)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "files of logits have windows one after the other: --save-logits takes no "
                        "--stride but the window");
    w->first = w->stride == w->window ? w->window / 2 : w->window - 1 - w->stride;
    MUC_TRY(muc_tokenizer_encode(ctx, &w->model->tokenizer, (const char *)text.data, text.size,
                                 MUR_ENCODE_BOS, tokens, &count));
    w->tokens = *tokens;
    w->count = count < w->window ? 0 : (count - w->window) / w->stride + 1;
    if (w->count == 0)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "the text has %zu tokens, fewer than a window of %u", count, w->window);
    if (options->limit && options->limit < w->count)
        w->count = options->limit;
    return MUC_OK;
}

static muc_status evaluate(muc_context *ctx, window_work *w, const muc_engine_facts *engine,
                           const char *path, muc_bytes file, muc_arena *arena, muc_report **out)
{
    uint32_t *tokens = NULL;
    muc_eval_facts facts;
    muc_status status;

    muc_eval_describe(w->model, w->options, engine, &facts);
    status = w->options->kl ? read_logits(ctx, file, arena, w)
                            : cut_text(ctx, path, file, engine->context, w, &tokens);
    if (status == MUC_OK)
        status = check_window(ctx, w->model, engine->context, w);
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(ctx, arena, w->count, &w->sums);
    if (status == MUC_OK)
        status = measure(ctx, w);
    facts.items = "windows";
    facts.window = w->window;
    facts.stride = w->stride;
    facts.has_reference |= w->base != NULL;
    facts.text_crc32 = muc_crc32(0, file.data, file.size);
    if (status == MUC_OK)
        status = muc_eval_report(ctx, path, &facts, w->options, w->sums, w->count, out);
    if (status == MUC_OK && w->base) {
        add_divergence(*out, w);
        status = muc_report_status(ctx, *out);
    }
    free(tokens);
    return status;
}

static muc_status check_options(muc_context *ctx, const char *path, const muc_eval_options *options)
{
    bool files = options->save_logits || options->kl;

    if (options->kl && (options->save_logits || options->stride || options->window))
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "a file of logits has its text and windows: --kl takes no --window, "
                        "--stride and --save-logits");
    if (options->kl && options->reference)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "give --kl or --reference: each is what the model is compared with");
    if (files && options->shards)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "--save-logits and --kl are for one run: without --shard");
    return MUC_OK;
}

muc_status muc_eval_windows(muc_context *ctx, const muc_model *model, const char *path,
                            const muc_eval_options *options, muc_report **out)
{
    window_work w = { .model = model, .options = options };
    muc_engine_facts engine;
    muc_arena arena = { 0 };
    muc_status status;
    muc_file file;

    MUC_TRY(check_options(ctx, path, options));
    MUC_TRY(muc_engine_facts_of(ctx, model, &engine));
    MUC_TRY(muc_model_need_tokenizer(ctx, model));
    w.vocabulary = engine.vocabulary;
    w.row_steps = ROW_HEAD + ((size_t)engine.vocabulary + 1) / 2 * 2;
    if (options->save_logits)
        MUC_TRY(muc_output_precheck(ctx, options->save_logits));
    MUC_TRY(muc_file_open(ctx, path, &file));
    status = evaluate(ctx, &w, &engine, path, file.bytes, &arena, out);
    muc_arena_free(&arena);
    muc_file_close(&file);
    return status;
}
