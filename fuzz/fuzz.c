#include "fuzz.h"
#include "formats/network.h"
#include "ref/ref.h"

enum { CHUNK = 256 };
enum { ENTRY_BYTES = 40, TRAILER_BYTES = 32 };   /* of .bdt files */
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

static void seal_payload(uint8_t *data, size_t size, uint8_t *row)
{
    uint64_t offset = muc_load_u64(row + 16), bytes = muc_load_u64(row + 24);

    if (offset <= size && bytes <= size - offset)
        muc_store_u32(row + 32, muc_crc32(0, data + offset, (size_t)bytes));
}

void fuzz_seal_bdt(uint8_t *data, size_t size)
{
    uint8_t *trailer;
    uint64_t table, end;
    uint32_t count;

    if (size < TRAILER_BYTES)
        return;
    trailer = data + size - TRAILER_BYTES;
    table = muc_load_u64(trailer);
    end = size - TRAILER_BYTES;
    count = muc_load_u32(trailer + 8);
    for (uint32_t i = 0; i < count && table <= end; i++) {
        if ((uint64_t)(i + 1) * ENTRY_BYTES > end - table)
            break;
        seal_payload(data, size, data + table + (uint64_t)i * ENTRY_BYTES);
    }
    if (table <= end)
        muc_store_u32(trailer + 16, muc_crc32(0, data + table, (size_t)(end - table)));
    muc_store_u32(trailer + 28, muc_crc32(0, trailer, 28));
}
