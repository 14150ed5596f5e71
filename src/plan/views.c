/* views.c - unites tensors that hold the same bytes. */
#include "plan/views.h"

#include <stdlib.h>

/* every tensor of a's root lies within a */
static bool holds_all(const muc_net *net, const muc_views *views, uint32_t a)
{
    int64_t low = views->offset[a], high = low + (int64_t)net->tensors[a].bytes;

    for (uint32_t i = views->next[a]; i != a; i = views->next[i])
        if (views->offset[i] < low || views->offset[i] + (int64_t)net->tensors[i].bytes > high)
            return false;
    return true;
}

/* puts a and all of its root under b's, a at `offset` bytes from b */
static void unite(muc_views *views, uint32_t a, uint32_t b, int64_t offset)
{
    int64_t shift = views->offset[b] + offset - views->offset[a];
    uint32_t i = a, next = views->next[a];

    do {
        views->root[i] = views->root[b];
        views->offset[i] += shift;
        i = views->next[i];
    } while (i != a);
    views->next[a] = views->next[b];
    views->next[b] = next;
}

static bool take(const muc_net *net, const muc_net_node *node, const muc_net_share *share,
                 muc_views *views)
{
    uint32_t in = node->inputs[share->input], out = node->outputs[share->output];

    if (share->kind != MUC_SHARE_VIEW || net->tensors[in].bytes == 0 ||
        net->tensors[out].bytes == 0)
        return false;
    if (views->root[in] == views->root[out])
        return views->offset[out] == views->offset[in] + share->offset;
    if (share->offset >= 0 && net->tensors[out].bytes <= net->tensors[in].bytes &&
        views->next[out] == out) {
        unite(views, out, in, share->offset);
        return true;
    }
    if (share->offset > 0 || !holds_all(net, views, in))
        return false;
    unite(views, in, out, -share->offset);
    return true;
}

static muc_status allocate(muc_context *ctx, const muc_net *net, muc_views *out)
{
    size_t shares = 0;

    for (uint32_t i = 0; i < net->node_count; i++)
        shares += net->nodes[i].share_count;
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", net->tensor_count, &out->root));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", net->tensor_count, &out->offset));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", net->tensor_count, &out->next));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", shares, &out->used));
    return MUC_NEW_ARRAY(ctx, "plan", (size_t)net->node_count + 1, &out->first_share);
}

muc_status muc_views_find(muc_context *ctx, const muc_net *net, muc_views *out)
{
    uint32_t at = 0;

    *out = (muc_views){ 0 };
    MUC_TRY(allocate(ctx, net, out));
    for (uint32_t i = 0; i < net->tensor_count; i++)
        out->root[i] = out->next[i] = i;
    for (uint32_t i = 0; i < net->node_count; i++) {
        const muc_net_node *node = &net->nodes[i];

        out->first_share[i] = at;
        for (uint32_t k = 0; k < node->share_count; k++)
            out->used[at++] = take(net, node, &node->shares[k], out);
    }
    out->first_share[net->node_count] = at;
    return MUC_OK;
}

void muc_views_free(muc_views *views)
{
    free(views->root);
    free(views->offset);
    free(views->next);
    free(views->used);
    free(views->first_share);
    *views = (muc_views){ 0 };
}
