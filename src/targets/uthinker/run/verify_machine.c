/* verify_machine.c - a program on a machine of someone's own beside the simulator, stage by stage.
 *
 * The simulator runs each call first and its stages' values are recorded; then the machine runs it,
 * watched through its HAL as a board is in its self test, and what it comes to is compared word by
 * word.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/text.h"
#include "mur_embed.h"
#include "mur_lm.h"
#include "report/report_builder.h"
#include "targets/uthinker/run/engine_machine.h"
#include "targets/uthinker/run/open_program.h"

static const uint64_t default_patience = 100000000;

static const char *const stages[MUR_STAGES] = {
#define MUR_STAGE(name, words, node) words,
#include "mur_stages.def"
};

/* Whether the machine still works, and for whom. */
typedef struct tested_machine {
    const muc_machine *machine;
    const mur_program *program;
    uint8_t *io;
    uint32_t issued[MUR_CPU], latest[MUR_CPU]; /* latest: what it said last that it completed */
    uint64_t questions;                        /* since that changed */
    const char *stopped;                       /* why; NULL: it works */
} tested_machine;

typedef struct stage_sums {
    uint64_t values, wrong;
    double error; /* largest difference from the simulator */
} stage_sums;

typedef struct comparison {
    muc_context *ctx;
    const muc_model *model;
    const mur_program *program;
    uint32_t *tokens;
    size_t count;
    muc_engine *engine; /* the simulator, */
    mur_stages seen;    /* what it has come to in the call at hand, */
    muc_text expected;  /* and its values there, binary32 one after the other */
    size_t at;          /* bytes of them that were compared */
    tested_machine tested;
    mur_hal hal; /* of the machine */
    uint8_t *memory;
    mur_lm lm;
    mur_stage_watch watch;
    uint32_t position; /* of the call */
    stage_sums sums[MUR_STAGES];
    bool differs;
    struct {
        size_t position, column;
        uint32_t layer;
        enum mur_stage stage;
        char words[256];
    } first;
} comparison;

/* ---- the machine as the runtime's HAL ---- */

static mur_status offer(tested_machine *t, enum mur_engine engine, const uint32_t *words)
{
    muc_machine_answer (*take)(void *, const uint32_t *) =
        engine == MUR_DMA ? t->machine->dma : t->machine->accelerator;
    muc_machine_answer answer;

    if (t->stopped)
        return MUR_E_FAULT;
    answer = take(t->machine->arg, words);
    if (answer == MUC_MACHINE_FAULT)
        t->stopped = "it reports a fault";
    else if (answer == MUC_MACHINE_BUSY && ++t->questions > t->machine->patience)
        t->stopped = "its queue stays full";
    else if (answer == MUC_MACHINE_BUSY)
        return MUR_YIELD;
    if (t->stopped)
        return MUR_E_FAULT;
    t->issued[engine]++;
    return MUR_OK;
}

static mur_status put_dma(void *arg, const uint32_t *words)
{
    return offer(arg, MUR_DMA, words);
}

static mur_status put_accelerator(void *arg, const uint32_t *words)
{
    return offer(arg, MUR_ACC, words);
}

static mur_status put_host(void *arg, const uint32_t *words)
{
    tested_machine *t = arg;

    return mur_embed(t->program, t->io, words);
}

/* A machine that has stopped has completed everything, so that nobody waits for it. */
static uint32_t ask(void *arg, enum mur_engine engine)
{
    tested_machine *t = arg;
    uint32_t said;

    if (t->stopped)
        return t->issued[engine];
    said = t->machine->completed(t->machine->arg,
                                 engine == MUR_DMA ? MUC_MACHINE_DMA : MUC_MACHINE_ACCELERATOR);
    if (said != t->latest[engine]) {
        t->latest[engine] = said;
        t->questions = 0;
    } else if (said != t->issued[engine] && ++t->questions > t->machine->patience) {
        t->stopped = "it completes nothing more";
        return t->issued[engine];
    }
    return said;
}

/* ---- the simulator's side ---- */

