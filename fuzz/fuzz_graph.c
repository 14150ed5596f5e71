/* Any text: refused, or a graph that verifies, whose own text reads back to the same text, and that
 * ref refuses or runs within the memory that it is given. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "graph/graph.h"
#include "ref/ref.h"

enum { MAX_INPUTS = 16, MOST_BYTES = 1 << 16 };

static void check(muc_context *ctx, muc_graph *graph)
{
    muc_text first = { 0 }, second = { 0 };
    muc_graph *again;
    muc_bytes printed;

    if (muc_graph_verify(ctx, graph) != MUC_OK)
        abort();
    muc_graph_print(graph, &first);
    printed = (muc_bytes){ (const uint8_t *)first.data, first.size, "printed" };
    if (muc_graph_parse(ctx, printed, &again) != MUC_OK)
        abort();
    muc_graph_print(again, &second);
    if (first.size != second.size || memcmp(first.data, second.data, first.size) != 0)
        abort();
    muc_graph_free(again);
    muc_text_free(&first);
    muc_text_free(&second);
}

/* inputs of zeros at the least sizes, all of MOST_BYTES at most */
static void run(muc_context *ctx, muc_graph *graph)
{
    static const uint64_t zeros[MOST_BYTES / 8];
    uint32_t bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    muc_ref_input inputs[MAX_INPUTS];
    size_t count = 0;
    muc_ref *ref;

    for (uint32_t i = 0; i < muc_expr_input_count(graph->pool); i++)
        bindings[i] = muc_expr_get_input(graph->pool, i)->lo;
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        uint64_t elements, bytes;

        if (graph->tensors[i].kind != MUC_TENSOR_INPUT)
            continue;
        if (count == MAX_INPUTS ||
            muc_tensor_measure_bound(ctx, graph, &graph->tensors[i], bindings, &elements, &bytes) !=
                MUC_OK ||
            bytes > MOST_BYTES)
            return;
        inputs[count++] = (muc_ref_input){ graph->tensors[i].name, zeros, (size_t)bytes };
    }
    if (muc_ref_open_limited(ctx, graph, MOST_BYTES, &ref) != MUC_OK)
        return;
    (void)muc_ref_run(ref, bindings, inputs, count);
    muc_ref_close(ref);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph;

    if (muc_graph_parse(ctx, (muc_bytes){ data, size, "fuzz" }, &graph) == MUC_OK) {
        check(ctx, graph);
        run(ctx, graph);
        muc_graph_free(graph);
    }
    muc_context_free(ctx);
    return 0;
}
