/* sweep.c - makes, keeps and shows all points of a sweep: machines x quantizations x models. */
#include "driver/sweep/sweep_report.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/locale.h"
#include "muc/sweep.h"

/* Writes the table and the page, which depend on the sweep alone. */
static muc_status write_results(const muc_sweep_work *w, const muc_report *report)
{
    const char *csv_path, *page_path, *title;
    char *csv = NULL, *page = NULL;
    muc_status status;

    MUC_TRY(muc_arena_format(w->ctx, w->arena, &csv_path, "%s/sweep.csv", w->folder));
    MUC_TRY(muc_arena_format(w->ctx, w->arena, &page_path, "%s/sweep.html", w->folder));
    MUC_TRY(muc_arena_format(w->ctx, w->arena, &title, "muc sweep %s", w->file->name));
    status = muc_report_as_csv(w->ctx, report, "points", &csv);
    if (status == MUC_OK)
        status = muc_report_as_html(w->ctx, report, title, &page);
    if (status == MUC_OK)
        status = muc_report_save(w->ctx, csv_path, csv);
    if (status == MUC_OK)
        status = muc_report_save(w->ctx, page_path, page);
    free(csv);
    free(page);
    return status;
}

/* where a shard's points begin; those of one program are mostly in one shard */
static uint32_t first_of(const muc_sweep_file *file, const muc_sweep_options *options,
                         uint32_t shard)
{
    return (uint32_t)((uint64_t)file->points * shard / (options->shards ? options->shards : 1));
}

static muc_status run(muc_sweep_work *w, const muc_sweep_options *options, muc_report *report)
{
    uint32_t shard = options->shards ? options->shard : 1;
    double missing;

    MUC_TRY(muc_sweep_go_on(w, first_of(w->file, options, shard - 1),
                            first_of(w->file, options, shard)));
    MUC_TRY(muc_sweep_load(w)); /* what other shards have made meanwhile */
    MUC_TRY(muc_sweep_report(w, report));
    if (muc_report_number(report, "missing", &missing) && missing > 0)
        return MUC_OK;
    return write_results(w, report);
}

static muc_status open_and_run(muc_context *ctx, muc_arena *arena, const char *path,
                               const muc_sweep_options *options, const char *out_path,
                               muc_report *report)
{
    muc_sweep_work work = { .ctx = ctx };
    muc_sweep_file *file;
    muc_file text;
    muc_status status;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, 1, &file));
    MUC_TRY(muc_file_open(ctx, path, &text));
    status = muc_sweep_read(ctx, arena, text.bytes, file);
    if (status == MUC_OK)
        status = muc_sweep_begin(ctx, arena, file, out_path, &work);
    if (status == MUC_OK)
        status = run(&work, options, report);
    muc_sweep_end(&work);
    muc_file_close(&text);
    return status;
}

muc_status muc_sweep(muc_context *ctx, const char *path, const muc_sweep_options *options,
                     const char *out_path, muc_report **out)
{
    MUC_IN_C_LOCALE;
    const muc_sweep_options whole = { 0 };
    muc_arena arena = { 0 };
    muc_report *report;
    muc_status status;

    options = options ? options : &whole;
    if (options->shards && (options->shard < 1 || options->shard > options->shards))
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET, "shard %u of %u: expected 1 to %u",
                        options->shard, options->shards, options->shards);
    MUC_TRY(muc_report_new(ctx, &report));
    status = open_and_run(ctx, &arena, path, options, out_path, report);
    muc_arena_free(&arena);
    if (status == MUC_OK)
        *out = report;
    else
        muc_report_free(report);
    return status;
}
