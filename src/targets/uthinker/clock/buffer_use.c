/* buffer_use.c - lives of lines, and the rectangles that lines of one life make. */
#include "targets/uthinker/clock/buffer_use.h"

#include <stdlib.h>

#include "report/figures.h"
#include "targets/uthinker/clock/clock_work.h"

enum {
    LEAST_LINE = 64,
    MOST_LINES = 1 << 14,
    MOST_SHOWN = 200,
    MOST_POINTS = 400,
    NOBODY = UINT16_MAX
};

typedef struct life {
    uint32_t line, first, last;
    uint16_t stage; /* NOBODY before the line is written */
} life;

/* A visit to a stage. */
typedef struct visit {
    uint16_t stage;
    uint32_t layer;
    uint32_t shown;              /* number of those that the picture has, before it */
    uint64_t begin;              /* picoseconds */
    int32_t change[MUR_BUFFERS]; /* of lines that hold something, when it begins */
} visit;

struct muc_buffer_use {
    muc_context *ctx;
    muc_arena *arena;
    const muc_uthinker_machine *machine;
    const muc_clock_account *account;
    uint32_t line_bytes, first_line[MUR_BUFFERS + 1];
    life *open;  /* of every line */
    life *lives; /* that the picture shows something of */
    size_t count, capacity;
    visit *visits;
    size_t visit_count, visit_capacity;
    uint32_t shown;
    uint64_t end; /* of the last instruction, picoseconds */
    muc_status status;
};

muc_status muc_buffer_use_begin(muc_context *ctx, muc_arena *arena,
                                const muc_uthinker_machine *machine,
                                const muc_clock_account *account, muc_buffer_use **out)
{
    muc_buffer_use *use;
    uint64_t bytes = 0;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, 1, &use));
    *use = (muc_buffer_use){
        .ctx = ctx, .arena = arena, .machine = machine, .account = account, .line_bytes = LEAST_LINE
    };
    for (unsigned b = 0; b < MUR_BUFFERS; b++)
        bytes += machine->buffer_bytes[b];
    while (bytes / use->line_bytes > MOST_LINES)
        use->line_bytes *= 2;
    for (unsigned b = 0; b < MUR_BUFFERS; b++)
        use->first_line[b + 1] =
            use->first_line[b] + (machine->buffer_bytes[b] + use->line_bytes - 1) / use->line_bytes;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, use->first_line[MUR_BUFFERS], &use->open));
    for (uint32_t i = 0; i < use->first_line[MUR_BUFFERS]; i++)
        use->open[i] = (life){ .line = i, .stage = NOBODY };
    *out = use;
    return MUC_OK;
}

/* The picture has what is outside of layers, and the first one. */
static bool is_shown(const muc_buffer_use *use, const visit *v)
{
    return v->layer <= 1 && use->shown < MOST_SHOWN;
}

static void add_visit(muc_buffer_use *use, uint16_t stage, uint32_t layer, uint64_t begin)
{
    /* one more, for what ends with the last one */
    muc_status status =
        muc_arena_grow(use->ctx, use->arena, use->visit_count + 2, sizeof(*use->visits),
                       &use->visit_capacity, (void **)&use->visits);
    visit *v;

    if (status != MUC_OK) {
        use->status = status;
        return;
    }
    v = &use->visits[use->visit_count++];
    if (use->visit_count == 1)
        *v = (visit){ 0 };
    else if (begin < v[-1].begin) /* engines run ahead of each other */
        begin = v[-1].begin;
    v->stage = stage;
    v->layer = layer;
    v->begin = begin;
    use->shown += is_shown(use, v);
    v[1] = (visit){ .shown = use->shown };
}

/* The visit of an instruction of a stage. A stage that takes turns with the one before, as QK and
 * PV do, stays in the visit at hand. */
static uint32_t visit_of(muc_buffer_use *use, uint16_t stage, const muc_clock_event *event)
{
    uint32_t layer = muc_clock_layer(use->account, event->at);
    size_t count = use->visit_count;
    const visit *v = use->visits;
    bool goes_on = count > 0 && v[count - 1].layer == layer &&
                   (v[count - 1].stage == stage || (count > 1 && v[count - 2].stage == stage));

    if (!goes_on && use->status == MUC_OK)
        add_visit(use, stage, layer, event->begin);
    return use->visit_count ? (uint32_t)use->visit_count - 1 : 0;
}

