/* Any text: refused, or a graph that verifies and whose own text reads back to the same text. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "graph/graph.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muc_context *ctx = muc_context_new(1);
    muc_graph *graph;

    if (muc_graph_parse(ctx, (muc_bytes){ data, size, "fuzz" }, &graph) == MUC_OK) {
        check(ctx, graph);
        muc_graph_free(graph);
    }
    muc_context_free(ctx);
    return 0;
}
