/* engine_machine.c - a program, run by the device's interpreter on the simulated machine. */
#include <stdlib.h>
#include <string.h>

#include "targets/uthinker/run/engine_machine.h"
#include "mur_lm.h"
#include "targets/uthinker/run/open_program.h"
#include "targets/uthinker/run/score_rows.h"
#include "targets/uthinker/sim/fast_product.h"

/* What a watched engine packs: it runs a few tokens, beside other things that take memory. Where a
 * call takes as many, weights are read too few times to be worth it. */
enum { WATCHED_BYTES = 100 << 20, WATCHED_ROWS = 8 };

typedef struct machine_state {
    uint8_t *memory; /* buffers, KV and IO one after the other */
    uint8_t *kv;     /* in it */
    mur_sim sim;
    muc_fast_product *product;
    mur_hal hal;
    mur_lm lm;
    float *rows; /* logits after each token of a feed */
    muc_score score;
} machine_state;

static void facts(const muc_model *model, muc_engine_facts *out)
{
    *out = (muc_engine_facts){
        .arithmetic = "uthinker",
        .vocabulary = muc_model_program(model)->meta->vocabulary,
        .context = model->context,
    };
}

/* Carves `bytes` from *at; the regions that programs write begin with zeros. */
static uint8_t *carve(uint8_t **at, uint32_t bytes)
{
    uint8_t *start = *at;

    *at += ((size_t)bytes + 63) / 64 * 64;
    return start;
}

static muc_status set_up(muc_engine *engine, machine_state *state)
{
    const mur_program *program = muc_model_program(engine->model);
    const mur_mach *mach = program->mach;
    const uint32_t buffers[MUR_BUFFERS] = { mach->i0, mach->i1, mach->w0, mach->w1, mach->gb };
    mur_sim_memory memory = {
        .isa = mach->isa,
        .wgts = program->section[MUR_SECTION_WGTS],
        .parm = program->section[MUR_SECTION_PARM],
    };
    size_t bytes = 64;
    uint8_t *at;

    for (unsigned b = 0; b < MUR_BUFFERS; b++)
        bytes += (size_t)buffers[b] + 64;
    bytes += (size_t)program->meta->kv_bytes + program->meta->io_bytes + 128;
    MUC_TRY(muc_new_array(engine->ctx, "simulator", bytes, 1, (void **)&state->memory));
    at = state->memory;
    for (unsigned b = 0; b < MUR_BUFFERS; b++) {
        memory.buffer_bytes[b] = buffers[b];
        if (b == MUR_GB)
            memory.gb = (float *)(void *)carve(&at, buffers[b]);
        else
            memory.buffer[b] = carve(&at, buffers[b]);
    }
    memory.kv = state->kv = carve(&at, program->meta->kv_bytes);
    memory.io = carve(&at, program->meta->io_bytes);
    memcpy(memory.region_bytes, program->region_bytes, sizeof(memory.region_bytes));
    mur_sim_init(&state->sim, &memory, MUR_SIM_EAGER, 0);
    MUC_TRY(muc_fast_product_open(engine->ctx, &state->product));
    muc_fast_product_keep(engine->ctx, state->product, &state->sim);
    muc_fast_product_pack(state->product, SIZE_MAX);
    state->hal = mur_sim_hal(&state->sim);
    if (mur_lm_open(&state->lm, program, &state->hal, memory.io) != MUR_OK)
        return muc_fail(engine->ctx, MUC_UNSUPPORTED, engine->model->path, MUC_NO_OFFSET,
                        "the program has no entry that decodes a token");
    return MUC_OK;
}

static muc_status open_machine(muc_engine *engine)
{
    machine_state *state;

    MUC_TRY(MUC_NEW_ARRAY(engine->ctx, "simulator", 1, &state));
    engine->state = state;
    MUC_TRY(set_up(engine, state));
    MUC_TRY(muc_score_open(engine->ctx, &state->score, muc_model_program(engine->model)->meta,
                           &state->sim, &state->hal));
    return muc_new_array(engine->ctx, "simulator",
                         (size_t)MUC_ENGINE_MOST_TOKENS * engine->facts.vocabulary, sizeof(float),
                         (void **)&state->rows);
}

/* Feeds tokens in calls as large as the program takes. */
static muc_status feed_machine(muc_engine *engine, const uint32_t *tokens, uint32_t count)
{
    machine_state *state = engine->state;
    mur_status status = mur_lm_feed(&state->lm, tokens, count);

    if (status == MUR_OK) {
        do
            status = mur_lm_run(&state->lm);
        while (status == MUR_YIELD);
    }
    mur_sim_settle(&state->sim);
    if (status == MUR_OK && !state->sim.fault.reason)
        return MUC_OK;
    return muc_fail(engine->ctx, MUC_BUG, engine->model->path, MUC_NO_OFFSET,
                    "the machine stopped at position %u: %s", state->lm.pos,
                    state->sim.fault.reason ? state->sim.fault.reason : "refused the tokens");
}

static void seek(muc_engine *engine, uint32_t position)
{
    machine_state *state = engine->state;

    mur_lm_reset(&state->lm);
    state->lm.pos = position;
}

static muc_status feed(muc_engine *engine, const uint32_t *tokens, uint32_t count, bool all,
                       const float **logits)
{
    machine_state *state = engine->state;
    size_t row = engine->facts.vocabulary;
    muc_status status;
    uint32_t start;

    if (!all) {
        *logits = mur_lm_logits(&state->lm);
        return feed_machine(engine, tokens, count);
    }
    *logits = state->rows;
    start = state->lm.pos;
    muc_score_begin(&state->score, count, state->rows);
    state->lm.hal = &state->score.hal;
    state->lm.all_logits = 1;
    status = feed_machine(engine, tokens, count);
    state->lm.all_logits = 0;
    state->lm.hal = &state->hal;
    if (status != MUC_OK || !state->score.unlike)
        return status;
    /* token by token gives the same bits, and the logits after each */
    seek(engine, start);
    for (uint32_t i = 0; i < count; i++) {
        MUC_TRY(feed_machine(engine, tokens + i, 1));
        memcpy(state->rows + i * row, mur_lm_logits(&state->lm), row * sizeof(float));
    }
    return MUC_OK;
}

static void reset(muc_engine *engine)
{
    machine_state *state = engine->state;

    mur_lm_reset(&state->lm);
}

static void close_machine(muc_engine *engine)
{
    machine_state *state = engine->state;

    if (!state)
        return;
    muc_score_close(&state->score);
    free(state->rows);
    free(state->memory);
    muc_fast_product_close(state->product);
    free(state);
}

void muc_engine_watch(muc_engine *engine,
                      void (*watch)(void *arg, mur_sim *sim, enum mur_engine engine,
                                    const uint32_t *words),
                      void *arg)
{
    const mur_meta *meta = muc_model_program(engine->model)->meta;
    machine_state *state = engine->state;

    muc_fast_product_pack(state->product, meta->rows < WATCHED_ROWS ? WATCHED_BYTES : 0);
    state->sim.probe = watch;
    state->sim.probe_arg = arg;
}

static bool memory(muc_engine *engine, size_t i, void **data, size_t *bytes)
{
    const machine_state *state = engine->state;

    *data = state->kv;
    *bytes = muc_model_program(engine->model)->meta->kv_bytes;
    return i == 0;
}

const muc_engine_kind muc_engine_machine = {
    .facts = facts,
    .open = open_machine,
    .feed = feed,
    .reset = reset,
    .close = close_machine,
    .memory = memory,
    .seek = seek,
    .clock = muc_clock_program,
    .verify_machine = muc_verify_machine_uthinker,
};
