/* train_log.c - writes rows of steps to CSV, reads them back, and thins them out for reports. */
#include "driver/train/train_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/figures.h"

enum { STRETCHES = 20 };

static const char heading[] = "step,tokens,loss,rate,norm,seconds,held_out_loss\n";

muc_status muc_train_log_add(muc_context *ctx, muc_train_log *log, const muc_train_row *row)
{
    if (log->count == log->capacity) {
        size_t capacity = log->capacity ? 2 * log->capacity : 256;
        muc_train_row *rows = realloc(log->rows, capacity * sizeof(*rows));

        if (!rows)
            return muc_fail_nomem(ctx, "train", capacity * sizeof(*rows));
        log->rows = rows;
        log->capacity = capacity;
    }
    log->rows[log->count++] = *row;
    return MUC_OK;
}

void muc_train_log_free(muc_train_log *log)
{
    free(log->rows);
    *log = (muc_train_log){ 0 };
}

void muc_train_log_as_csv(const muc_train_log *log, muc_text *out)
{
    muc_text_add(out, "%s", heading);
    for (size_t i = 0; i < log->count; i++) {
        const muc_train_row *r = &log->rows[i];

        muc_text_add(out, "%llu,%llu,%.9g,%.9g,%.9g,%.3f,", (unsigned long long)r->step,
                     (unsigned long long)r->tokens, r->loss, r->rate, r->norm, r->seconds);
        if (r->held_out >= 0)
            muc_text_add(out, "%.9g", r->held_out);
        muc_text_add(out, "\n");
    }
}

/* false: no row */
static bool read_row(const char *line, muc_train_row *row)
{
    unsigned long long step, tokens;
    int used = 0;
    char *end;

    if (sscanf(line, "%llu,%llu,%lf,%lf,%lf,%lf,%n", &step, &tokens, &row->loss, &row->rate,
               &row->norm, &row->seconds, &used) != 6 ||
        used == 0)
        return false;
    row->step = step;
    row->tokens = tokens;
    row->held_out = -1;
    if (line[used] == '\0')
        return true;
    row->held_out = strtod(line + used, &end);
    return *end == '\0';
}

muc_status muc_train_log_of_csv(muc_context *ctx, muc_bytes text, uint64_t last, muc_train_log *out)
{
    const char *at = (const char *)text.data, *end = at + text.size;
    size_t number = 1;

    if (text.size < strlen(heading) || memcmp(at, heading, strlen(heading)) != 0)
        return muc_fail(ctx, MUC_MALFORMED, text.name, 0, "its first line is not '%.*s'",
                        (int)strlen(heading) - 1, heading);
    for (at += strlen(heading); at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t size = (size_t)((stop ? stop : end) - at);
        char line[256];
        muc_train_row row;

        memcpy(line, at, size < sizeof(line) ? size : 0);
        line[size < sizeof(line) ? size : 0] = '\0';
        if (!read_row(line, &row))
            return muc_fail(ctx, MUC_MALFORMED, text.name, (uint64_t)(at - (const char *)text.data),
                            "line %zu is not a row of a step", number + 1);
        if (row.step > last)
            return MUC_OK;
        MUC_TRY(muc_train_log_add(ctx, out, &row));
        at += size + 1;
    }
    return MUC_OK;
}

static double mean_loss(const muc_train_log *log, size_t first, size_t end)
{
    double sum = 0;

    for (size_t i = first; i < end; i++)
        sum += log->rows[i].loss;
    return first < end ? sum / (double)(end - first) : 0;
}

double muc_train_log_mean(const muc_train_log *log, size_t count)
{
    return mean_loss(log, log->count - (count < log->count ? count : log->count), log->count);
}

/* the losses of every step and what was measured, as lines */
static void add_plot(const muc_train_log *log, double *room, muc_report *report)
{
    double *steps = room, *losses = room + log->count, *at = losses + log->count;
    double *measured = at + log->count;
    muc_plot_line lines[2] = { { "training", steps, losses, log->count, NULL },
                               { "held out", at, measured, 0, NULL } };
    muc_plot_figure figure = { "loss over steps", "step", "loss", lines, 1, false };

    for (size_t i = 0; i < log->count; i++) {
        const muc_train_row *r = &log->rows[i];

        steps[i] = (double)r->step;
        losses[i] = r->loss;
        if (r->held_out < 0)
            continue;
        at[lines[1].count] = (double)r->step;
        measured[lines[1].count++] = r->held_out;
    }
    figure.line_count = lines[1].count ? 2 : 1;
    muc_report_add_plot(report, &figure);
}

static const muc_report_column curve_columns[] = {
    { "step", NULL, NULL },
    { "loss", NULL, "mean of -ln p of the steps since the row before" },
    { NULL, NULL, NULL },
};

static const muc_report_column held_out_columns[] = {
    { "step", NULL, NULL },
    { "loss", NULL, "mean of -ln p on the held-out file" },
    { NULL, NULL, NULL },
};

static void report_held_out(const muc_train_log *log, muc_report *report)
{
    muc_report_begin_columns(report, "held_out", held_out_columns);
    for (size_t i = 0; i < log->count; i++) {
        if (log->rows[i].held_out < 0)
            continue;
        muc_report_begin_row(report);
        muc_report_add_count(report, "step", log->rows[i].step);
        muc_report_add_real(report, "loss", log->rows[i].held_out);
        muc_report_end(report);
    }
    muc_report_end(report);
}

muc_status muc_train_log_report(muc_context *ctx, const muc_train_log *log, muc_report *report)
{
    size_t stretch = (log->count + STRETCHES - 1) / STRETCHES;
    double *room;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "train", 4 * log->count, &room));
    add_plot(log, room, report);
    free(room);
    muc_report_begin_columns(report, "curve", curve_columns);
    for (size_t i = 0; i < log->count; i += stretch) {
        size_t end = i + stretch < log->count ? i + stretch : log->count;

        muc_report_begin_row(report);
        muc_report_add_count(report, "step", log->rows[end - 1].step);
        muc_report_add_real(report, "loss", mean_loss(log, i, end));
        muc_report_end(report);
    }
    muc_report_end(report);
    if (log->count && log->rows[log->count - 1].held_out >= 0)
        report_held_out(log, report);
    return MUC_OK;
}
