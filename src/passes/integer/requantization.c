/* requantization.c - requantizations that do nothing. */
#include "passes/integer/requantization.h"

#include <string.h>

/* all elements of a constant of i32 are value */
static bool all_are(const muc_tensor *tensor, int64_t value)
{
    if (tensor->kind != MUC_TENSOR_CONST || !tensor->data)
        return false;
    for (uint64_t i = 0; i < tensor->bytes; i += sizeof(int32_t)) {
        int32_t word;

        memcpy(&word, tensor->data + i, sizeof(word));
        if (word != value)
            return false;
    }
    return true;
}

static bool clamps_nothing(muc_dtype dtype, int64_t low, int64_t high)
{
    int64_t least, greatest;

    return muc_dtype_range(dtype, &least, &greatest) && low <= least && high >= greatest;
}

bool muc_requant_is_identity(const muc_graph *graph, const muc_node *node)
{
    const muc_tensor *tensors = graph->tensors;

    return node->op == MUC_OP_REQUANT_SHIFT &&
           muc_node_integer(node, MUC_KEY_TO) == (int64_t)tensors[node->inputs[0]].dtype &&
           clamps_nothing(tensors[node->inputs[0]].dtype, muc_node_integer(node, MUC_KEY_CLAMP_MIN),
                          muc_node_integer(node, MUC_KEY_CLAMP_MAX)) &&
           all_are(&tensors[node->inputs[1]], INT64_C(1)
                                                  << muc_node_integer(node, MUC_KEY_SHIFT)) &&
           all_are(&tensors[node->inputs[2]], 0);
}
