/* choose_terms.c - programs with one term here and there run texts of the model. */
#include "targets/uthinker/choose_terms.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ref/ref.h"
#include "run/calibration.h"
#include "run/engine.h"
#include "run/logits.h"
#include "run/model_graph.h"
#include "targets/uthinker/clock/clock.h"
#include "targets/uthinker/run/open_program.h"
#include "targets/uthinker/terms_text.h"

/* TEXTS tokens in all, in texts of at most LONGEST: more than a step of attention */
enum { TEXTS = 512, LONGEST = 128, CALL = 64, FINEST = 8, PLACES = MUC_UTHINKER_PLACES_OF_TERMS };
static const double most_growth = 1.05, least_gain = 1.005;

/* Values and keys are what the DRAM moves with every token; then those with the most products. */
static const struct {
    const char *letter;
    size_t offset;
} order[PLACES] = {
#define PLACE(letter) \
    { \
#letter, offsetof(muc_uthinker_terms, letter) \
    }
    PLACE(v), PLACE(k), PLACE(h), PLACE(f), PLACE(x), PLACE(o), PLACE(p), PLACE(q), PLACE(l),
#undef PLACE
};

typedef struct chooser {
    muc_context *ctx;
    muc_arena *arena;
    const muc_model *model;
    muc_graph *graph;
    muc_uthinker_machine machine; /* of any size, with times */
    muc_uthinker_options options; /* with the choice's terms */
    muc_calibration texts;
    size_t tokens; /* of all */
    uint32_t vocabulary;
    float *expected; /* logits in float32, [tokens][vocabulary] */
    muc_terms_choice *choice;
    size_t capacity; /* of its trials */
    size_t last;     /* that was kept */
} chooser;

/* ---- texts and what float32 makes of them ---- */

/* The first TEXTS tokens of a file, or as many that the model writes. */
static muc_status find_texts(chooser *c, muc_graph *graph, const char *source)
{
    uint32_t longest = c->model->context < LONGEST ? c->model->context : LONGEST, count = 0;
    size_t total = 0;
    muc_calibration all;

    if (!source || strcmp(source, "auto") == 0)
        return muc_calibration_write(c->ctx, c->model, graph, TEXTS, longest, c->arena, &c->texts);
    MUC_TRY(muc_calibration_open(c->ctx, c->model, graph, source, c->arena, &all));
    while (count < all.count && total < TEXTS)
        total += all.lengths[count++];
    c->texts = (muc_calibration){ count, all.lengths, all.tokens };
    return MUC_OK;
}

/* Runs all texts; with `sum` it adds up divergences from what is expected, else it keeps that. */
static muc_status run_texts(chooser *c, muc_engine *engine, double *sum)
{
    size_t n = c->vocabulary, at = 0;

    for (uint32_t t = 0; t < c->texts.count; t++) {
        muc_engine_reset(engine);
        for (uint32_t pos = 0, count; pos < c->texts.lengths[t]; pos += count, at += count) {
            uint32_t tokens[CALL];
            const float *logits;

            count = c->texts.lengths[t] - pos;
            count = count < CALL ? count : CALL;
            for (uint32_t i = 0; i < count; i++)
                tokens[i] = (uint32_t)c->texts.tokens[at + i];
            MUC_TRY(muc_engine_feed(engine, tokens, count, true, &logits));
            if (!sum)
                memcpy(c->expected + at * n, logits, count * n * sizeof(*logits));
            for (uint32_t r = 0; sum && r < count; r++) {
                const float *p = c->expected + (at + r) * n, *q = logits + r * n;

                *sum +=
                    muc_logits_divergence(p, muc_logits_partition(p, c->vocabulary), q,
                                          muc_logits_partition(q, c->vocabulary), c->vocabulary);
            }
        }
    }
    return MUC_OK;
}

