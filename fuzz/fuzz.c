#include "fuzz.h"
#include "formats/network.h"
#include "ref/ref.h"

enum { CHUNK = 256 };
enum { MOST_BYTES = 1 << 14, MOST_INPUTS = 16 }; /* of values, so that no run is long */

void fuzz_read_tensors(muc_context *ctx, const muc_tensor_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const muc_tensor_view *view = &views[i];
        float values[CHUNK];

        for (uint64_t first = 0; first < view->elements; first += CHUNK) {
            uint64_t left = view->elements - first;

            if (muc_tensor_to_f32(ctx, view, first, left < CHUNK ? left : CHUNK, values) != MUC_OK)
                break;
        }
    }
}

void fuzz_format(muc_format_probe *probe, muc_format_read *read, const uint8_t *data, size_t size)
{
    muc_source source = { .path = "fuzz", .bytes = { data, size, "fuzz" } };
    muc_checkpoint checkpoint = { .path = "fuzz" };
    muc_context *ctx = muc_context_new(1);

    if (probe(&source) && read(ctx, &source, &checkpoint) == MUC_OK &&
        muc_checkpoint_finish(ctx, &checkpoint) == MUC_OK)
        fuzz_read_tensors(ctx, checkpoint.tensors, checkpoint.tensor_count);
    muc_checkpoint_close(&checkpoint);
    muc_context_free(ctx);
}

/* all inputs 0 */
static void run(muc_context *ctx, muc_graph *graph)
{
    static const uint8_t zeros[MOST_BYTES];
    const uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    muc_ref_input inputs[MOST_INPUTS];
    size_t count = 0;
    muc_ref *ref;

    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        const muc_tensor *tensor = &graph->tensors[i];
        uint64_t elements, bytes;

        if (tensor->kind != MUC_TENSOR_INPUT)
            continue;
        if (muc_tensor_measure_bound(ctx, graph, tensor, bindings, &elements, &bytes) != MUC_OK ||
            bytes > MOST_BYTES || count == MOST_INPUTS)
            return;
        inputs[count++] = (muc_ref_input){ tensor->name, zeros, (size_t)bytes };
    }
    if (muc_ref_open_limited(ctx, graph, MOST_BYTES, &ref) != MUC_OK)
        return;
    muc_ref_run(ref, bindings, inputs, count);
    muc_ref_close(ref);
}

void fuzz_network(muc_bytes bytes)
{
    muc_context *ctx = muc_context_new(1);
    muc_network network;

    if (muc_network_open_bytes(ctx, bytes, NULL, &network) == MUC_OK) {
        run(ctx, network.graph);
        muc_network_close(&network);
    }
    muc_context_free(ctx);
}
