/* draw_program.c - a second run of the clock, drawn: how long it takes was known before. */
#include "targets/uthinker/run/draw_program.h"

#include <stdio.h>

#include "report/figures.h"
#include "targets/uthinker/clock/buffer_use.h"
#include "targets/uthinker/clock/clock_work.h"

enum { LANES = MUC_CLOCK_PARTS, MOST_POINTS = 96, CALL = 0, LAYER = 1, TIMELINES };

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

typedef struct roof_points {
    double x[MOST_POINTS], y[MOST_POINTS]; /* MACs a byte, MACs a second */
    const char *labels[MOST_POINTS];
    size_t count;
} roof_points;

static void add_point(roof_points *points, const char *label, uint64_t macs, uint64_t bytes,
                      uint64_t ps)
{
    if (macs == 0 || bytes == 0 || ps == 0 || points->count == MOST_POINTS)
        return;
    points->x[points->count] = (double)macs / (double)bytes;
    points->y[points->count] = (double)macs / ((double)ps * 1e-12);
    points->labels[points->count++] = label;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* from half the least to twice the most that any point has, with the ridge between them */
static size_t make_roof(const muc_uthinker_machine *machine, const roof_points *points, double x[3],
                        double y[3])
{
    const muc_uthinker_time *time = &machine->costs.time;
    double peak = 1e3 * machine->tile_k * machine->tile_n * time->acc_khz;
    double bytes = 1e6 * time->dram_mbs, least = peak / bytes, most = least;

    for (size_t i = 0; i < points->count; i++) {
        least = smaller(least, points->x[i]);
        most = -smaller(-most, -points->x[i]);
    }
    x[0] = least / 2;
    x[1] = peak / bytes;
    x[2] = most * 2;
    for (unsigned i = 0; i < 3; i++)
        y[i] = smaller(peak, bytes * x[i]);
    return 3;
}

static void draw_roofline(drawing *d)
{
    const muc_clock_account *account = d->call->account;
    const muc_clock_sums *sums = d->call->sums;
    roof_points stages = { .count = 0 }, whole = { .count = 0 };
    double x[3], y[3];

    for (uint32_t i = 0; i < account->stage_count; i++) {
        const muc_clock_cell cell = muc_clock_stage_sum(account, i);

        add_point(&stages, account->stages[i], cell.macs, cell.dram_bytes, cell.ps);
    }
    add_point(&whole, "the whole call", sums->macs, sums->dram_bytes, sums->ps);
    {
        const muc_plot_line lines[] = {
            { "roofs: DRAM, then array", x, y, make_roof(d->call->machine, &stages, x, y), NULL },
            { "stages", stages.x, stages.y, stages.count, stages.labels },
            { "the whole call", whole.x, whole.y, whole.count, whole.labels },
        };
        const muc_plot_figure figure = { "roofline",       "MACs for each byte of DRAM",
                                         "MACs/s",         lines,
                                         MUC_COUNT(lines), true };

        muc_report_add_plot(d->report, &figure);
    }
}

muc_status muc_program_draw(muc_context *ctx, muc_arena *arena, const muc_advised_call *call,
                            muc_report *report)
{
    drawing d = { .ctx = ctx, .arena = arena, .call = call, .report = report };

    draw_roofline(&d);
    MUC_TRY(draw_timelines(&d));
    return muc_buffer_use_report(d.buffers, report);
}
