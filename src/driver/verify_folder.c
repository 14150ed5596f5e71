/* verify_folder.c - generated C compared with the reference, tensor by tensor.
 *
 * The code is built with a function that it tells of every result, which writes them down: the
 * graph's tensor, the bytes, the data. The graph is the one that the code was made of.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/chip.h"
#include "driver/codefolder.h"
#include "driver/compile.h"
#include "driver/network.h"
#include "muc/folder.h"
#include "report/report.h"

static const char trace_source[] =
    "#include <stdint.h>\n"
    "#include <stdio.h>\n"
    "\n"
    "void muc_trace(unsigned tensor, const uint8_t *data, size_t bytes);\n"
    "\n"
    "void muc_trace(unsigned tensor, const uint8_t *data, size_t bytes)\n"
    "{\n"
    "    const uint32_t head[2] = { tensor, (uint32_t)bytes };\n"
    "\n"
    "    fwrite(head, sizeof(head), 1, stdout);\n"
    "    fwrite(data, 1, bytes, stdout);\n"
    "}\n";

enum { MOST_FIRST = 256 };
static const double tolerance = 1e-4; /* of a tensor's greatest number */

typedef struct comparison {
    muc_context *ctx;
    const muc_graph *graph;
    const muc_ref *ref;
    muc_report *report;
    size_t tensors;
    char first[MOST_FIRST];
} comparison;

static double number_at(muc_dtype dtype, const uint8_t *data, uint64_t i)
{
    const muc_tensor_view view = { .dtype = dtype, .elements = i + 1, .data = data };

    return muc_array_element(&view, i);
}

static void compare(comparison *c, const muc_tensor *tensor, const muc_ref_view *view,
                    const uint8_t *data)
{
    bool is_real = muc_dtype_get(tensor->dtype)->kind == MUC_DTYPE_FLOAT;
    double greatest = 0, error = 0;
    uint64_t wrong = 0, first = 0;

    for (size_t i = 0; i < view->elements; i++)
        greatest = fmax(greatest, fabs(number_at(view->dtype, view->data, i)));
    for (size_t i = 0; i < view->elements; i++) {
        double e = number_at(view->dtype, view->data, i), f = number_at(tensor->dtype, data, i);
        double difference = isnan(e) && isnan(f) ? 0 : e == f ? 0 : fabs(e - f);

        if (!(difference <= (is_real ? tolerance * fmax(1, greatest) : 0)) && wrong++ == 0)
            first = i;
        error = difference > error || isnan(difference) ? difference : error;
    }
    if (wrong && !c->first[0])
        snprintf(c->first, sizeof(c->first), "'%.200s'[%llu]", tensor->name,
                 (unsigned long long)first);
    c->tensors++;
    muc_report_begin_row(c->report);
    muc_report_add_text(c->report, "node", "%.48s", tensor->name);
    muc_report_add_text(c->report, "operator", "%s",
                        muc_op_get(c->graph->nodes[tensor->producer].op)->name);
    muc_report_add_count(c->report, "values", view->elements);
    muc_report_add_count(c->report, "wrong", wrong);
    muc_report_add_real(c->report, "error", error);
    muc_report_end(c->report);
}

static muc_status other_network(const comparison *c)
{
    return muc_fail(
        c->ctx, MUC_MISMATCH, c->graph->name, MUC_NO_OFFSET,
        "the code was made of another network, or with other options: --quant, --calib, "
        "--dim and --type are to be those of muc compile");
}

/* the records that trace_source wrote; the outputs that main.c writes come after them */
static muc_status compare_all(comparison *c, const uint8_t *data, size_t bytes, size_t outputs)
{
    size_t at = 0, end = bytes - outputs;

    while (end - at >= 8) {
        uint32_t id = muc_load_u32(data + at), size = muc_load_u32(data + at + 4);
        const muc_tensor *tensor;
        muc_ref_view view;

        at += 8;
        tensor = id < c->graph->tensor_count ? &c->graph->tensors[id] : NULL;
        if (!tensor || size > end - at)
            return other_network(c);
        if (tensor->producer != MUC_NO_ID && muc_ref_get(c->ref, id, &view)) {
            if (view.elements * muc_dtype_get(tensor->dtype)->block_bytes > size)
                return other_network(c);
            compare(c, tensor, &view, data + at);
        }
        at += size;
    }
    return MUC_OK;
}

static muc_status report_all(comparison *c, const uint8_t *data, size_t bytes, size_t outputs,
                             muc_report **out)
{
    MUC_TRY(muc_report_new(c->ctx, out));
    c->report = *out;
    muc_report_begin_table(c->report, "layers");
    MUC_TRY(compare_all(c, data, bytes, outputs));
    muc_report_end(c->report);
    muc_report_add_bool(c->report, "exact", !c->first[0]);
    muc_report_add_count(c->report, "tensors", c->tensors);
    if (c->first[0])
        muc_report_add_text(c->report, "first_divergence", "%s", c->first);
    return muc_report_status(c->ctx, c->report);
}

static muc_status verify(muc_context *ctx, muc_code_folder *folder, const muc_model *network,
                         muc_arena *arena, muc_report **out)
{
    muc_graph *graph = network->network.graph;
    comparison c = { .ctx = ctx, .graph = graph };
    size_t bytes, outputs = 0;
    uint8_t *data = NULL;
    muc_bytes gathered;
    muc_status status;
    muc_ref *ref;

    MUC_TRY(muc_prepare_mcu(ctx, graph));
    MUC_TRY(muc_code_bind(ctx, folder, network->arrays, network->array_count, NULL, arena));
    MUC_TRY(muc_code_gather(ctx, folder, network->arrays, network->array_count, arena, &gathered));
    MUC_TRY(muc_network_evaluate(ctx, graph, network->arrays, network->array_count, arena, &ref));
    c.ref = ref;
    for (size_t i = 0; i < folder->output_count; i++)
        outputs += (size_t)folder->outputs[i].bytes;
    status = muc_code_run(ctx, folder, trace_source, gathered, &data, &bytes);
    if (status == MUC_OK && bytes < outputs)
        status = muc_fail(ctx, MUC_BUG, folder->path, MUC_NO_OFFSET,
                          "the code wrote %zu bytes, fewer than its outputs have", bytes);
    if (status == MUC_OK)
        status = report_all(&c, data, bytes, outputs, out);
    free(data);
    muc_ref_close(ref);
    if (status == MUC_OK && c.first[0])
        status = muc_fail(ctx, MUC_MISMATCH, folder->path, MUC_NO_OFFSET,
                          "the code and the reference differ at %s", c.first);
    return status;
}

muc_status muc_verify_folder(muc_context *ctx, const char *path, const muc_model *network,
                             const char *trace, muc_report **out)
{
    muc_arena arena = { 0 };
    muc_code_folder folder;
    muc_status status;

    if (network->kind != MUC_MODEL_NETWORK)
        return muc_fail(ctx, MUC_USAGE, network->path, MUC_NO_OFFSET,
                        "expected the network that %s was made of", path);
    if (muc_is_chip_folder(path))
        return muc_chip_verify(ctx, path, network, trace, out);
    if (trace)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "--trace is for folders of the CNN chip");
    MUC_TRY(muc_code_open(ctx, path, &folder));
    status = verify(ctx, &folder, network, &arena, out);
    muc_arena_free(&arena);
    muc_code_close(&folder);
    return status;
}
