/* sweep_report.c - reports the table of points, and Pareto fronts: points that no other point beats
 * in all. */
#include "driver/sweep/sweep_report.h"

#include <stdlib.h>
#include <string.h>

#include "report/answers.h"
#include "report/figures.h"

enum { MOST_LABELS = 24, MOST_SHOWN = 40 };

/* what is wanted: much of the first, little of the others */
typedef enum goal { SPEED, ENERGY, BUFFERS, PERPLEXITY, GOALS } goal;

static const struct {
    const char *key, *words, *question;
} goals[GOALS] = {
    [SPEED] = { "tokens_per_second", "tokens/s", "What is fastest?" },
    [ENERGY] = { "millijoules_per_token", "mJ a token", "What takes least energy?" },
    [BUFFERS] = { "buffer_bytes", "bytes of buffers", "What has the smallest buffers?" },
    [PERPLEXITY] = { "perplexity", "perplexity", "What is most accurate?" },
};

/* a point that was measured; values are costs: the speed is negative */
typedef struct candidate {
    double cost[GOALS];
    uint32_t point;
    bool on_front;
} candidate;

typedef struct sweep_points {
    const muc_sweep_work *work;
    muc_report *report;
    candidate *candidates;
    size_t count;
    bool has[GOALS]; /* a candidate that has it */
} sweep_points;

/* ---- fronts ---- */

static int by_cost(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    for (unsigned g = 0; g < GOALS; g++)
        if (x->cost[g] < y->cost[g] || x->cost[g] > y->cost[g])
            return x->cost[g] < y->cost[g] ? -1 : 1;
    return x->point < y->point ? -1 : x->point > y->point;
}

/* a is no worse in any of the goals and better in one */
static bool beats(const candidate *a, const candidate *b, unsigned wanted)
{
    bool better = false;

    for (unsigned g = 0; g < GOALS; g++) {
        if (!(wanted >> g & 1))
            continue;
        if (a->cost[g] > b->cost[g])
            return false;
        better = better || a->cost[g] < b->cost[g];
    }
    return better;
}

/* Candidates are sorted, so that none is beaten by a later one: those of the front so far, whose
 * indices are kept, are all that can beat the next. */
static size_t find_front(const sweep_points *p, unsigned wanted, size_t *front)
{
    size_t size = 0;

    for (size_t i = 0; i < p->count; i++) {
        size_t k = 0;

        while (k < size && !beats(&p->candidates[front[k]], &p->candidates[i], wanted))
            k++;
        if (k == size)
            front[size++] = i;
    }
    return size;
}

static void gather(sweep_points *p)
{
    for (uint32_t point = 0; point < p->work->file->points; point++) {
        const json_t *row = p->work->rows[point];
        candidate *c = &p->candidates[p->count];

        if (!json_is_number(json_object_get(row, goals[SPEED].key)))
            continue;
        *c = (candidate){ .point = point };
        for (unsigned g = 0; g < GOALS; g++) {
            const json_t *value = json_object_get(row, goals[g].key);

            p->has[g] = p->has[g] || value;
            c->cost[g] = json_number_value(value) * (g == SPEED ? -1 : 1);
        }
        p->count++;
    }
    qsort(p->candidates, p->count, sizeof(*p->candidates), by_cost);
}

/* ---- tables ---- */

static void add_row(const sweep_points *p, uint32_t point, bool on_front)
{
    const char *key;
    json_t *value;

    muc_report_begin_row(p->report);
    json_object_foreach(p->work->rows[point], key, value)
    {
        muc_report_add_json(p->report, key, value);
    }
    muc_report_add_text(p->report, "pareto", "%s", on_front ? "yes" : "");
    muc_report_end(p->report);
}

static void begin_table(const sweep_points *p, const char *key)
{
    static const muc_report_column results[] = {
        { "seconds", "s", "of the call and the choice of the next token" },
        { "tokens_per_second", NULL, NULL },
        { "first_token_seconds", "s", "of a prompt that ends with the call" },
        { "millijoules_per_token", NULL, NULL },
        { "buffer_bytes", "bytes", "of the machine's buffers" },
        { "program_bytes", "bytes", "of the file" },
        { "perplexity", NULL, "of the sweep's text" },
        { "binding_roof", NULL, "that is nearest to the time" },
        { "binding_share", NULL, "of the time that it needs" },
        { "array_share", NULL, NULL },
        { "dram_share", NULL, NULL },
        { "cpu_share", NULL, NULL },
        { "pareto", NULL, "no other point beats it in speed, energy, buffers and perplexity" },
        { "refused", NULL, "why there is no program" },
    };
    const muc_sweep_file *file = p->work->file;
    muc_report_column columns[MUC_SWEEP_MOST_AXES + MUC_COUNT(results) + 1];
    size_t count = 0;

    for (uint32_t i = 0; i < file->axis_count; i++)
        if (file->axes[i].section || file->axes[i].id < MUC_SWEEP_text)
            columns[count++] = (muc_report_column){ .key = file->axes[i].key };
    for (size_t i = 0; i < MUC_COUNT(results); i++)
        columns[count++] = results[i];
    columns[count] = (muc_report_column){ .key = NULL };
    muc_report_begin_columns(p->report, key, columns);
}

static void add_tables(const sweep_points *p, const bool *on_front)
{
    uint32_t points = p->work->file->points;

    begin_table(p, "points");
    for (uint32_t point = 0; point < points; point++)
        if (p->work->rows[point])
            add_row(p, point, on_front[point]);
    muc_report_end(p->report);
    if (points > MOST_SHOWN)
        muc_report_mark_detail(p->report, "points");
    begin_table(p, "front");
    for (uint32_t point = 0; point < points; point++)
        if (on_front[point])
            add_row(p, point, true);
    muc_report_end(p->report);
}

