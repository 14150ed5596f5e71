/* compile_mcu.c - compiles a network to C for a microcontroller. muc_compile_mcu() is its table of
 * contents. */
#include <inttypes.h>
#include <string.h>

#include "base/choice.h"
#include "targets/mcu/emit/code_folder.h"
#include "targets/mcu/emit/emit_selftest.h"
#include "targets/mcu/compile/compile_decoder.h"
#include "run/fingerprint.h"
#include "run/network_int8.h"
#include "ref/ref.h"
#include "report/report_builder.h"
#include "targets/mcu/compile/build_mcu.h"
#include "targets/mcu/plan/plan_arena.h"
#include "targets/target.h"

static void add_memory(muc_report *report, const char *use, const muc_mcu_memory *memory,
                       uint64_t bytes)
{
    muc_report_begin_row(report);
    muc_report_add_text(report, "use", "%s", use);
    muc_report_add_text(report, "memory", "%s", memory->name);
    muc_report_add_count(report, "bytes", bytes);
    if (memory->bytes)
        muc_report_add_count(report, "limit", memory->bytes);
    muc_report_end(report);
}

static void add_exports(muc_report *report, const muc_mcu_exports *exports)
{
    if (exports->record_count == 0)
        return;
    muc_report_begin_table(report, "exports");
    for (uint32_t i = 0; i < exports->record_count; i++) {
        muc_report_begin_row(report);
        muc_report_add_text(report, "record", "%s", exports->records[i].file);
        muc_report_add_count(report, "bytes", exports->record_bytes);
        muc_report_end(report);
    }
    muc_report_end(report);
}

/* multiply-accumulates of steps that give real numbers */
static uint64_t float_macs(const muc_mcu_program *program, const muc_graph *graph)
{
    uint64_t macs = 0;

    for (uint32_t i = 0; i < program->step_count; i++) {
        const muc_node *node = program->steps[i].node;

        if (node && graph->tensors[node->outputs[0]].dtype == MUC_F32)
            macs += program->steps[i].macs;
    }
    return macs;
}

/* integers: the graph of a network that was made int8, or NULL */
static muc_status make_report(muc_context *ctx, const muc_mcu_build *build,
                              const muc_graph *integers, const char *path, muc_report **out)
{
    const muc_mcu_program *program = &build->program;
    muc_report *report;

    MUC_TRY(muc_report_new(ctx, out));
    report = *out;
    muc_report_add_text(report, "folder", "%s", path);
    muc_report_add_text(report, "name", "%s", program->name);
    muc_report_add_text(report, "machine", "%s", build->machine.name);
    muc_report_add_count(report, "steps", program->step_count);
    muc_report_add_count(report, "macs", muc_mcu_macs(program));
    if (integers)
        muc_report_add_count(report, "float32_macs", float_macs(program, integers));
    if (program->loop.turns) {
        muc_report_add_integer(report, "recomputed_macs", program->loop.more_macs);
        muc_report_add_text(report, "patches", "%" PRIu32 " x %" PRIu32 " of %" PRIu32 " layers",
                            program->loop.grid_rows, program->loop.grid_columns,
                            program->loop.end - program->loop.first);
    }
    muc_report_add_count(report, "arena_bytes", program->plan.peak);
    muc_report_add_count(report, "arena_bound", program->plan.least);
    if (program->exports)
        add_exports(report, program->exports);
    muc_report_begin_table(report, "memory");
    add_memory(report, "arena", muc_mcu_memory_for(&build->machine, MUC_MCU_ARENA),
               program->plan.peak);
    add_memory(report, "constants", muc_mcu_memory_for(&build->machine, MUC_MCU_WEIGHTS),
               muc_mcu_constant_bytes(program));
    muc_report_end(report);
    return muc_report_status(ctx, report);
}

/* what the reference would refuse in every run is refused here, by its words */
static muc_status check_as_reference(muc_context *ctx, muc_graph *graph)
{
    muc_ref *ref;

    MUC_TRY(muc_ref_open(ctx, graph, &ref));
    muc_ref_close(ref);
    return MUC_OK;
}

/* "record_0_pos8_m1.i32": the calibration record of each export */
static muc_status add_records(muc_context *ctx, const muc_unified *u, muc_arena *arena,
                              muc_mcu_exports *out)
{
    muc_mcu_record *records;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, u->export_count, &records));
    for (uint32_t i = 0; i < u->export_count; i++) {
        records[i].pos = u->exports[i].pos;
        records[i].m = u->exports[i].m;
        records[i].data = u->exports[i].record;
        MUC_TRY(muc_arena_format(ctx, arena, &records[i].file, "record_%u_pos%u_m%u.i32", i,
                                 records[i].pos, records[i].m));
    }
    out->records = records;
    out->record_count = u->export_count;
    out->record_bytes = u->record_words * sizeof(*u->exports->record);
    return MUC_OK;
}

