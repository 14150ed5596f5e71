/* choose_terms.c - the golden model runs texts of the model with one term here and there. */
#include "targets/uthinker/choose_terms.h"

#include <stdlib.h>
#include <string.h>

#include "ref/golden/uthinker_golden.h"
#include "run/calibration.h"
#include "run/logits.h"
#include "run/model_graph.h"

/* TEXTS tokens in all, in texts of at most LONGEST: more than a step of attention */
enum { TEXTS = 512, LONGEST = 128, CALL = 64 };
static const double most_growth = 1.05;

/* Values and keys are what the DRAM moves with every token; then those with the most products. */
static const struct {
    const char *letter;
    size_t offset;
} order[MUC_UTHINKER_PLACES_OF_TERMS] = {
#define PLACE(letter) \
    { \
#letter, offsetof(muc_uthinker_terms, letter) \
    }
    PLACE(v), PLACE(k), PLACE(h), PLACE(f), PLACE(x), PLACE(o), PLACE(p), PLACE(q), PLACE(l),
#undef PLACE
};

typedef struct chooser {
    muc_context *ctx;
    muc_arena arena;
    muc_graph *graph, *real_graph;
    uint32_t step;
    muc_calibration texts;
    uint32_t vocabulary;
    float *expected; /* logits in float32, [tokens][vocabulary] */
} chooser;

/* Gives rows of logits of one call, the first of them that of token `at` of all texts. */
typedef void take_logits(chooser *c, size_t at, const float *logits, size_t rows, double *sum);

/* Runs all texts; sum: what take adds to, may be NULL. */
static muc_status run_texts(chooser *c, muc_ref *ref, take_logits *take, double *sum)
{
    size_t at = 0, rows, columns;

    for (uint32_t t = 0; t < c->texts.count; t++) {
        muc_ref_reset(ref);
        for (uint32_t pos = 0; pos < c->texts.lengths[t];) {
            uint32_t left = c->texts.lengths[t] - pos, count = left < CALL ? left : CALL;
            const float *logits;

            MUC_TRY(muc_ref_run_tokens(ref, pos, c->texts.tokens + at, count));
            logits = muc_ref_read(ref, "head", &rows, &columns);
            if (!logits || rows != count || columns != c->vocabulary)
                return muc_fail(c->ctx, MUC_BUG, "terms", MUC_NO_OFFSET, "the graph has no head");
            take(c, at, logits, rows, sum);
            pos += count;
            at += count;
        }
    }
    if (sum)
        *sum /= (double)at;
    return MUC_OK;
}

static void keep(chooser *c, size_t at, const float *logits, size_t rows, double *sum)
{
    (void)sum;
    memcpy(c->expected + at * c->vocabulary, logits, rows * c->vocabulary * sizeof(*logits));
}

static void compare(chooser *c, size_t at, const float *logits, size_t rows, double *sum)
{
    uint32_t n = c->vocabulary;

    for (size_t r = 0; r < rows; r++) {
        const float *p = c->expected + (at + r) * n, *q = logits + r * n;

        *sum +=
            muc_logits_divergence(p, muc_logits_partition(p, n), q, muc_logits_partition(q, n), n);
    }
}

static muc_status measure(chooser *c, const muc_uthinker_terms *terms, double *divergence)
{
    const muc_ref_terms golden = {
#define TERM(letter, meaning) .letter = terms->letter,
        MUC_UTHINKER_TERMS(TERM)
#undef TERM
            .step = (uint8_t)c->step,
    };
    muc_status status;
    muc_ref *ref;

    *divergence = 0;
    MUC_TRY(muc_ref_open_machine(c->ctx, c->graph, &golden, &ref));
    status = run_texts(c, ref, compare, divergence);
    muc_ref_close(ref);
    return status;
}

/* The first TEXTS tokens of a file, or as many that the model writes. */
static muc_status find_texts(chooser *c, const muc_model *model, const char *source)
{
    uint32_t longest = model->context < LONGEST ? model->context : LONGEST, total = 0, count = 0;
    muc_calibration all;

    if (!source || strcmp(source, "auto") == 0)
        return muc_calibration_write(c->ctx, model, c->real_graph, TEXTS, longest, &c->arena,
                                     &c->texts);
    MUC_TRY(muc_calibration_open(c->ctx, model, c->real_graph, source, &c->arena, &all));
    while (count < all.count && total < TEXTS)
        total += all.lengths[count++];
    c->texts = (muc_calibration){ count, all.lengths, all.tokens };
    return MUC_OK;
}

static muc_status run_float(chooser *c, const muc_model *model, const char *source)
{
    size_t total = 0;
    muc_status status;
    muc_ref *ref;

    c->vocabulary = model->checkpoint.config.vocabulary;
    MUC_TRY(muc_model_graph(c->ctx, model, &c->real_graph));
    MUC_TRY(find_texts(c, model, source));
    for (uint32_t t = 0; t < c->texts.count; t++)
        total += c->texts.lengths[t];
    MUC_TRY(MUC_ARENA_NEW(c->ctx, &c->arena, total * c->vocabulary, &c->expected));
    MUC_TRY(muc_ref_open(c->ctx, c->real_graph, &ref));
    status = run_texts(c, ref, keep, NULL);
    muc_ref_close(ref);
    return status;
}

static muc_status choose(chooser *c, muc_terms_choice *out)
{
    uint8_t *terms = (uint8_t *)&out->terms;

    MUC_TRY(measure(c, &out->terms, &out->divergence));
    for (unsigned i = 0; i < MUC_UTHINKER_PLACES_OF_TERMS; i++) {
        muc_terms_trial *trial = &out->trials[i];

        muc_progress(c->ctx, "terms", i, MUC_UTHINKER_PLACES_OF_TERMS);
        trial->place = order[i].letter;
        terms[order[i].offset] = 1;
        MUC_TRY(measure(c, &out->terms, &trial->divergence));
        trial->chosen = trial->divergence <= most_growth * out->divergence;
        if (!trial->chosen)
            terms[order[i].offset] = 2;
    }
    muc_progress(c->ctx, "terms", MUC_UTHINKER_PLACES_OF_TERMS, MUC_UTHINKER_PLACES_OF_TERMS);
    return MUC_OK;
}

muc_status muc_uthinker_choose_terms(muc_context *ctx, const muc_model *model, const char *source,
                                     muc_graph *graph, uint32_t tokens, muc_terms_choice *out)
{
    chooser c = { .ctx = ctx, .graph = graph, .step = tokens };
    muc_status status;

    memset(&out->terms, 2, sizeof(out->terms));
    status = run_float(&c, model, source);
    if (status == MUC_OK)
        status = choose(&c, out);
    muc_graph_free(c.real_graph);
    muc_arena_free(&c.arena);
    return status;
}
