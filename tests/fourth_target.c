/* fourth_target.c - a target of a test's: the network's graph as text in a folder, run by the
 * reference. Its row and this file are all that the house knows of it. */
#include <string.h>

#include "base/file.h"
#include "base/output_folder.h"
#include "report/report_builder.h"
#include "run/arrays.h"
#include "run/random_inputs.h"
#include "run/network_run.h"
#include "targets/target.h"

static const char mark[] = "notes.graph";

const muc_target_assembly muc_assembly_notes;

const muc_target_machine *muc_machine_at_notes(size_t i)
{
    static const muc_target_machine paper = { "paper", "as large as needed", NULL };

    return i == 0 ? &paper : NULL;
}

muc_status muc_prepare_notes(muc_context *ctx, muc_graph *graph)
{
    return muc_graph_verify(ctx, graph);
}

muc_status muc_compile_notes(muc_context *ctx, const muc_model *model,
                             const muc_compile_options *options, const char *out_path,
                             muc_report **out)
{
    muc_text text = { 0 };
    muc_folder *folder;
    muc_status status;

    (void)options;
    MUC_TRY(muc_prepare_notes(ctx, model->network.graph));
    MUC_TRY(muc_folder_begin(ctx, out_path, &folder));
    muc_graph_print_whole(model->network.graph, &text);
    status = muc_text_status(ctx, &text);
    if (status == MUC_OK)
        status = muc_folder_write(folder, mark, text.data, text.size);
    muc_text_free(&text);
    if (status != MUC_OK) {
        muc_folder_discard(folder);
        return status;
    }
    MUC_TRY(muc_folder_commit(folder, NULL, NULL));
    return muc_report_notes(ctx, out_path, NULL, out);
}

muc_status muc_fit_notes(muc_context *ctx, const muc_model *model,
                         const muc_compile_options *options, muc_target_need *out)
{
    (void)options;
    *out = (muc_target_need){ 0 };
    return muc_prepare_notes(ctx, model->network.graph);
}

static muc_status open_graph(muc_context *ctx, const char *path, muc_file *file, muc_graph **out)
{
    muc_arena arena = { 0 };
    const char *name;
    muc_status status = muc_arena_format(ctx, &arena, &name, "%s/%s", path, mark);

    if (status == MUC_OK)
        status = muc_file_open(ctx, name, file);
    if (status == MUC_OK)
        status = muc_graph_parse(ctx, file->bytes, out);
    muc_arena_free(&arena);
    return status;
}

muc_made muc_recognise_notes(const char *path, muc_bytes bytes)
{
    muc_context *quiet = muc_context_new(1);
    muc_graph *graph = NULL;
    muc_file file = { 0 };
    bool is = !bytes.data && open_graph(quiet, path, &file, &graph) == MUC_OK;

    muc_graph_free(graph);
    muc_file_close(&file);
    muc_context_free(quiet);
    return is ? MUC_MADE_NETWORK : MUC_MADE_NOTHING;
}

/* the outputs on arrays, those of how->input or made up, as rows of a report */
static muc_status run(muc_context *ctx, muc_graph *graph, const char *input, muc_arena *arena,
                      muc_tensor_view **outputs, muc_report **out)
{
    muc_tensor_view *arrays;
    size_t count;

    if (input)
        MUC_TRY(muc_arrays_read(ctx, arena, input, &arrays, &count));
    else
        MUC_TRY(muc_made_arrays(ctx, graph, NULL, 0, arena, &arrays, &count));
    MUC_TRY(muc_network_run(ctx, graph, arrays, count, arena, outputs));
    MUC_TRY(muc_report_new(ctx, out));
    muc_report_begin_table(*out, "outputs");
    for (uint32_t i = 0; i < graph->output_count; i++)
        muc_report_add_array(*out, &(*outputs)[i], NULL);
    muc_report_end(*out);
    return muc_report_status(ctx, *out);
}

muc_status muc_run_notes(muc_context *ctx, const char *path, const muc_array_run *how,
                         const char *board, muc_report **out)
{
    muc_tensor_view *outputs;
    muc_arena arena = { 0 };
    muc_graph *graph = NULL;
    muc_file file = { 0 };
    muc_status status = open_graph(ctx, path, &file, &graph);

    (void)board;
    if (status == MUC_OK)
        status = run(ctx, graph, how->input, &arena, &outputs, out);
    muc_graph_free(graph);
    muc_file_close(&file);
    muc_arena_free(&arena);
    return status;
}

muc_status muc_verify_notes(muc_context *ctx, const char *path, const muc_model *network,
                            const char *trace, muc_report **out)
{
    muc_tensor_view *found, *expected;
    muc_arena arena = { 0 };
    muc_graph *graph = NULL;
    muc_file file = { 0 };
    muc_report *report = NULL;
    muc_status status = open_graph(ctx, path, &file, &graph);

    (void)trace;
    if (status == MUC_OK)
        status = run(ctx, graph, NULL, &arena, &found, out);
    if (status == MUC_OK)
        status = run(ctx, network->network.graph, NULL, &arena, &expected, &report);
    for (uint32_t i = 0; status == MUC_OK && i < graph->output_count; i++)
        if (found[i].bytes != expected[i].bytes ||
            memcmp(found[i].data, expected[i].data, (size_t)found[i].bytes) != 0)
            status =
                muc_fail(ctx, MUC_MISMATCH, path, MUC_NO_OFFSET, "'%s' differs", found[i].name);
    muc_report_free(report);
    muc_graph_free(graph);
    muc_file_close(&file);
    muc_arena_free(&arena);
    return status;
}

muc_status muc_report_notes(muc_context *ctx, const char *path, const muc_report_options *options,
                            muc_report **out)
{
    (void)options;
    MUC_TRY(muc_report_new(ctx, out));
    muc_report_add_text(*out, "folder", "%s", path);
    return muc_report_status(ctx, *out);
}
