#include "formats/network.h"
#include "formats/tflite/flatbuffer.h"
#include "fuzz.h"
#include "ref/ref.h"

enum { MOST_BYTES = 1 << 14, MOST_INPUTS = 16 }; /* of values, so that no run is long */

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const muc_bytes bytes = { data, size, "fuzz" };
    muc_context *ctx = muc_context_new(1);
    muc_network network;

    if (muc_flat_probe(bytes) && muc_network_open_bytes(ctx, bytes, NULL, &network) == MUC_OK) {
        run(ctx, network.graph);
        muc_network_close(&network);
    }
    muc_context_free(ctx);
    return 0;
}