/* ---- pictures ---- */

/* the values of the lists that have several, with the lists' keys or without */
static muc_status make_label(const sweep_points *p, uint32_t point, bool has_keys, const char **out)
{
    const muc_sweep_file *file = p->work->file;
    muc_text text = { 0 };
    muc_status status;

    for (uint32_t i = 0; i < file->axis_count; i++) {
        const char *value = muc_sweep_axis_value(file, i, point);
        const char *name = strrchr(value, '/');

        if (file->axes[i].count > 1)
            muc_text_add(&text, "%s%s%s%s",
                         !text.size ? ""
                         : has_keys ? ", "
                                    : " ",
                         has_keys ? file->axes[i].key : "", has_keys ? " " : "",
                         name && name[1] ? name + 1 : value);
    }
    muc_text_add(&text, "%s", "");
    status = muc_text_status(p->work->ctx, &text);
    if (status == MUC_OK)
        status = muc_arena_string(p->work->ctx, p->work->arena, text.data, text.size, out);
    muc_text_free(&text);
    return status;
}

/* speed over one of the costs: all points, and the front of these two */
static muc_status draw_goal(const sweep_points *p, goal g, size_t *front)
{
    muc_context *ctx = p->work->ctx;
    muc_arena *arena = p->work->arena;
    size_t size = find_front(p, 1u << SPEED | 1u << g, front);
    muc_plot_line lines[2] = { { .name = "Pareto front", .count = size },
                               { .name = "points", .count = p->count } };
    muc_plot_figure figure = {
        .x_name = goals[g].words, .y_name = goals[SPEED].words, .lines = lines, .line_count = 2
    };
    double *x, *y, *front_x, *front_y;
    const char **labels;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, p->count, &x));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, p->count, &y));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, size, &front_x));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, size, &front_y));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, p->count, &labels));
    for (size_t i = 0; i < p->count; i++) {
        x[i] = p->candidates[i].cost[g];
        y[i] = -p->candidates[i].cost[SPEED];
        labels[i] = "";
    }
    for (size_t i = 0; i < size; i++) { /* sorted by falling speed: from the right to the left */
        front_x[size - 1 - i] = x[front[i]];
        front_y[size - 1 - i] = y[front[i]];
        if (i < MOST_LABELS)
            MUC_TRY(make_label(p, p->candidates[front[i]].point, false, &labels[front[i]]));
    }
    lines[0].x = front_x;
    lines[0].y = front_y;
    lines[1].x = x;
    lines[1].y = y;
    lines[1].labels = labels;
    MUC_TRY(muc_arena_format(ctx, arena, &figure.title, "%s over %s", goals[SPEED].words,
                             goals[g].words));
    muc_report_add_plot(p->report, &figure);
    return MUC_OK;
}

/* ---- answers ---- */

static muc_status answer_goal(const sweep_points *p, goal g)
{
    muc_context *ctx = p->work->ctx;
    muc_arena *arena = p->work->arena;
    const candidate *best = &p->candidates[0];
    const char *answer, *label;

    for (size_t i = 1; i < p->count; i++)
        if (p->candidates[i].cost[g] < best->cost[g])
            best = &p->candidates[i];
    MUC_TRY(muc_arena_format(ctx, arena, &answer, "%.7g %s", best->cost[g] * (g == SPEED ? -1 : 1),
                             goals[g].words));
    MUC_TRY(make_label(p, best->point, true, &label));
    muc_report_answer(p->report, goals[g].question, answer, label);
    return MUC_OK;
}

/* the best point of each goal, by the values of its lists */
static muc_status add_answers(const sweep_points *p, uint32_t there, uint32_t refused)
{
    const char *answer;

    muc_report_begin_answers(p->report);
    MUC_TRY(muc_arena_format(p->work->ctx, p->work->arena, &answer, "%u of %u combinations",
                             there - refused, there));
    muc_report_answer(p->report, MUC_QUESTION_FIT, answer,
                      refused ? "The table says of each of the others why not." : "");
    for (unsigned g = SPEED; g < GOALS; g++)
        if (p->count && p->has[g])
            MUC_TRY(answer_goal(p, (goal)g));
    muc_report_end(p->report);
    return MUC_OK;
}

muc_status muc_sweep_report(const muc_sweep_work *work, muc_report *report)
{
    uint32_t points = work->file->points, there = 0, refused = 0;
    sweep_points p = { .work = work, .report = report };
    size_t *front, size;
    bool *on_front;

    MUC_TRY(MUC_ARENA_NEW(work->ctx, work->arena, points, &p.candidates));
    MUC_TRY(MUC_ARENA_NEW(work->ctx, work->arena, points, &front));
    MUC_TRY(MUC_ARENA_NEW(work->ctx, work->arena, points, &on_front));
    gather(&p);
    size = find_front(&p, (1u << GOALS) - 1, front);
    for (size_t i = 0; i < size; i++)
        on_front[p.candidates[front[i]].point] = true;
    for (uint32_t i = 0; i < points; i++) {
        there += work->rows[i] != NULL;
        refused += json_object_get(work->rows[i], "refused") != NULL;
    }
    muc_report_add_text(report, "name", "%s", work->file->name);
    muc_report_add_count(report, "combinations", points);
    muc_report_add_count(report, "missing", points - there);
    muc_report_add_count(report, "refused", refused);
    muc_report_add_count(report, "on_front", size);
    add_tables(&p, on_front);
    MUC_TRY(add_answers(&p, there, refused));
    for (unsigned g = ENERGY; g < GOALS; g++)
        if (p.has[g])
            MUC_TRY(draw_goal(&p, (goal)g, front));
    return muc_report_status(work->ctx, report);
}
