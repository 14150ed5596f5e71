/* torch.c - reads a file of PyTorch weights, and the description of the network that they belong
 * to. */
#include <inttypes.h>
#include <string.h>

#include "formats/network.h"
#include "formats/torch/torch_arch.h"

bool muc_torch_probe_network(const muc_source *source)
{
    return !source->is_folder && muc_torch_probe(source->bytes);
}

static bool same_shape(const muc_graph *graph, const muc_tensor *tensor, const muc_torch_weight *w)
{
    bool same = tensor->rank == w->rank;

    for (uint32_t i = 0; same && i < w->rank; i++)
        same = muc_expr_get(graph->pool, tensor->dims[i])->lo == w->dims[i];
    return same;
}

/* Another file's network: constants of weights' names get their values. */
static muc_status replace_constants(muc_context *ctx, muc_torch_state *state, muc_graph *graph)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        muc_tensor *tensor = &graph->tensors[i];
        muc_torch_weight *w =
            tensor->kind == MUC_TENSOR_CONST ? muc_torch_find(state, tensor->name) : NULL;

        if (!w || !w->data)
            continue;
        if (tensor->dtype != MUC_F32 || !same_shape(graph, tensor, w))
            return muc_fail(ctx, MUC_MALFORMED, state->bytes.name, MUC_NO_OFFSET,
                            "tensor '%.200s' is of another shape or type in the network", w->name);
        tensor->data = (const uint8_t *)w->data;
        w->used = true;
    }
    return muc_torch_check_used(state);
}

muc_status muc_torch_read_network(muc_context *ctx, const muc_source *source,
                                  const muc_network_options *options, muc_network *network)
{
    muc_network_options inner = *options;
    const muc_network_format *format;
    muc_torch_state state;
    muc_arch_text text;
    muc_source arch;

    MUC_TRY(muc_network_open_arch(ctx, source, options, network, &arch));
    MUC_TRY(muc_torch_read(ctx, &network->arena, source->bytes, &state));
    MUC_TRY(muc_torch_widen(&state));
    format = muc_network_recognise(&arch);
    if (format) {
        inner.arch = NULL;
        MUC_TRY(format->read(ctx, &arch, &inner, network));
        if (network->listing.lacks)
            return MUC_OK;
        return replace_constants(ctx, &state, network->graph);
    }
    MUC_TRY(muc_network_refuse_shapes(ctx, &arch, options));
    MUC_TRY(muc_arch_parse(ctx, &network->arena, arch.bytes, &text));
    MUC_TRY(muc_graph_new(ctx, source->path, &network->graph));
    return muc_arch_build(&text, &state, network->graph);
}