static void record(void *arg, mur_sim *sim, enum mur_engine engine, const uint32_t *words)
{
    comparison *c = arg;
    mur_stage_values found[MUR_STAGE_MOST];
    uint32_t count = mur_stages_add(&c->seen, words, found);

    (void)engine;
    if (count > 0)
        mur_sim_do_kept(sim);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t r = 0; r < found[i].rows; r++)
            muc_text_add_bytes(&c->expected,
                               sim->memory.gb + found[i].address + (size_t)r * found[i].pitch,
                               found[i].columns * sizeof(float));
}

/* ---- comparing ---- */

static void tell_first(comparison *c, const mur_stage_values *values, size_t column, float found,
                       float expected)
{
    c->differs = true;
    c->first.position = c->position + values->row;
    c->first.layer = values->layer;
    c->first.stage = values->stage;
    c->first.column = values->column + column;
    snprintf(c->first.words, sizeof(c->first.words),
             "position %zu, layer %u, %s, column %zu: found %08x (%g), expected %08x (%g)",
             c->first.position, c->first.layer, stages[c->first.stage], c->first.column,
             muc_f32_bits(found), (double)found, muc_f32_bits(expected), (double)expected);
}

static void compare(comparison *c, const mur_stage_values *values, const float *found,
                    const float *expected, size_t count)
{
    stage_sums *sums = &c->sums[values->stage];

    for (size_t i = 0; i < count; i++) {
        double error = (double)found[i] - (double)expected[i];

        sums->values++;
        error = error < 0 ? -error : error;
        sums->error = error > sums->error ? error : sums->error;
        if (muc_f32_bits(found[i]) == muc_f32_bits(expected[i]))
            continue;
        sums->wrong++;
        if (!c->differs)
            tell_first(c, values, i, found[i], expected[i]);
    }
}

/* Both see the same instructions, hence the same stages in the same order. */
static void see(void *arg, const mur_stage_values *values, const uint32_t *words, uint32_t count)
{
    comparison *c = arg;

    if (c->tested.stopped)
        return;
    compare(c, values, (const float *)(const void *)words,
            (const float *)(const void *)(c->expected.data + c->at), count);
    c->at += count * sizeof(float);
}

/* ---- running ---- */

/* what the machine works on, in one piece */
static muc_status give_memory(comparison *c)
{
    const mur_mach *mach = c->program->mach;
    const uint32_t *bytes = c->program->region_bytes;
    size_t kv = ((size_t)bytes[MUR_KV] + 15) / 16 * 16;
    muc_machine_memory memory = {
        .isa = mach->isa,
        .buffer_bytes = { mach->i0, mach->i1, mach->w0, mach->w1, mach->gb },
        .wgts = c->program->section[MUR_SECTION_WGTS],
        .parm = c->program->section[MUR_SECTION_PARM],
        .wgts_bytes = bytes[MUR_WGTS],
        .parm_bytes = bytes[MUR_PARM],
        .kv_bytes = bytes[MUR_KV],
        .io_bytes = bytes[MUR_IO],
    };

    MUC_TRY(muc_new_array(c->ctx, "verify", kv + bytes[MUR_IO], 1, (void **)&c->memory));
    memory.kv = c->memory;
    memory.io = c->tested.io = c->memory + kv;
    if (c->tested.machine->start(c->tested.machine->arg, &memory))
        return MUC_OK;
    return muc_fail(c->ctx, MUC_UNSUPPORTED, c->model->path, MUC_NO_OFFSET,
                    "the machine under test does not run this program");
}

static muc_status set_up(comparison *c)
{
    MUC_TRY(muc_engine_new(c->ctx, c->model, &c->engine));
    muc_engine_watch(c->engine, record, c);
    c->seen.meta = c->program->meta;
    MUC_TRY(give_memory(c));
    for (unsigned i = 0; i < MUR_CPU; i++)
        c->tested.issued[i] = c->tested.latest[i] = c->tested.machine->completed(
            c->tested.machine->arg, i == MUR_DMA ? MUC_MACHINE_DMA : MUC_MACHINE_ACCELERATOR);
    c->hal = (mur_hal){ &c->tested, put_dma, put_accelerator, put_host, ask, NULL, NULL };
    mur_stage_watch_begin(&c->watch, c->program->meta, &c->hal, c->tested.io, see, c);
    if (mur_lm_open(&c->lm, c->program, &c->watch.hal, c->tested.io) != MUR_OK)
        return muc_fail(c->ctx, MUC_UNSUPPORTED, c->model->path, MUC_NO_OFFSET,
                        "the program has no entry that decodes a token");
    return MUC_OK;
}

