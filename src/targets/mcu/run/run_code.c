/* run_code.c - runs generated C on arrays or on a picture. */
#include <stdlib.h>
#include <string.h>

#include "report/report_builder.h"
#include "run/arrays.h"
#include "run/image_input.h"
#include "run/network_run.h"
#include "run/repeated_runs.h"
#include "targets/mcu/emit/code_folder.h"
#include "targets/target.h"

/* of one run */
static muc_status take_outputs(muc_context *ctx, const muc_code_folder *folder, const uint8_t *data,
                               size_t bytes, muc_arena *arena, muc_tensor_view **out)
{
    size_t at = 0;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, folder->output_count + 1, out));
    for (size_t i = 0; i < folder->output_count; i++) {
        const muc_port *port = &folder->outputs[i];
        muc_tensor_view *view = &(*out)[i];

        if (bytes - at < port->bytes)
            return muc_fail(ctx, MUC_BUG, folder->path, MUC_NO_OFFSET,
                            "the code wrote %zu bytes, fewer than its outputs have", bytes);
        *view = (muc_tensor_view){ .name = port->name,
                                   .dtype = port->dtype,
                                   .rank = port->rank,
                                   .data = data + at,
                                   .file = folder->path };
        memcpy(view->dims, port->dims, sizeof(view->dims));
        MUC_TRY(muc_tensor_measure(ctx, view));
        at += (size_t)port->bytes;
    }
    return MUC_OK;
}

/* of several runs, 0: of one; all as they were written, one run after another */
static muc_status take_runs(muc_context *ctx, const muc_code_folder *folder, uint64_t runs,
                            const uint8_t *data, size_t bytes, muc_arena *arena,
                            muc_tensor_view **out)
{
    uint64_t each = 0;

    for (size_t i = 0; i < folder->output_count; i++)
        each += folder->outputs[i].bytes;
    MUC_TRY(take_outputs(ctx, folder, data, bytes, arena, out));
    if (runs && bytes / runs < each)
        return muc_fail(ctx, MUC_BUG, folder->path, MUC_NO_OFFSET,
                        "the code wrote %zu bytes, fewer than its outputs have", bytes);
    for (size_t i = 0, at = 0; runs && i < folder->output_count; i++) {
        const muc_tensor_view one = (*out)[i];
        uint8_t *to;

        MUC_TRY(muc_runs_stack(ctx, arena, runs, &one, &(*out)[i], &to));
        for (uint64_t run = 0; run < runs; run++)
            memcpy(to + run * one.bytes, data + run * each + at, (size_t)one.bytes);
        at += (size_t)one.bytes;
    }
    return MUC_OK;
}

static muc_status report_outputs(muc_context *ctx, const muc_code_folder *folder,
                                 const muc_tensor_view *outputs, muc_report *report)
{
    muc_report_begin_table(report, "outputs");
    for (size_t i = 0; i < folder->output_count; i++)
        muc_report_add_array(report, &outputs[i], &folder->outputs[i]);
    muc_report_end(report);
    return muc_report_status(ctx, report);
}

/* the inputs, one after another: arrays, or a picture */
static muc_status take_inputs(muc_context *ctx, muc_code_folder *folder, const muc_array_run *how,
                              muc_arena *arena, muc_bytes *out, const char **image, uint64_t *runs)
{
    muc_tensor_view *arrays = NULL;
    size_t count = 0;

    if (how->input && how->image)
        return muc_fail(ctx, MUC_USAGE, how->image, MUC_NO_OFFSET,
                        "the inputs are arrays (%s) or a picture, not both", how->input);
    if (how->image && folder->input_count == 0)
        return muc_fail(ctx, MUC_USAGE, folder->path, MUC_NO_OFFSET, "has no input for a picture");
    if (how->input)
        MUC_TRY(muc_arrays_read(ctx, arena, how->input, &arrays, &count));
    if (how->image) {
        MUC_TRY(MUC_ARENA_NEW(ctx, arena, 1, &arrays));
        MUC_TRY(muc_image_array(ctx, arena, how->image, how->preprocess, &folder->inputs[0], arrays,
                                image));
        count = 1;
    }
    MUC_TRY(muc_code_bind(ctx, folder, arrays, count, how->dims, arena));
    MUC_TRY(muc_code_runs(ctx, folder, arrays, count, runs));
    return muc_code_gather(ctx, folder, arrays, count, arena, out);
}

static muc_status run_folder(muc_context *ctx, muc_code_folder *folder, const muc_array_run *how,
                             const char *board, muc_arena *arena, uint8_t **data, muc_report **out)
{
    const char *image = NULL;
    muc_tensor_view *outputs;
    uint64_t instructions;
    muc_bytes gathered;
    uint64_t runs;
    size_t bytes;

    MUC_TRY(take_inputs(ctx, folder, how, arena, &gathered, &image, &runs));
    if (board)
        MUC_TRY(muc_code_emulate(ctx, folder, board, gathered, data, &bytes, &instructions));
    else
        MUC_TRY(muc_code_run(ctx, folder, NULL, gathered, data, &bytes));
    MUC_TRY(take_runs(ctx, folder, runs, *data, bytes, arena, &outputs));
    if (how->output)
        MUC_TRY(muc_arrays_write(ctx, how->output, outputs, folder->output_count));
    MUC_TRY(muc_report_new(ctx, out));
    if (board) {
        muc_report_add_text(*out, "board", "%s", board);
        muc_report_add_count(*out, "instructions", instructions);
    }
    if (image)
        muc_report_add_text(*out, "image", "%s", image);
    if (folder->output_count && (image || how->labels))
        MUC_TRY(muc_image_add_classes(ctx, how->labels, &outputs[0], &folder->outputs[0], *out));
    return report_outputs(ctx, folder, outputs, *out);
}

muc_status muc_run_mcu(muc_context *ctx, const char *path, const muc_array_run *how,
                       const char *board, muc_report **out)
{
    muc_arena arena = { 0 };
    muc_code_folder folder;
    muc_status status;
    uint8_t *data = NULL;

    MUC_TRY(muc_code_open(ctx, path, &folder));
    status = run_folder(ctx, &folder, how, board, &arena, &data, out);
    free(data);
    muc_arena_free(&arena);
    muc_code_close(&folder);
    return status;
}