static muc_status run_float(chooser *c, const char *source)
{
    muc_graph *graph;
    muc_engine *engine;
    muc_status status;

    MUC_TRY(muc_model_graph(c->ctx, c->model, &graph));
    status = find_texts(c, graph, source);
    muc_graph_free(graph);
    MUC_TRY(status);
    for (uint32_t t = 0; t < c->texts.count; t++)
        c->tokens += c->texts.lengths[t];
    MUC_TRY(MUC_ARENA_NEW(c->ctx, c->arena, c->tokens * c->vocabulary, &c->expected));
    MUC_TRY(muc_engine_new(c->ctx, c->model, &engine));
    status = run_texts(c, engine, NULL);
    muc_engine_free(engine);
    return status;
}

/* ---- a trial ---- */

static double rate(uint32_t tokens, uint64_t ps)
{
    return (double)tokens / ((double)ps * 1e-12);
}

static muc_status time_program(chooser *c, const mur_program *program, muc_terms_trial *trial)
{
    uint32_t context = program->meta->context, rows = program->meta->rows;
    uint32_t middle = context / 2 < context - rows ? context / 2 : context - rows;
    muc_clock_sums last = { 0 }, prompt = { 0 };

    MUC_TRY(
        muc_clock_call(c->ctx, program, &c->machine, context - 1, 1, MUC_CLOCK_LIKELIEST, &last));
    MUC_TRY(muc_clock_call(c->ctx, program, &c->machine, middle, rows, MUC_CLOCK_NOTHING, &prompt));
    trial->dram_bytes = last.dram_bytes;
    trial->decode = rate(1, last.ps);
    trial->prefill = rate(rows, prompt.ps);
    return MUC_OK;
}

static muc_status run_program(chooser *c, const muc_uthinker_build *build, muc_terms_trial *trial)
{
    const muc_bytes bytes = { build->program.data, build->program.size, c->graph->name };
    muc_model program = { .path = c->graph->name, .tokens = c->model->tokens };
    muc_engine *engine;
    mur_program opened;
    muc_status status;

    MUC_TRY(muc_program_open(c->ctx, bytes, &opened));
    muc_model_set_program(&program, &opened);
    program.context = opened.meta->context;
    MUC_TRY(time_program(c, &opened, trial));
    MUC_TRY(muc_engine_new(c->ctx, &program, &engine));
    status = run_texts(c, engine, &trial->divergence);
    trial->divergence /= (double)c->tokens;
    muc_engine_free(engine);
    return status;
}

static muc_status measure(chooser *c, muc_terms_trial *trial)
{
    static const muc_uthinker_tokens no_tokens = { .bos = UINT32_MAX };
    muc_uthinker_build *build;
    muc_status status;

    MUC_TRY(muc_uthinker_compile(c->ctx, c->graph, &c->machine, &c->options, &no_tokens, &build));
    c->options.split = build->layout.options.split; /* chosen once */
    status = run_program(c, build, trial);
    muc_uthinker_build_free(build);
    return status;
}

static bool gains(const muc_terms_trial *trial, const muc_terms_trial *before)
{
    return trial->dram_bytes < before->dram_bytes || trial->prefill >= least_gain * before->prefill;
}

/* Tries what the options say; *gained: parts of it may gain something, too. */
static muc_status try_terms(chooser *c, const muc_terms_trial *what, bool *gained)
{
    muc_terms_choice *choice = c->choice;
    muc_terms_trial *trial;

    MUC_TRY(muc_arena_grow(c->ctx, c->arena, choice->count + 1, sizeof(*trial), &c->capacity,
                           (void **)&choice->trials));
    trial = &choice->trials[choice->count++];
    *trial = *what;
    MUC_TRY(measure(c, trial));
    *gained = gains(trial, &choice->trials[c->last]);
    trial->kept = !trial->place ||
                  (*gained && trial->divergence <= most_growth * choice->trials[0].divergence);
    if (trial->kept)
        c->last = choice->count - 1;
    return MUC_OK;
}

/* ---- the choice ---- */

static void set_terms(chooser *c, size_t offset, uint32_t first, uint32_t end, uint8_t terms)
{
    for (uint32_t l = first; l < end; l++)
        muc_uthinker_terms_at(&c->choice->terms[l])[offset] = terms;
}

