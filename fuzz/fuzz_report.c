/* Any text: as a sweep's description refused, or lists whose points can be counted and whose
 * machines can be written; as a saved report refused, or one that compares with itself in every
 * form. */
#include <stdlib.h>
#include <string.h>

#include "driver/sweep/sweep_file.h"
#include "fuzz.h"
#include "report/compare_reports.h"
#include "targets/uthinker/machines/uthinker_machine.h"

static void check_sweep(muc_context *ctx, muc_bytes bytes)
{
    muc_arena arena = { 0 };
    muc_sweep_file *file;
    muc_text machine = { 0 };

    if (MUC_ARENA_NEW(ctx, &arena, 1, &file) == MUC_OK &&
        muc_sweep_read(ctx, &arena, bytes, file) == MUC_OK) {
        uint32_t last = file->points - 1;

        for (uint32_t axis = 0; axis < file->axis_count; axis++)
            if (muc_sweep_axis_value(file, axis, last) !=
                file->axes[axis].values[file->axes[axis].count - 1])
                abort();
        muc_sweep_machine(ctx, file, last, muc_uthinker_default_machine(), &machine);
    }
    muc_text_free(&machine);
    muc_arena_free(&arena);
    muc_error_clear(ctx);
}

static void check_forms(muc_context *ctx, const muc_report *report)
{
    char *text = NULL, *json = NULL, *page = NULL;
    const char *script; /* the page's own, and no other */

    if (muc_report_as_text(ctx, report, &text) != MUC_OK ||
        muc_report_as_json(ctx, report, &json) != MUC_OK ||
        muc_report_as_html(ctx, report, "report", &page) != MUC_OK)
        abort();
    script = strstr(page, "<script>");
    if (!script || strstr(page, "<script") != script || strstr(script + 1, "<script"))
        abort();
    free(text);
    free(json);
    free(page);
}

static void check_report(muc_context *ctx, muc_bytes bytes)
{
    muc_report *report, *both;

    if (muc_report_read(ctx, bytes, &report) == MUC_OK) {
        check_forms(ctx, report);
        if (muc_report_compare(ctx, report, "a", report, "b", &both) != MUC_OK)
            abort();
        check_forms(ctx, both);
        muc_report_free(both);
        muc_report_free(report);
    }
    muc_error_clear(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const muc_bytes bytes = { data, size, "report" };
    muc_context *ctx = muc_context_new(1);

    if (!ctx)
        return 0;
    check_sweep(ctx, bytes);
    check_report(ctx, bytes);
    muc_context_free(ctx);
    return 0;
}
