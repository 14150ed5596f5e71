/* verify_language.c - a language model's C compared with its checkpoint, token by token: logits bit
 * for bit with the reference in the code's arithmetic, and how far both are from float32. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "targets/mcu/compile/compile_decoder.h"
#include "run/engine.h"
#include "targets/mcu/run/engine_code.h"
#include "targets/target.h"
#include "run/logits.h"
#include "ref/ref.h"
#include "report/report_builder.h"
#include "text/tokenizer.h"

enum { MOST_POSITIONS = 32 }; /* without a prompt */

typedef struct trial {
    muc_context *ctx;
    const muc_model *code, *checkpoint;
    muc_graph *graphs[2]; /* the code's arithmetic, float32 */
    muc_ref *refs[2];
    muc_engine *engine;
    uint32_t *tokens; /* of a prompt, malloc'ed, or NULL */
    size_t count;
    uint32_t agreed, wrong_positions, first_position, first_logit;
    double kl;
    muc_report *report;
} trial;

static muc_status choose_tokens(trial *t, const char *prompt)
{
    t->count = MOST_POSITIONS;
    if (prompt)
        MUC_TRY(muc_tokenizer_encode(t->ctx, &t->code->tokenizer, prompt, strlen(prompt),
                                     MUR_ENCODE_BOS | MUR_ENCODE_SPECIAL, &t->tokens, &t->count));
    if (!prompt && t->count > t->code->context)
        t->count = t->code->context;
    if (t->count == 0 || t->count > t->code->context)
        return muc_fail(t->ctx, MUC_USAGE, t->code->path, MUC_NO_OFFSET,
                        "%zu tokens to run, expected 1 to %u; give others with --prompt", t->count,
                        t->code->context);
    return MUC_OK;
}

static muc_status open_all(trial *t)
{
    muc_engine_facts facts;

    MUC_TRY(muc_engine_facts_of(t->ctx, t->code, &facts));
    if (facts.vocabulary != t->checkpoint->checkpoint.config.vocabulary ||
        t->code->context > t->checkpoint->checkpoint.config.context)
        return muc_fail(t->ctx, MUC_MISMATCH, t->code->path, MUC_NO_OFFSET,
                        "the code was made of a model of another shape than %s",
                        t->checkpoint->path);
    for (unsigned i = 0; i < 2; i++) {
        MUC_TRY(muc_decoder_graph(t->ctx, t->checkpoint, t->code->context,
                                  i == 1 ? NULL : &muc_model_code_of(t->code)->levels,
                                  &t->graphs[i]));
        MUC_TRY(muc_ref_open(t->ctx, t->graphs[i], &t->refs[i]));
    }
    return muc_engine_new(t->ctx, t->code, &t->engine);
}

static const float *logits_of(const muc_ref *ref)
{
    size_t rows, columns;

    return muc_ref_read(ref, "head", &rows, &columns);
}

/* logits that are not the same bits */
static uint32_t count_wrong(trial *t, uint32_t position, const float *found, const float *exact)
{
    uint32_t wrong = 0;

    for (uint32_t i = 0; i < t->engine->facts.vocabulary; i++) {
        if (muc_f32_bits(found[i]) == muc_f32_bits(exact[i]))
            continue;
        if (wrong++ == 0 && t->wrong_positions++ == 0) {
            t->first_position = position;
            t->first_logit = i;
        }
    }
    return wrong;
}

static void compare(trial *t, uint32_t position, uint32_t token, const float *found)
{
    const float *exact = logits_of(t->refs[0]), *real = logits_of(t->refs[1]);
    uint32_t n = t->engine->facts.vocabulary, wrong = count_wrong(t, position, found, exact);
    double kl = muc_logits_divergence(real, muc_logits_partition(real, n), found,
                                      muc_logits_partition(found, n), n);
    bool agrees = muc_logits_arg_max(real, n) == muc_logits_arg_max(found, n);
    double error = 0;

    for (uint32_t i = 0; i < n; i++)
        error = fmax(error, fabs((double)found[i] - (double)real[i]));
    t->kl += kl;
    t->agreed += agrees;
    muc_report_begin_row(t->report);
    muc_report_add_count(t->report, "position", position);
    muc_report_add_count(t->report, "token", token);
    muc_report_add_count(t->report, "wrong", wrong);
    muc_report_add_real(t->report, "error", error);
    muc_report_add_real(t->report, "kl", kl);
    muc_report_add_bool(t->report, "top1", agrees);
    muc_report_end(t->report);
}

/* without a prompt the text that the code makes of nothing, greedily */
static muc_status run(trial *t)
{
    uint32_t n = t->engine->facts.vocabulary, begin = t->code->tokens.begin;
    uint32_t token = begin < n ? begin : 0;
    const float *logits;

    muc_report_begin_table(t->report, "tokens");
    for (uint32_t i = 0; i < t->count; i++) {
        int32_t signed_token;

        muc_progress(t->ctx, "comparing", i, t->count);
        token = t->tokens ? t->tokens[i] : token;
        signed_token = (int32_t)token;
        MUC_TRY(muc_ref_run_tokens(t->refs[0], i, &signed_token, 1));
        MUC_TRY(muc_ref_run_tokens(t->refs[1], i, &signed_token, 1));
        MUC_TRY(muc_engine_feed(t->engine, &token, 1, false, &logits));
        compare(t, i, token, logits);
        token = muc_logits_arg_max(logits, n);
    }
    muc_progress(t->ctx, "comparing", t->count, t->count);
    muc_report_end(t->report);
    return MUC_OK;
}

static muc_status verify(trial *t, const char *prompt, muc_report **out)
{
    MUC_TRY(choose_tokens(t, prompt));
    MUC_TRY(open_all(t));
    MUC_TRY(muc_report_new(t->ctx, out));
    t->report = *out;
    MUC_TRY(run(t));
    muc_report_add_bool(*out, "exact", t->wrong_positions == 0);
    muc_report_add_count(*out, "positions", t->count);
    muc_report_add_real(*out, "kl", t->kl / (double)t->count);
    muc_report_add_real(*out, "top1_agreement", (double)t->agreed / (double)t->count);
    MUC_TRY(muc_report_status(t->ctx, *out));
    if (t->wrong_positions == 0)
        return MUC_OK;
    muc_report_add_text(*out, "first_divergence", "position %u, logit %u", t->first_position,
                        t->first_logit);
    return muc_fail(t->ctx, MUC_MISMATCH, t->code->path, MUC_NO_OFFSET,
                    "the code and the reference differ at position %u, logit %u", t->first_position,
                    t->first_logit);
}

muc_status muc_verify_language_mcu(muc_context *ctx, const muc_model *made,
                                   const muc_model *checkpoint, const char *prompt,
                                   muc_report **out)
{
    trial t = { .ctx = ctx, .checkpoint = checkpoint, .code = made };
    muc_status status = verify(&t, prompt, out);

    muc_engine_free(t.engine);
    for (unsigned i = 0; i < 2; i++) {
        muc_ref_close(t.refs[i]);
        muc_graph_free(t.graphs[i]);
    }
    free(t.tokens);
    return status;
}