static void close_life(muc_buffer_use *use, const life *line)
{
    uint32_t buffer = 0;

    if (line->stage == NOBODY || use->status != MUC_OK)
        return;
    while (use->first_line[buffer + 1] <= line->line)
        buffer++;
    use->visits[line->first].change[buffer]++;
    use->visits[line->last + 1].change[buffer]--;
    if (use->visits[line->first].shown == use->visits[line->last + 1].shown)
        return;
    use->status = muc_arena_grow(use->ctx, use->arena, use->count + 1, sizeof(*use->lives),
                                 &use->capacity, (void **)&use->lives);
    if (use->status == MUC_OK)
        use->lives[use->count++] = *line;
}

static void touch_line(muc_buffer_use *use, life *line, const muc_clock_access *access,
                       uint32_t step, uint16_t stage)
{
    bool anew = access->writes && !access->modifies && line->first != step;

    if (line->stage == NOBODY ? access->writes : anew) {
        close_life(use, line);
        *line = (life){ line->line, step, step, stage };
    }
    line->last = step;
}

static void touch(muc_buffer_use *use, const muc_clock_access *access, uint32_t step,
                  uint16_t stage)
{
    uint32_t first = use->first_line[access->buffer], end = use->first_line[access->buffer + 1];

    for (uint64_t row = 0; row < access->rows && access->size; row++) {
        uint64_t begin = access->begin + row * access->pitch;
        uint64_t from = first + begin / use->line_bytes;
        uint64_t to = first + (begin + access->size - 1) / use->line_bytes;

        for (uint64_t line = from; line <= to && line < end; line++)
            touch_line(use, &use->open[line], access, step, stage);
    }
}

void muc_buffer_use_add(muc_buffer_use *use, const muc_clock_event *event)
{
    uint16_t stage = use->account->stage_of[event->at];
    uint32_t step = visit_of(use, stage, event), count;
    muc_clock_access accesses[MUC_CLOCK_MOST_ACCESSES];

    use->end = event->end > use->end ? event->end : use->end;
    count = muc_clock_accesses_of(use->machine, event->words, accesses);
    for (uint32_t i = 0; i < count; i++) /* what is read is there before anything is written */
        if (!accesses[i].writes)
            touch(use, &accesses[i], step, stage);
    for (uint32_t i = 0; i < count; i++)
        if (accesses[i].writes)
            touch(use, &accesses[i], step, stage);
}

/* ---- the report ---- */

static int by_life(const void *a, const void *b)
{
    const life *x = a, *y = b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->last != y->last)
        return x->last < y->last ? -1 : 1;
    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static bool joins(const muc_buffer_use *use, const life *before, const life *next)
{
    if (next->line != before->line + 1 || next->first != before->first ||
        next->last != before->last || next->stage != before->stage)
        return false;
    for (unsigned b = 1; b < MUR_BUFFERS; b++)
        if (use->first_line[b] == next->line)
            return false;
    return true;
}

/* lines that lie side by side and live alike are one rectangle, as far as the picture goes */
static muc_status make_rectangles(muc_buffer_use *use, muc_memory_buffer **out, size_t *count)
{
    MUC_TRY(MUC_ARENA_NEW(use->ctx, use->arena, use->count, out));
    for (size_t i = 0; i < use->count; i++) {
        use->lives[i].first = use->visits[use->lives[i].first].shown;
        use->lives[i].last = use->visits[use->lives[i].last + 1].shown - 1;
    }
    qsort(use->lives, use->count, sizeof(*use->lives), by_life);
    for (size_t i = 0; i < use->count; i++) {
        const life *l = &use->lives[i];

        if (i && joins(use, l - 1, l))
            (*out)[*count - 1].bytes += use->line_bytes;
        else
            (*out)[(*count)++] = (muc_memory_buffer){
                .name = use->account->stages[l->stage],
                .address = (uint64_t)l->line * use->line_bytes,
                .bytes = use->line_bytes,
                .first = l->first,
                .last = l->last,
            };
    }
    return MUC_OK;
}

/* bytes of a buffer that hold something: the most of any visit, and their mean over the time */
static uint64_t measure(const muc_buffer_use *use, uint32_t buffer, double *mean)
{
    int64_t lines = 0, most = 0;
    double sum = 0;

    for (size_t i = 0; i < use->visit_count; i++) {
        uint64_t end = i + 1 < use->visit_count ? use->visits[i + 1].begin : use->end;

        lines += use->visits[i].change[buffer];
        most = lines > most ? lines : most;
        if (end > use->visits[i].begin)
            sum += (double)lines * (double)(end - use->visits[i].begin);
    }
    *mean = use->end ? sum * use->line_bytes / (double)use->end : 0;
    return (uint64_t)most * use->line_bytes;
}

