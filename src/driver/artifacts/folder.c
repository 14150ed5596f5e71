/* folder.c - runs, compares and reports on what muc compile wrote, by the target that made it. */
#include <string.h>

#include "muc/folder.h"

#include "base/file.h"
#include "base/locale.h"
#include "report/compare_reports.h"
#include "targets/target.h"

bool muc_is_code_folder(const char *path)
{
    MUC_IN_C_LOCALE;
    muc_made made;

    return path && muc_path_is_dir(path) && muc_target_of(path, &made);
}

bool muc_is_language_folder(const char *path)
{
    MUC_IN_C_LOCALE;
    muc_made made = MUC_MADE_NOTHING;

    return path && muc_path_is_dir(path) && muc_target_of(path, &made) && made == MUC_MADE_LANGUAGE;
}

/* the target that made what lies at path; of a network alone, or of anything */
static muc_status find_maker(muc_context *ctx, const char *path, bool network,
                             const muc_target **out)
{
    muc_made made;

    *out = muc_target_of(path, &made);
    if (*out && (made == MUC_MADE_NETWORK || !network))
        return MUC_OK;
    if (!muc_path_exists(path))
        return muc_fail(ctx, MUC_IO, path, MUC_NO_OFFSET, "is not a folder");
    return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                    network ? "is not a folder that muc compile wrote of a network"
                            : "is not a folder that muc compile wrote: report tells what generated "
                              "code needs; muc inspect shows what a model holds");
}

muc_status muc_run_folder(muc_context *ctx, const char *path, const muc_array_run *how,
                          const char *board, muc_report **out)
{
    MUC_IN_C_LOCALE;
    const muc_target *maker;

    MUC_TRY(find_maker(ctx, path, true, &maker));
    return maker->run(ctx, path, how, board, out);
}

muc_status muc_verify_folder(muc_context *ctx, const char *path, const muc_model *network,
                             const char *trace, muc_report **out)
{
    MUC_IN_C_LOCALE;
    const muc_target *maker;

    if (network->kind != MUC_MODEL_NETWORK)
        return muc_fail(ctx, MUC_USAGE, network->path, MUC_NO_OFFSET,
                        "expected the network that %s was made of", path);
    MUC_TRY(find_maker(ctx, path, true, &maker));
    return maker->verify(ctx, path, network, trace, out);
}

muc_status muc_report_folder(muc_context *ctx, const char *path, const muc_report_options *options,
                             muc_report **out)
{
    MUC_IN_C_LOCALE;
    const muc_report_options none = { 0 };
    const muc_target *maker;

    if (!options)
        options = &none;
    MUC_TRY(find_maker(ctx, path, false, &maker));
    if (muc_path_is_dir(path) &&
        (options->machine || options->position || options->tokens || options->trace))
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "is a folder: machine, position, call and trace are of programs");
    return maker->report(ctx, path, options, out);
}

/* a report that was saved, or one of what lies at path */
static muc_status open_report(muc_context *ctx, const char *path, const muc_report_options *options,
                              muc_report **out)
{
    const char *end = strrchr(path, '.');
    muc_status status;
    muc_file file;

    if (!end || strcmp(end, ".json") != 0)
        return muc_report_folder(ctx, path, options, out);
    MUC_TRY(muc_file_open(ctx, path, &file));
    status = muc_report_read(ctx, file.bytes, out);
    muc_file_close(&file);
    return status;
}

muc_status muc_compare_folders(muc_context *ctx, const char *a, const char *b,
                               const muc_report_options *options, muc_report **out)
{
    MUC_IN_C_LOCALE;
    muc_report *first = NULL, *second = NULL;
    muc_status status = open_report(ctx, a, options, &first);

    if (status == MUC_OK)
        status = open_report(ctx, b, options, &second);
    if (status == MUC_OK)
        status = muc_report_compare(ctx, first, a, second, b, out);
    muc_report_free(first);
    muc_report_free(second);
    return status;
}

muc_status muc_verify(muc_context *ctx, const muc_model *program, const muc_model *model,
                      const char *prompt, muc_report **out)
{
    MUC_IN_C_LOCALE;

    if (program->kind != MUC_MODEL_COMPILED || model->kind != MUC_MODEL_CHECKPOINT)
        return muc_fail(ctx, MUC_USAGE, "verify", MUC_NO_OFFSET,
                        "expected a program and a checkpoint: %s, %s", program->path, model->path);
    return program->target->verify_language(ctx, program, model, prompt, out);
}

muc_status muc_verify_machine(muc_context *ctx, const muc_model *program,
                              const muc_machine *machine, const char *prompt, muc_report **out)
{
    MUC_IN_C_LOCALE;

    if (!program->engine || !program->engine->verify_machine)
        return muc_fail(ctx, MUC_USAGE, program->path, MUC_NO_OFFSET,
                        "expected a program that a machine of one's own can run");
    return program->engine->verify_machine(ctx, program, machine, prompt, out);
}

muc_status muc_verify_language_folder(muc_context *ctx, const char *path,
                                      const muc_model *checkpoint, const char *prompt,
                                      muc_report **out)
{
    MUC_IN_C_LOCALE;
    muc_model *made;
    muc_status status;

    if (checkpoint->kind != MUC_MODEL_CHECKPOINT)
        return muc_fail(ctx, MUC_USAGE, checkpoint->path, MUC_NO_OFFSET,
                        "expected the checkpoint that %s was made of", path);
    MUC_TRY(muc_model_open(ctx, path, NULL, &made));
    status = muc_verify(ctx, made, checkpoint, prompt, out);
    muc_model_close(made);
    return status;
}
