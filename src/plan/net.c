/* net.c - checks that a network's nodes and tensors agree. */
#include "plan/net.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 65536, BYTES_BITS = 40 };

static muc_status bad(muc_context *ctx, const muc_net_node *node, const char *what)
{
    return muc_fail(ctx, MUC_USAGE, "plan", MUC_NO_OFFSET, "node '%s': %s", node->name, what);
}

static muc_status check_share(muc_context *ctx, const muc_net_node *node,
                              const muc_net_share *share)
{
    const int64_t most = (int64_t)1 << BYTES_BITS;

    if (share->input >= node->input_count || share->output >= node->output_count)
        return bad(ctx, node, "a share names an input or output that it does not have");
    if (share->offset > most || share->offset < -most)
        return bad(ctx, node, "a share's offset is out of range");
    return MUC_OK;
}

/* is_made: of each tensor, whether it holds anything before the node runs */
static muc_status check_node(muc_context *ctx, const muc_net *net, const muc_net_node *node,
                             bool *is_made)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] >= net->tensor_count || !is_made[node->inputs[i]])
            return bad(ctx, node, "reads a tensor that nothing before it makes");
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] >= net->tensor_count || is_made[node->outputs[i]])
            return bad(ctx, node, "makes a tensor that is there already");
        is_made[node->outputs[i]] = true;
    }
    if (node->scratch_bytes >> BYTES_BITS)
        return bad(ctx, node, "needs more than 2^40 bytes of scratch");
    for (uint32_t i = 0; i < node->share_count; i++)
        MUC_TRY(check_share(ctx, node, &node->shares[i]));
    return MUC_OK;
}

muc_status muc_net_check(muc_context *ctx, const muc_net *net)
{
    bool *is_made = NULL;
    muc_status status = MUC_OK;

    if (net->tensor_count > MOST || net->node_count > MOST)
        return muc_fail(ctx, MUC_NOFIT, "plan", MUC_NO_OFFSET,
                        "%u nodes and %u tensors, at most %u of each", net->node_count,
                        net->tensor_count, (unsigned)MOST);
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", net->tensor_count, &is_made));
    for (uint32_t i = 0; i < net->tensor_count && status == MUC_OK; i++) {
        is_made[i] = net->tensors[i].input || net->tensors[i].persistent;
        if (net->tensors[i].bytes >> BYTES_BITS)
            status = muc_fail(ctx, MUC_NOFIT, "plan", MUC_NO_OFFSET, "'%s' of %llu bytes",
                              net->tensors[i].name, (unsigned long long)net->tensors[i].bytes);
    }
    for (uint32_t i = 0; i < net->node_count && status == MUC_OK; i++)
        status = check_node(ctx, net, &net->nodes[i], is_made);
    free(is_made);
    return status;
}
