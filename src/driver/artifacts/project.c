/* project.c - begins a firmware around a model, and brings it onto its board. */
#include <stdio.h>

#include "base/file.h"
#include "base/file_system.h"
#include "base/locale.h"
#include "driver/compile/chosen_target.h"
#include "muc/folder.h"
#include "report/report_builder.h"

enum { LEAST_CONTEXT = 32 }; /* below which a conversation has no room */

/* the target that makes firmware */
static const muc_target *maker(void)
{
    const muc_target *target;

    for (size_t i = 0; (target = muc_target_get(i)) && !target->start;)
        i++;
    return target;
}

static muc_status compile(muc_context *ctx, const muc_model *model, const muc_target *target,
                          const muc_compile_options *given, const char *path, muc_arena *arena)
{
    const muc_compile_options options = { .weights = given->weights,
                                          .target = target->name,
                                          .machine = given->machine,
                                          .name = "network" };
    muc_report *made = NULL;
    const char *network;
    muc_status status;

    MUC_TRY(muc_arena_format(ctx, arena, &network, "%s/network", path));
    MUC_TRY(muc_make_dir(ctx, path));
    status = muc_compile(ctx, model, &options, network, &made);
    muc_report_free(made);
    if (status != MUC_OK)
        muc_remove(path);
    return status;
}

/* Where the board has no room for a language model's context, with the half of it, or the half of
 * that, if it may be shorter. */
static muc_status compile_to_fit(muc_context *ctx, const muc_model *model, const muc_target *target,
                                 const muc_compile_options *options, const char *path,
                                 muc_arena *arena, muc_report *report)
{
    bool may_shorten = options->may_shorten && model->kind == MUC_MODEL_CHECKPOINT;
    muc_status status = compile(ctx, model, target, options, path, arena);
    muc_model shorter = *model;

    while (status == MUC_NOFIT && may_shorten && shorter.context >= 2 * LEAST_CONTEXT) {
        shorter.context /= 2;
        muc_error_clear(ctx);
        status = compile(ctx, &shorter, target, options, path, arena);
    }
    if (status == MUC_OK && shorter.context < model->context)
        muc_report_add_count(report, "context", shorter.context);
    return status;
}

static muc_status begin(muc_context *ctx, const muc_model *model,
                        const muc_compile_options *options, const char *path, muc_arena *arena,
                        muc_report *report)
{
    const muc_target *target = maker();

    if (muc_path_exists(path))
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "is there already: muc new makes a new folder");
    MUC_TRY(target->start(ctx, NULL, options->machine, report));
    MUC_TRY(compile_to_fit(ctx, model, target, options, path, arena, report));
    MUC_TRY(target->start(ctx, path, options->machine, report));
    return muc_report_status(ctx, report);
}

muc_status muc_new_project(muc_context *ctx, const muc_model *model,
                           const muc_compile_options *options, const char *path, muc_report **out)
{
    MUC_IN_C_LOCALE;
    muc_arena arena = { 0 };
    muc_status status;

    MUC_TRY(muc_report_new(ctx, out));
    status = begin(ctx, model, options, path, &arena, *out);
    muc_arena_free(&arena);
    if (status == MUC_OK)
        return MUC_OK;
    muc_report_free(*out);
    *out = NULL;
    return status;
}

muc_status muc_flash(muc_context *ctx, const char *path, const char *board, bool run,
                     muc_report **out)
{
    MUC_IN_C_LOCALE;
    muc_status status;

    MUC_TRY(muc_report_new(ctx, out));
    status = maker()->flash(ctx, path, board, run, *out);
    return status == MUC_OK ? muc_report_status(ctx, *out) : status;
}
