/* draw_program.c - a second run of the clock, drawn: how long it takes was known before. */
#include "targets/uthinker/run/draw_program.h"

#include <stdio.h>

#include "report/figures.h"
#include "targets/uthinker/clock/buffer_use.h"
#include "targets/uthinker/clock/clock_work.h"

enum { LANES = MUC_CLOCK_PARTS, CALL = 0, LAYER = 1, TIMELINES };

typedef struct drawing {
    muc_context *ctx;
    muc_arena *arena;
    const muc_advised_call *call;
    muc_report *report;
    muc_clock_account account; /* of the run that is drawn */
    muc_clock_watch inner;     /* the account's */
    muc_timeline *timelines[TIMELINES];
    muc_buffer_use *buffers;
    uint64_t from, to; /* what the CPU executes for one stage, not drawn yet */
    uint32_t stage;
} drawing;

/* ---- timelines ---- */

static void add_bar(drawing *d, muc_clock_part part, uint32_t stage, uint64_t from, uint64_t to,
                    const char *name)
{
    for (unsigned i = 0; i < TIMELINES; i++)
        if (d->timelines[i])
            muc_timeline_add(d->timelines[i], part, stage, from, to, name);
}

static void draw_cpu(drawing *d)
{
    add_bar(d, MUC_PART_CPU, d->stage, d->from, d->to, NULL);
    d->from = d->to;
}

/* items of one stage, one after the other, are one bar */
static void watch_cpu(void *arg, uint64_t from, uint64_t to, muc_clock_reason reason, uint32_t at)
{
    drawing *d = arg;
    uint32_t stage =
        reason == MUC_CLOCK_CHOICE ? d->account.stage_count - 1 : d->account.stage_of[at];

    d->inner.cpu(d->inner.arg, from, to, reason, at);
    if (muc_clock_reason_waits(reason))
        return;
    if (from != d->to || stage != d->stage) {
        draw_cpu(d);
        d->from = from;
        d->stage = stage;
    }
    d->to = to;
}

static void watch_instruction(void *arg, const muc_clock_event *event)
{
    drawing *d = arg;
    uint32_t stage = d->account.stage_of[event->at];
    char name[96];

    d->inner.instruction(d->inner.arg, event);
    if (event->part == MUC_PART_DMA)
        snprintf(name, sizeof(name), "%s: %s, %llu bytes", d->account.stages[stage],
                 muc_insn_get(event->work->op)->name, (unsigned long long)event->work->bytes);
    else
        snprintf(name, sizeof(name), "%s: %s", d->account.stages[stage],
                 muc_insn_get(event->work->op)->name);
    add_bar(d, event->part, stage, event->begin, event->end, name);
    muc_buffer_use_add(d->buffers, event);
}

static muc_status run(drawing *d)
{
    const muc_advised_call *call = d->call;
    const muc_clock_watch watch = { d, watch_cpu, watch_instruction };
    muc_clock_sums sums = { 0 };

    MUC_TRY(muc_clock_account_begin(d->ctx, d->arena, call->program, call->machine, &d->account));
    d->inner = muc_clock_account_watch(&d->account);
    MUC_TRY(muc_buffer_use_begin(d->ctx, d->arena, call->machine, &d->account, &d->buffers));
    MUC_TRY(muc_clock_watched(d->ctx, call->program, call->machine, call->position, call->tokens,
                              MUC_CLOCK_LIKELIEST, &watch, &sums));
    draw_cpu(d);
    return MUC_OK;
}

static muc_status draw_timelines(drawing *d)
{
    static const char *const lanes[LANES] = { "DMA", "array", "vector unit", "CPU" };
    const muc_clock_account *account = d->call->account;
    const uint64_t *layer = account->first_layer;
    const muc_timeline_figure figures[TIMELINES] = {
        { .title = "timeline of the call",
          .note = "Colours are stages; where a row is empty, the engine waits.",
          .to = d->call->sums->ps },
        { .title = "timeline of the first layer",
          .note = "The same, closer. The engines work for it while the CPU passes through it, and "
                  "for what it has issued before.",
          .from = layer[0],
          .to = layer[1] },
    };
    muc_timeline_figure shown[TIMELINES];
    muc_status status = MUC_OK;

    for (unsigned i = 0; i < TIMELINES && status == MUC_OK; i++) {
        shown[i] = figures[i];
        shown[i].lanes = lanes;
        shown[i].lane_count = LANES;
        shown[i].kinds = account->stages;
        shown[i].kind_count = account->stage_count;
        shown[i].tick = 1e-6;
        if (shown[i].to > shown[i].from)
            status = muc_timeline_begin(d->ctx, &shown[i], &d->timelines[i]);
    }
    if (status == MUC_OK)
        status = run(d);
    for (unsigned i = 0; i < TIMELINES; i++)
        if (d->timelines[i])
            muc_timeline_finish(d->timelines[i], status == MUC_OK ? d->report : NULL);
    return status;
}

/* ---- roofline ---- */

/* The time that passes at the CPU, or that an engine works for the stage while the CPU is at
 * another, whichever is longer: nothing is faster than its roof. */
static double stage_ps(const muc_clock_cell *cell)
{
    uint64_t longest = cell->ps;

    for (unsigned part = 0; part < MUC_CLOCK_PARTS; part++)
        longest = cell->work_ps[part] > longest ? cell->work_ps[part] : longest;
    return (double)longest;
}

static muc_status draw_roofline(drawing *d)
{
    const muc_clock_account *account = d->call->account;
    const muc_uthinker_machine *machine = d->call->machine;
    const muc_clock_sums *sums = d->call->sums;
    muc_roofline_figure figure = {
        .x_name = "MACs for each byte of DRAM",
        .y_name = "MACs/s",
        .roof_name = "roofs: DRAM, then array",
        .layer_name = "stages",
        .whole = { "the whole call", (double)sums->macs, (double)sums->dram_bytes,
                   (double)sums->ps * 1e-12 },
        .count = account->stage_count,
        .peak_macs = 1e3 * machine->tile_k * machine->tile_n * machine->costs.time.acc_khz,
        .peak_bytes = 1e6 * machine->costs.time.dram_mbs,
    };
    muc_roof_point *stages;

    MUC_TRY(MUC_ARENA_NEW(d->ctx, d->arena, account->stage_count + (size_t)1, &stages));
    for (uint32_t i = 0; i < account->stage_count; i++) {
        const muc_clock_cell cell = muc_clock_stage_sum(account, i);

        stages[i] = (muc_roof_point){ account->stages[i], (double)cell.macs,
                                      (double)cell.dram_bytes, stage_ps(&cell) * 1e-12 };
    }
    figure.layers = stages;
    muc_report_add_roofline(d->report, &figure);
    return MUC_OK;
}

muc_status muc_program_draw(muc_context *ctx, muc_arena *arena, const muc_advised_call *call,
                            muc_report *report)
{
    drawing d = { .ctx = ctx, .arena = arena, .call = call, .report = report };

    MUC_TRY(draw_roofline(&d));
    MUC_TRY(draw_timelines(&d));
    return muc_buffer_use_report(d.buffers, report);
}
