/* A state dict that is read whole, or a description of a network that has weights of every kind. */
#include "formats/torch/torch_arch.h"
#include "fuzz.h"

enum { SIZE = 2 };

static void read_state(muc_context *ctx, muc_arena *arena, muc_bytes bytes)
{
    muc_torch_state state;

    if (muc_torch_read(ctx, arena, bytes, &state) != MUC_OK || muc_torch_widen(&state) != MUC_OK)
        return;
    for (size_t i = 0; i < state.count; i++)
        for (uint64_t k = 0; state.items[i].data && k < state.items[i].elements; k++)
            if (state.items[i].data[k] > 1e30f)
                return;
}

static void build(muc_context *ctx, muc_arena *arena, muc_bytes bytes)
{
    static const float values[SIZE * 8] = { 1 };
    muc_torch_weight weights[] = {
        { .name = "c.bias", .rank = 1, .dims = { SIZE }, .elements = SIZE, .data = values },
        { .name = "c.weight",
          .rank = 4,
          .dims = { SIZE, 1, 1, 1 },
          .elements = SIZE,
          .data = values },
        { .name = "l.weight", .rank = 2, .dims = { SIZE, 8 }, .elements = 16, .data = values },
        { .name = "n.bias", .rank = 1, .dims = { SIZE }, .elements = SIZE, .data = values },
        { .name = "n.running_mean", .rank = 1, .dims = { SIZE }, .elements = SIZE, .data = values },
        { .name = "n.running_var", .rank = 1, .dims = { SIZE }, .elements = SIZE, .data = values },
        { .name = "n.weight", .rank = 1, .dims = { SIZE }, .elements = SIZE, .data = values },
    };
    muc_torch_state state = { ctx, arena, { NULL, 0, "weights" }, weights, MUC_COUNT(weights) };
    muc_graph *graph = NULL;
    muc_arch_text text;

    if (muc_arch_parse(ctx, arena, bytes, &text) == MUC_OK &&
        muc_graph_new(ctx, "fuzz", &graph) == MUC_OK &&
        muc_arch_build(&text, &state, graph) == MUC_OK && muc_graph_verify(ctx, graph) != MUC_OK)
        __builtin_trap();
    muc_graph_free(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const muc_bytes bytes = { data, size, "fuzz" };
    muc_context *ctx = muc_context_new(1);
    muc_arena arena = { 0 };

    if (muc_torch_probe(bytes))
        read_state(ctx, &arena, bytes);
    else
        build(ctx, &arena, bytes);
    muc_arena_free(&arena);
    muc_context_free(ctx);
    return 0;
}