/* a place of layers first .. end - 1; what is refused of all is tried of either half */
static muc_status try_layers(chooser *c, unsigned place, uint32_t first, uint32_t end)
{
    const muc_terms_trial what = { order[place].letter, first, end, false, 0, 0, 0, 0 };
    uint32_t middle = first + (end - first) / 2;
    bool gained;

    set_terms(c, order[place].offset, first, end, 1);
    MUC_TRY(try_terms(c, &what, &gained));
    if (c->choice->trials[c->choice->count - 1].kept)
        return MUC_OK;
    set_terms(c, order[place].offset, first, end, 2);
    if (!gained || order[place].letter[0] == 'l' || end - first < 2 ||
        (end - first) * FINEST <= c->choice->layers)
        return MUC_OK;
    MUC_TRY(try_layers(c, place, first, middle));
    return try_layers(c, place, middle, end);
}

static muc_status choose(chooser *c)
{
    const muc_terms_trial none = { 0 };
    bool gained;

    MUC_TRY(try_terms(c, &none, &gained));
    for (unsigned place = 0; place < PLACES; place++) {
        muc_progress(c->ctx, "terms", place, PLACES);
        MUC_TRY(try_layers(c, place, 0, c->choice->layers));
    }
    muc_progress(c->ctx, "terms", PLACES, PLACES);
    return MUC_OK;
}

muc_status muc_uthinker_choose_terms(muc_context *ctx, muc_arena *arena, const muc_model *model,
                                     const char *source, muc_graph *graph,
                                     const muc_uthinker_machine *machine,
                                     const muc_uthinker_options *base, muc_terms_choice *out)
{
    chooser c = { .ctx = ctx,
                  .arena = arena,
                  .model = model,
                  .graph = graph,
                  .options = *base,
                  .vocabulary = model->checkpoint.config.vocabulary,
                  .choice = out };

    *out = (muc_terms_choice){ .layers = muc_uthinker_count_layers(graph) };
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, out->layers, &out->terms));
    memset(out->terms, 2, out->layers * sizeof(*out->terms));
    c.options.layer_terms = out->terms;
    MUC_TRY(muc_uthinker_timed_machine(ctx, machine, &c.machine));
    c.machine.dram_bytes = c.machine.flash_bytes =
        0; /* what is chosen may fit where this does not */
    MUC_TRY(run_float(&c, source));
    return choose(&c);
}

/* ---- the report ---- */

muc_status muc_terms_choice_report(const muc_terms_choice *choice, muc_report *report)
{
    static const muc_report_column columns[] = {
        { "place", NULL, "with one term, besides those above it that were kept" },
        { "layers", NULL, NULL },
        { "divergence", NULL, "from float32, mean of a token" },
        { "dram_bytes", NULL, "for the token at the last position" },
        { "decode", "tokens/s", "there" },
        { "prefill", "tokens/s", "in the middle of the context" },
        { "kept", NULL, NULL },
        { NULL, NULL, NULL },
    };
    muc_text text = { 0 };

    muc_uthinker_write_terms(choice->terms, choice->layers, &text);
    muc_report_add_text(report, "act_terms", "%s", text.data ? text.data : "");
    muc_text_free(&text);
    muc_report_begin_columns(report, "terms", columns);
    for (size_t i = 0; i < choice->count; i++) {
        const muc_terms_trial *trial = &choice->trials[i];
        bool all = trial->first == 0 && trial->end == choice->layers;

        muc_report_begin_row(report);
        muc_report_add_text(report, "place", "%s", trial->place ? trial->place : "none");
        if (!trial->place || all)
            muc_report_add_text(report, "layers", "all");
        else if (trial->end == trial->first + 1)
            muc_report_add_text(report, "layers", "%u", trial->first);
        else
            muc_report_add_text(report, "layers", "%u-%u", trial->first, trial->end - 1);
        muc_report_add_real(report, "divergence", trial->divergence);
        muc_report_add_count(report, "dram_bytes", trial->dram_bytes);
        muc_report_add_real(report, "decode", trial->decode);
        muc_report_add_real(report, "prefill", trial->prefill);
        muc_report_add_text(report, "kept", "%s", trial->kept ? "yes" : "no");
        muc_report_end(report);
    }
    muc_report_end(report);
    return MUC_OK;
}