static muc_status add_unified(muc_context *ctx, const muc_unified *u, muc_arena *arena,
                              muc_mcu_build *build)
{
    muc_mcu_exports *exports;

    if (!u->export_count)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, 1, &exports));
    exports->arrays = u->inputs;
    exports->array_count = u->input_count;
    if (u->record_words)
        MUC_TRY(add_records(ctx, u, arena, exports));
    build->program.exports = exports;
    return MUC_OK;
}

/* auto, least or off: 0, 1 or 2; NULL: auto */
static muc_status parse_when(muc_context *ctx, const char *option, const char *text, unsigned *out)
{
    static const char *const names[] = { "auto", "least", "off" };

    _Static_assert(MUC_MCU_PATCHES_LEAST == 1 && MUC_MCU_PATCHES_OFF == 2 &&
                       MUC_MCU_FUSE_LEAST == 1 && MUC_MCU_FUSE_OFF == 2,
                   "in the order of the names");
    *out = 0;
    return text ? muc_choose(ctx, option, text, names, MUC_COUNT(names), out) : MUC_OK;
}

static muc_status choose(muc_context *ctx, const muc_compile_options *options,
                         muc_mcu_choices *choices)
{
    unsigned patches, fuse;

    MUC_TRY(parse_when(ctx, "--patch", options->patch, &patches));
    MUC_TRY(parse_when(ctx, "--fuse", options->fuse, &fuse));
    *choices = (muc_mcu_choices){ .patches = (muc_mcu_patches)patches,
                                  .fuse = (muc_mcu_fuse)fuse,
                                  .package = options->package,
                                  .weights_file = options->weights_file };
    return MUC_OK;
}

static muc_status write(muc_context *ctx, muc_mcu_build *build, const muc_model *model,
                        const muc_int8_loss *losses, size_t loss_count, const char *path,
                        muc_report **out)
{
    muc_graph *graph = model->network.graph;

    MUC_TRY(muc_mcu_find_golden(ctx, &build->program, graph));
    MUC_TRY(muc_mcu_write_folder(ctx, build, path, muc_code_check)); /* emit */
    MUC_TRY(make_report(ctx, build, model->calibration_count ? graph : NULL, path, out));
    muc_int8_report_losses(*out, losses, loss_count);
    return muc_report_status(ctx, *out);
}

/* The steps of a network. */
static muc_status compile(muc_context *ctx, const muc_model *model,
                          const muc_compile_options *options, const muc_mcu_choices *choices,
                          muc_arena *arena, muc_mcu_build **build, const char *out_path,
                          muc_report **out)
{
    muc_graph *graph = model->network.graph;
    muc_int8_loss *losses = NULL;
    size_t loss_count = 0;
    uint32_t fingerprint = 0;
    const char *name;

    MUC_TRY(muc_name_of_output(ctx, arena, model, options, &name));
    if (model->calibration_count)
        MUC_TRY(muc_int8_losses(ctx, model, arena, &losses, &loss_count));
    MUC_TRY(check_as_reference(ctx, graph));
    MUC_TRY(muc_mcu_prepare_for(ctx, graph, options->machine)); /* passes */
    if (!model->calibration_count)
        MUC_TRY(muc_int8_floats(ctx, graph, arena, &losses, &loss_count));
    if (out_path)
        MUC_TRY(muc_graph_fingerprint(ctx, graph, &fingerprint));
    MUC_TRY(
        muc_mcu_compile_as(ctx, graph, name, options->machine, choices, build)); /* lower, plan */
    MUC_TRY(add_unified(ctx, &model->unified, arena, *build)); /* several exports */
    (*build)->program.options = model->options;
    (*build)->program.fingerprint = fingerprint;
    return out_path ? write(ctx, *build, model, losses, loss_count, out_path, out) : MUC_OK;
}

muc_status muc_compile_mcu(muc_context *ctx, const muc_model *model,
                           const muc_compile_options *options, const char *out_path,
                           muc_report **out)
{
    muc_mcu_build *build = NULL;
    muc_arena arena = { 0 };
    muc_mcu_choices choices;
    muc_status status;

    if (model->kind != MUC_MODEL_NETWORK)
        return muc_compile_decoder(ctx, model, options, out_path, out);
    MUC_TRY(choose(ctx, options, &choices));
    status = compile(ctx, model, options, &choices, &arena, &build, out_path, out);
    if (status != MUC_OK)
        muc_network_hint(ctx, model->network.graph);
    muc_mcu_build_free(build);
    muc_arena_free(&arena);
    return status;
}
