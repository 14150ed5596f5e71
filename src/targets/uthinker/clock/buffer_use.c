/* buffer_use.c - lives of lines, and the rectangles that lines of one life make. */
#include "targets/uthinker/clock/buffer_use.h"

#include <stdlib.h>

#include "report/figures.h"
#include "targets/uthinker/clock/clock_work.h"

enum { LEAST_LINE = 64, MOST_LINES = 1 << 14, MOST_STEPS = 200, NOBODY = UINT16_MAX };

typedef struct life {
    uint32_t line;
    uint16_t first, last, stage; /* stage: NOBODY before the line is written */
} life;

struct muc_buffer_use {
    muc_context *ctx;
    muc_arena *arena;
    const muc_uthinker_machine *machine;
    const muc_clock_account *account;
    uint32_t line_bytes, first_line[MUR_BUFFERS + 1];
    life *open; /* of every line */
    life *lives;
    size_t count, capacity;
    uint16_t stages[MOST_STEPS]; /* of every step */
    uint32_t steps;
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

/* The step of an instruction of a stage. A stage that takes turns with the one before, as QK and PV
 * do, stays in the step at hand. */
static uint16_t step_of(muc_buffer_use *use, uint16_t stage)
{
    uint32_t last = use->steps;

    if (last == 0 || (use->stages[last - 1] != stage &&
                      (last == 1 || use->stages[last - 2] != stage) && last < MOST_STEPS))
        use->stages[use->steps++] = stage;
    return (uint16_t)(use->steps - 1);
}

static void close_life(muc_buffer_use *use, const life *line)
{
    if (line->stage == NOBODY || use->status != MUC_OK)
        return;
    use->status = muc_arena_grow(use->ctx, use->arena, use->count + 1, sizeof(*use->lives),
                                 &use->capacity, (void **)&use->lives);
    if (use->status == MUC_OK)
        use->lives[use->count++] = *line;
}

static void touch_line(muc_buffer_use *use, life *line, const muc_clock_access *access,
                       uint16_t step, uint16_t stage)
{
    bool anew = access->writes && !access->modifies && line->first != step;

    if (line->stage == NOBODY ? access->writes : anew) {
        close_life(use, line);
        *line = (life){ line->line, step, step, stage };
    }
    line->last = step;
}

static void touch(muc_buffer_use *use, const muc_clock_access *access, uint16_t step,
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
    uint16_t stage = use->account->stage_of[event->at], step;
    muc_clock_access accesses[MUC_CLOCK_MOST_ACCESSES];
    uint32_t count;

    if (muc_clock_layer(use->account, event->at) > 1)
        return;
    step = step_of(use, stage);
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

/* lines that lie side by side and live alike are one rectangle */
static muc_status make_rectangles(muc_buffer_use *use, muc_memory_buffer **out, size_t *count)
{
    MUC_TRY(MUC_ARENA_NEW(use->ctx, use->arena, use->count, out));
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

/* bytes of lines first..end that hold something: of the step that has most, and over all steps */
static uint64_t measure(const muc_buffer_use *use, uint32_t first, uint32_t end, double *mean)
{
    int64_t change[MOST_STEPS + 1] = { 0 }, lines = 0, most = 0, sum = 0;

    for (size_t i = 0; i < use->count; i++)
        if (use->lives[i].line >= first && use->lives[i].line < end) {
            change[use->lives[i].first]++;
            change[use->lives[i].last + 1]--;
        }
    for (uint32_t step = 0; step < use->steps; step++) {
        lines += change[step];
        sum += lines;
        most = lines > most ? lines : most;
    }
    *mean = use->steps ? (double)sum * use->line_bytes / use->steps : 0;
    return (uint64_t)most * use->line_bytes;
}

static void add_table(const muc_buffer_use *use, muc_report *report)
{
    static const muc_report_column columns[] = {
        { "buffer", NULL, NULL },
        { "bytes", "bytes", "that it has" },
        { "most", "bytes", "that hold something at once, in the first layer and around all" },
        { "most_share", NULL, "of the buffer" },
        { "mean_share", NULL, "the same, over all steps" },
        { NULL, NULL, NULL },
    };

    muc_report_begin_columns(report, "buffers", columns);
    for (unsigned b = 0; b < MUR_BUFFERS; b++) {
        uint64_t has = use->machine->buffer_bytes[b];
        double mean;
        uint64_t most = measure(use, use->first_line[b], use->first_line[b + 1], &mean);

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

static muc_status draw(muc_buffer_use *use, muc_report *report)
{
    const char *names[MOST_STEPS];
    muc_memory_part parts[MUR_BUFFERS];
    muc_memory_figure figure = { .title = "buffers over time",
                                 .steps = names,
                                 .step_count = use->steps,
                                 .parts = parts,
                                 .part_count = MUR_BUFFERS };
    muc_memory_buffer *rectangles;
    double mean;

    MUC_TRY(make_rectangles(use, &rectangles, &figure.buffer_count));
    figure.buffers = rectangles;
    for (uint32_t i = 0; i < use->steps; i++)
        names[i] = use->account->stages[use->stages[i]];
    for (unsigned b = 0; b < MUR_BUFFERS; b++)
        parts[b] = (muc_memory_part){ muc_uthinker_buffer_name((enum mur_buffer)b),
                                      (uint64_t)use->first_line[b] * use->line_bytes };
    figure.limit = (uint64_t)use->first_line[MUR_BUFFERS] * use->line_bytes;
    figure.peak = measure(use, 0, use->first_line[MUR_BUFFERS], &mean);
    muc_report_add_memory(report, &figure);
    return MUC_OK;
}

muc_status muc_buffer_use_report(muc_buffer_use *use, muc_report *report)
{
    for (uint32_t i = 0; i < use->first_line[MUR_BUFFERS]; i++)
        close_life(use, &use->open[i]);
    MUC_TRY(use->status);
    add_table(use, report);
    return draw(use, report);
}
