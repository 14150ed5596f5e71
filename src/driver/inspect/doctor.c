/* doctor.c - tells what muc was built with, which programs it finds, and what each missing thing
 * would make possible. */
#include <string.h>

#include "base/child_process.h"
#include "base/locale.h"
#include "muc/model.h"
#include "report/report_builder.h"
#include "run/installed.h"

/* found: where it is, or NULL; missing: what would bring it */
static void add_row(muc_report *report, const char *name, const char *found, const char *missing,
                    const char *use)
{
    muc_report_begin_row(report);
    muc_report_add_text(report, "name", "%s", name);
    muc_report_add_bool(report, "found", found != NULL);
    muc_report_add_text(report, "where", "%s", found ? found : "");
    muc_report_add_text(report, "use", "%s", use);
    muc_report_add_text(report, "missing", "%s", found ? "" : missing);
    muc_report_end(report);
}

static void add_parts(muc_report *report)
{
#define IS_DEFINED(macro) (#macro[0] == '\0' || #macro[0] == '1')
    static const struct {
        const char *part, *use, *how;
        bool found;
    } parts[] = {
#define DOCTOR_PART(macro, part, use, how) { part, use, "build muc with " how, IS_DEFINED(macro) },
#include "driver/inspect/doctor.def"
    };

    muc_report_begin_table(report, "parts");
    for (size_t i = 0; i < MUC_COUNT(parts); i++)
        add_row(report, parts[i].part, parts[i].found ? "built in" : NULL, parts[i].how,
                parts[i].use);
    muc_report_end(report);
}

static muc_status add_tools(muc_context *ctx, muc_arena *arena, muc_report *report)
{
    static const struct {
        const char *program, *package, *use;
    } tools[] = {
#define DOCTOR_TOOL(program, package, use) { program, "install " package, use },
#include "driver/inspect/doctor.def"
    };
    const char *found;

    muc_report_begin_table(report, "programs");
    for (size_t i = 0; i < MUC_COUNT(tools); i++) {
        MUC_TRY(muc_find_program(ctx, arena, tools[i].program, &found));
        add_row(report, tools[i].program, found, tools[i].package, tools[i].use);
    }
    muc_report_end(report);
    return MUC_OK;
}

muc_status muc_doctor(muc_context *ctx, muc_report **out)
{
    MUC_IN_C_LOCALE;
    muc_arena arena = { 0 };
    const char *model = NULL;
    muc_status status;

    MUC_TRY(muc_report_new(ctx, out));
    if (muc_builtin_path(ctx, &model) != MUC_OK)
        muc_error_clear(ctx);
    muc_report_add_text(*out, "built_in_model", "%s",
                        model ? model : "missing: install muc, or name a model");
    muc_report_add_text(*out, "data_folder", "%s", muc_data_folder());
    add_parts(*out);
    status = add_tools(ctx, &arena, *out);
    muc_arena_free(&arena);
    return status == MUC_OK ? muc_report_status(ctx, *out) : status;
}