static void run_machine(comparison *c, const uint32_t *tokens, uint32_t count)
{
    mur_status status = mur_lm_feed(&c->lm, tokens, count);

    if (status == MUR_OK) {
        do
            status = mur_lm_run(&c->lm);
        while (status == MUR_YIELD);
    }
    if (status != MUR_OK && !c->tested.stopped)
        c->tested.stopped = "EMBED reports a fault";
}

static muc_status run_call(comparison *c, size_t at, uint32_t count)
{
    const mur_stage_values logits = { MUR_STAGE_LOGITS, 0, count - 1, 0, 0, 0, 1, 0 };
    const float *expected;

    c->position = (uint32_t)at;
    c->expected.size = c->at = 0;
    MUC_TRY(muc_engine_feed(c->engine, c->tokens + at, count, false, &expected));
    MUC_TRY(muc_text_status(c->ctx, &c->expected));
    run_machine(c, c->tokens + at, count);
    if (!c->tested.stopped)
        compare(c, &logits, mur_lm_logits(&c->lm), expected, c->program->meta->vocabulary);
    else if (!c->differs)
        snprintf(c->first.words, sizeof(c->first.words),
                 "the machine has stopped in the call of %u tokens from position %zu: %s", count,
                 at, c->tested.stopped);
    return MUC_OK;
}

static muc_status run_all(comparison *c)
{
    size_t at = 0;

    while (at < c->count && !c->tested.stopped) {
        uint32_t count = muc_program_call_tokens(c->model, at, c->count);

        muc_progress(c->ctx, "positions", at, c->count);
        MUC_TRY(run_call(c, at, count));
        at += count;
    }
    muc_progress(c->ctx, "positions", c->count, c->count);
    return MUC_OK;
}

static muc_status report_comparison(const comparison *c, muc_report **out)
{
    muc_report *report;

    MUC_TRY(muc_report_new(c->ctx, out));
    report = *out;
    muc_report_add_bool(report, "exact", !c->first.words[0]);
    muc_report_add_count(report, "positions", c->count);
    if (c->first.words[0])
        muc_report_add_text(report, "first_divergence", "%s", c->first.words);
    if (c->differs) {
        muc_report_add_count(report, "position", c->first.position);
        muc_report_add_count(report, "layer", c->first.layer);
        muc_report_add_text(report, "stage", "%s", stages[c->first.stage]);
        muc_report_add_count(report, "column", c->first.column);
    }
    muc_report_begin_table(report, "stages");
    for (unsigned i = 0; i < MUR_STAGES; i++) {
        muc_report_begin_row(report);
        muc_report_add_text(report, "stage", "%s", stages[i]);
        muc_report_add_count(report, "values", c->sums[i].values);
        muc_report_add_count(report, "wrong", c->sums[i].wrong);
        muc_report_add_real(report, "error", c->sums[i].error);
        muc_report_end(report);
    }
    muc_report_end(report);
    return muc_report_status(c->ctx, report);
}

static muc_status compare_all(comparison *c, const char *prompt, muc_report **out)
{
    MUC_TRY(muc_program_tokens(c->ctx, c->model, prompt, &c->tokens, &c->count));
    MUC_TRY(set_up(c));
    MUC_TRY(run_all(c));
    MUC_TRY(report_comparison(c, out));
    if (!c->first.words[0])
        return MUC_OK;
    return muc_fail(c->ctx, MUC_MISMATCH, c->model->path, MUC_NO_OFFSET,
                    "the machine under test and the simulator differ: %s", c->first.words);
}

muc_status muc_verify_machine_uthinker(muc_context *ctx, const muc_model *program,
                                       const muc_machine *machine, const char *prompt,
                                       muc_report **out)
{
    muc_machine patient = *machine;
    comparison c = { .ctx = ctx,
                     .model = program,
                     .program = muc_model_program(program),
                     .tested = { .machine = &patient, .program = muc_model_program(program) } };
    muc_status status;

    if (patient.patience == 0)
        patient.patience = default_patience;
    status = compare_all(&c, prompt, out);
    muc_engine_free(c.engine);
    free(c.tokens);
    muc_text_free(&c.expected);
    free(c.memory);
    return status;
}
