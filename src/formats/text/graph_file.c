/* graph_file.c - reads a graph's own text (graph/graph_text.c) as a network's file. */
#include <string.h>

#include "formats/network.h"

static const char begin[] = "graph ";

bool muc_text_probe_network(const muc_source *source)
{
    return !source->is_folder && source->bytes.size >= sizeof(begin) - 1 &&
           memcmp(source->bytes.data, begin, sizeof(begin) - 1) == 0;
}

muc_status muc_text_read_network(muc_context *ctx, const muc_source *source,
                                 const muc_network_options *options, muc_network *network)
{
    MUC_TRY(muc_network_refuse_shapes(ctx, source, options));
    MUC_TRY(muc_graph_parse(ctx, source->bytes, &network->graph));
    for (uint32_t i = 0; i < network->graph->tensor_count; i++) {
        const muc_tensor *tensor = &network->graph->tensors[i];

        if (tensor->kind == MUC_TENSOR_CONST && tensor->bytes && !tensor->data)
            return muc_fail(ctx, MUC_UNSUPPORTED, source->path, MUC_NO_OFFSET,
                            "constant '%s': the text has its size, not its values", tensor->name);
    }
    return MUC_OK;
}
