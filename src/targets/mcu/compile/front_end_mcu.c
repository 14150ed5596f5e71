/* front_end_mcu.c - writes the folder of an audio front end. */
#include "report/report_builder.h"
#include "targets/mcu/compile/build_mcu.h"
#include "targets/mcu/emit/emit_front_end.h"
#include "targets/mcu/emit/emit_template.h"
#include "targets/mcu/program/runtime_files.h"

static muc_status write_all(muc_context *ctx, const muc_mcu_program *program, muc_folder *folder)
{
    MUC_TRY(muc_mcu_write_code(ctx, program, muc_mcu_front_header, ".h", folder));
    MUC_TRY(muc_mcu_write_code(ctx, program, muc_mcu_front_shared, ".c", folder));
    MUC_TRY(muc_mcu_write_code(ctx, program, muc_mcu_front_float, "_f32.c", folder));
    MUC_TRY(muc_mcu_write_code(ctx, program, muc_mcu_front_fixed, "_q16.c", folder));
    MUC_TRY(muc_mcu_write_text(program, muc_mcu_front_main, "main.c", folder));
    MUC_TRY(muc_mcu_write_package(ctx, program, folder));
    MUC_TRY(muc_mcu_write_text(program, muc_mcu_front_readme, "README.md", folder));
    return muc_mcu_write_runtime(program, folder);
}

/* the sources: two of the front end's own, beside NAME.c, and the runtime's, with queues for
 * samples and for frames */
static muc_status add_sources(muc_context *ctx, muc_mcu_program *program)
{
    static const char *const functions[] = { "mur_front_end_f32_run", "mur_front_end_q16_run",
                                             "mur_ring_open" };
    static const char *const ends[] = { "f32", "q16" };

    for (size_t i = 0; i < MUC_COUNT(ends); i++) {
        const char *name;

        MUC_TRY(muc_arena_format(ctx, &program->arena, &name, "%s_%s.c", program->name, ends[i]));
        MUC_TRY(muc_mcu_add_source(ctx, program, name));
    }
    for (size_t i = 0; i < MUC_COUNT(functions); i++)
        MUC_TRY(muc_mcu_need_function(ctx, program, functions[i]));
    return MUC_OK;
}

static void describe(const muc_mcu_program *program, const char *path, muc_report *report)
{
    const muc_mcu_front_end *front_end = program->front_end;
    muc_text text = { 0 };

    muc_front_end_print(front_end->front, &text);
    muc_report_add_text(report, "folder", "%s", path);
    muc_report_add_text(report, "name", "%s", program->name);
    muc_report_add_text(report, "machine", "%s", program->machine->name);
    muc_report_add_text(report, "features", "%s", text.data ? text.data : "");
    muc_report_add_count(report, "features_of_a_frame", muc_front_end_features(front_end->front));
    muc_report_add_count(report, "empty_bands", front_end->tables->empty_bands);
    muc_report_add_count(report, "float_table_bytes", muc_mcu_front_bytes(front_end, true));
    muc_report_add_count(report, "fixed_table_bytes", muc_mcu_front_bytes(front_end, false));
    muc_report_add_count(report, "scratch_bytes", program->plan.peak);
    muc_text_free(&text);
}

static muc_status write_folder(muc_context *ctx, const muc_mcu_program *program, const char *path)
{
    muc_folder *folder;

    MUC_TRY(muc_folder_begin(ctx, path, &folder));
    return muc_folder_end(folder, write_all(ctx, program, folder), NULL, NULL);
}

static muc_status make(muc_context *ctx, const muc_front_end *front,
                       const muc_compile_options *options, const char *path, muc_mcu_build *build,
                       muc_report *report)
{
    muc_mcu_program *program = &build->program;
    muc_front_end_tables tables;
    const muc_mcu_front_end front_end = { front, &tables };

    MUC_TRY(muc_mcu_begin(ctx, options->name ? options->name : "front_end", options->machine,
                          options->package, build));
    MUC_TRY(muc_front_end_build(ctx, &program->arena, front, &tables));
    program->front_end = &front_end;
    program->plan.peak = MUR_FRONT_END_SCRATCH_BYTES(front->fft, front->bands);
    program->table_bytes = muc_mcu_front_bytes(program->front_end, true);
    MUC_TRY(add_sources(ctx, program));
    MUC_TRY(write_folder(ctx, program, path));
    describe(program, path, report);
    return muc_report_status(ctx, report);
}

muc_status muc_front_end_mcu(muc_context *ctx, const muc_front_end *front,
                             const muc_compile_options *options, const char *path,
                             muc_report *report)
{
    muc_mcu_build build = { 0 };
    muc_status status = make(ctx, front, options, path, &build, report);

    muc_arena_free(&build.program.arena);
    return status;
}
