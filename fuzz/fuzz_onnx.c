/* Any file: refused, or a graph that verifies. Its inputs are of no known value and open ranges. */
#include "formats/network.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muc_source source = { .path = "fuzz.onnx", .bytes = { data, size, "fuzz.onnx" } };
    muc_network_options options = { 0 };
    muc_context *ctx = muc_context_new(1);
    muc_network network = { .path = "fuzz.onnx" };

    muc_onnx_probe_network(&source);
    if (muc_onnx_read_network(ctx, &source, &options, &network) == MUC_OK &&
        muc_graph_verify(ctx, network.graph) != MUC_OK)
        __builtin_trap();
    muc_network_close(&network);
    muc_context_free(ctx);
    return 0;
}