static void add_table(const muc_buffer_use *use, muc_report *report)
{
    static const muc_report_column columns[] = {
        { "buffer", NULL, NULL },
        { "bytes", "bytes", "that it has" },
        { "most", "bytes", "that hold something at once" },
        { "most_share", NULL, "of the buffer" },
        { "mean_share", NULL, "the same, over the call's time" },
        { NULL, NULL, NULL },
    };

    muc_report_begin_columns(report, "buffers", columns);
    for (unsigned b = 0; b < MUR_BUFFERS; b++) {
        uint64_t has = use->machine->buffer_bytes[b];
        double mean;
        uint64_t most = measure(use, b, &mean);

        muc_report_begin_row(report);
        muc_report_add_text(report, "buffer", "%s", muc_uthinker_buffer_name((enum mur_buffer)b));
        muc_report_add_count(report, "bytes", has);
        muc_report_add_count(report, "most", most);
        muc_report_add_real(report, "most_share", (double)most / (double)has);
        muc_report_add_real(report, "mean_share", mean / (double)has);
        muc_report_end(report);
    }
    muc_report_end(report);
}

/* A buffer's share that is in use over the call, the most of each of MOST_POINTS pieces of time. */
static size_t trace_share(const muc_buffer_use *use, uint32_t buffer, double *x, double *y)
{
    int64_t lines = 0, most = 0;
    double has = use->machine->buffer_bytes[buffer];
    size_t count = 0, next = 0;

    for (; count < MOST_POINTS && use->end; count++) {
        double end = (double)use->end * (double)(count + 1) / MOST_POINTS;

        for (most = lines; next < use->visit_count && (double)use->visits[next].begin < end;
             next++) {
            lines += use->visits[next].change[buffer];
            most = lines > most ? lines : most;
        }
        x[count] = end * 1e-9;
        y[count] = 100.0 * (double)most * use->line_bytes / has;
    }
    return count;
}

static muc_status draw_shares(muc_buffer_use *use, muc_report *report)
{
    muc_plot_line lines[MUR_BUFFERS];
    const muc_plot_figure figure = {
        "buffers of all layers over time", "milliseconds", "% in use", lines, MUR_BUFFERS, false
    };
    double *numbers;

    MUC_TRY(MUC_ARENA_NEW(use->ctx, use->arena, 2 * MUR_BUFFERS * MOST_POINTS, &numbers));
    for (uint32_t b = 0; b < MUR_BUFFERS; b++) {
        double *x = numbers + (size_t)2 * b * MOST_POINTS, *y = x + MOST_POINTS;

        lines[b] = (muc_plot_line){ muc_uthinker_buffer_name((enum mur_buffer)b), x, y,
                                    trace_share(use, b, x, y), NULL };
    }
    muc_report_add_plot(report, &figure);
    return MUC_OK;
}

/* the most lines of all buffers that the picture has at once */
static uint64_t peak_of(const muc_buffer_use *use)
{
    int64_t lines = 0, most = 0;

    for (size_t i = 0; i < use->visit_count; i++) {
        for (uint32_t b = 0; b < MUR_BUFFERS; b++)
            lines += use->visits[i].change[b];
        if (use->visits[i + 1].shown > use->visits[i].shown && lines > most)
            most = lines;
    }
    return (uint64_t)most * use->line_bytes;
}

static muc_status draw(muc_buffer_use *use, muc_report *report)
{
    const char *names[MOST_SHOWN];
    muc_memory_part parts[MUR_BUFFERS];
    muc_memory_figure figure = { .title = "buffers over time: the first layer and around all",
                                 .steps = names,
                                 .step_count = use->shown,
                                 .parts = parts,
                                 .part_count = MUR_BUFFERS };
    muc_memory_buffer *rectangles;

    MUC_TRY(make_rectangles(use, &rectangles, &figure.buffer_count));
    figure.buffers = rectangles;
    for (size_t i = 0; i < use->visit_count; i++)
        if (use->visits[i + 1].shown > use->visits[i].shown)
            names[use->visits[i].shown] = use->account->stages[use->visits[i].stage];
    for (unsigned b = 0; b < MUR_BUFFERS; b++)
        parts[b] = (muc_memory_part){ muc_uthinker_buffer_name((enum mur_buffer)b),
                                      (uint64_t)use->first_line[b] * use->line_bytes };
    figure.limit = (uint64_t)use->first_line[MUR_BUFFERS] * use->line_bytes;
    figure.peak = peak_of(use);
    muc_report_add_memory(report, &figure);
    return MUC_OK;
}

muc_status muc_buffer_use_report(muc_buffer_use *use, muc_report *report)
{
    for (uint32_t i = 0; i < use->first_line[MUR_BUFFERS]; i++)
        close_life(use, &use->open[i]);
    MUC_TRY(use->status);
    add_table(use, report);
    MUC_TRY(draw_shares(use, report));
    return draw(use, report);
}
