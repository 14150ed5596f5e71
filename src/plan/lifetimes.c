/* lifetimes.c - when tensors live, and which of them may lie over one another. */
#include "plan/lifetimes.h"

#include <stdlib.h>
#include <string.h>

#include "plan/views.h"

typedef struct settler {
    const muc_net *net;
    const uint32_t *order;
    muc_views views;
    muc_lifetimes *result;
    uint32_t *step;  /* of each node */
    uint32_t *root;  /* of each tensor: the one that all of its group are tied to */
    int64_t *offset; /* of each tensor: bytes from that one */
    uint32_t *next;  /* the tensors of a group as a circle */
    bool *is_taken;  /* of each tensor: an output lies over it already */
} settler;

static bool is_kept(const muc_net_tensor *tensor)
{
    return tensor->output || tensor->persistent;
}

/* ---- lives ---- */

static muc_status find_steps(muc_context *ctx, settler *s)
{
    for (uint32_t i = 0; i < s->net->node_count; i++)
        s->step[i] = UINT32_MAX;
    for (uint32_t i = 0; i < s->net->node_count; i++) {
        if (s->order[i] >= s->net->node_count || s->step[s->order[i]] != UINT32_MAX)
            return muc_fail(ctx, MUC_USAGE, "plan", MUC_NO_OFFSET,
                            "step %u of the order names node %u, which is not one to come", i,
                            s->order[i]);
        s->step[s->order[i]] = i;
    }
    return MUC_OK;
}

static muc_status find_lives(muc_context *ctx, settler *s)
{
    const muc_net *net = s->net;
    muc_plan_buffer *buffers = s->result->buffers;
    uint32_t end = net->node_count ? net->node_count - 1 : 0;

    for (uint32_t i = 0; i < net->tensor_count; i++)
        buffers[i] = (muc_plan_buffer){ .name = net->tensors[i].name,
                                        .bytes = net->tensors[i].bytes,
                                        .last = net->tensors[i].output ? end : 0,
                                        .persistent = net->tensors[i].persistent };
    for (uint32_t i = 0; i < net->node_count; i++)
        for (uint32_t k = 0; k < net->nodes[i].output_count; k++) {
            muc_plan_buffer *buffer = &buffers[net->nodes[i].outputs[k]];

            buffer->first = s->step[i];
            buffer->last = buffer->last > s->step[i] ? buffer->last : s->step[i];
        }
    for (uint32_t i = 0; i < net->node_count; i++) {
        const muc_net_node *node = &net->nodes[i];

        for (uint32_t k = 0; k < node->input_count; k++) {
            muc_plan_buffer *buffer = &buffers[node->inputs[k]];
            bool is_made = !net->tensors[node->inputs[k]].input && !buffer->persistent;

            if (is_made && buffer->first >= s->step[i])
                return muc_fail(ctx, MUC_USAGE, "plan", MUC_NO_OFFSET,
                                "the order runs node '%s' before '%s', which it reads, is made",
                                node->name, buffer->name);
            buffer->last = buffer->last > s->step[i] ? buffer->last : s->step[i];
        }
        buffers[net->tensor_count + i] = (muc_plan_buffer){ .name = node->name,
                                                            .bytes = node->scratch_bytes,
                                                            .first = s->step[i],
                                                            .last = s->step[i] };
    }
    return MUC_OK;
}

/* ---- overwriting ---- */

static bool live_together(const settler *s, uint32_t a, uint32_t b)
{
    const muc_plan_buffer *p = &s->result->buffers[a], *q = &s->result->buffers[b];

    return p->persistent || q->persistent || (p->first <= q->last && q->first <= p->last);
}

/* p's bytes may be lost when the node runs: it alone still reads p, and in every place with leave
 * to write the output at `distance` bytes from p's address over it */
static bool may_lose(const settler *s, uint32_t n, uint32_t p, uint32_t output, int64_t distance)
{
    const muc_net_node *node = &s->net->nodes[n];
    bool reads = false;

    if (is_kept(&s->net->tensors[p]) || s->result->buffers[p].last != s->step[n])
        return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        bool has_leave = false;

        if (node->inputs[i] != p)
            continue;
        reads = true;
        for (uint32_t k = 0; k < node->share_count; k++) {
            const muc_net_share *share = &node->shares[k];

            has_leave = has_leave || (share->kind == MUC_SHARE_OVERWRITE && share->input == i &&
                                      share->output == output && share->offset == distance);
        }
        if (!has_leave)
            return false;
    }
    return reads;
}

/* Could `out` and its group, moved by `shift`, lie where they would, beside the group of `in`? */
static bool agree(const settler *s, uint32_t n, uint32_t output, uint32_t in, int64_t shift)
{
    uint32_t out = s->net->nodes[n].outputs[output], p = in, q = out;

    do {
        int64_t low = s->offset[p], high = low + (int64_t)s->net->tensors[p].bytes;

        do {
            int64_t other = s->offset[q] + shift;

            if (other < high && low < other + (int64_t)s->net->tensors[q].bytes &&
                live_together(s, p, q) && !(q == out && may_lose(s, n, p, output, other - low)))
                return false;
            q = s->next[q];
        } while (q != out);
        p = s->next[p];
    } while (p != in);
    return true;
}

static bool overwrite(settler *s, uint32_t n, const muc_net_share *share)
{
    uint32_t in = s->net->nodes[n].inputs[share->input];
    uint32_t out = s->net->nodes[n].outputs[share->output], i = out, next = s->next[out];
    int64_t shift = s->offset[in] + share->offset - s->offset[out];

    if (s->net->tensors[in].bytes == 0 || s->net->tensors[out].bytes == 0 || s->is_taken[in] ||
        s->root[in] == s->root[out] || !agree(s, n, share->output, in, shift))
        return false;
    do {
        s->root[i] = s->root[in];
        s->offset[i] += shift;
        i = s->next[i];
    } while (i != out);
    s->next[out] = s->next[in];
    s->next[in] = next;
    s->is_taken[in] = true;
    return true;
}

/* the first share that can be used, for each output of a node */
static void settle_node(settler *s, uint32_t n)
{
    const muc_net_node *node = &s->net->nodes[n];

    for (uint32_t output = 0; output < node->output_count; output++)
        for (uint32_t k = 0; k < node->share_count; k++) {
            const muc_net_share *share = &node->shares[k];

            if (share->output == output && share->kind == MUC_SHARE_OVERWRITE &&
                overwrite(s, n, share)) {
                s->result->used[n][k] = true;
                s->result->overwrites++;
                break;
            }
        }
}

static void settle(settler *s)
{
    const muc_net *net = s->net;

    memcpy(s->root, s->views.root, net->tensor_count * sizeof(*s->root));
    memcpy(s->offset, s->views.offset, net->tensor_count * sizeof(*s->offset));
    memcpy(s->next, s->views.next, net->tensor_count * sizeof(*s->next));
    for (uint32_t i = 0; i < net->node_count; i++)
        for (uint32_t k = 0; k < net->nodes[i].share_count; k++) {
            s->result->used[i][k] = s->views.used[s->views.first_share[i] + k];
            s->result->views += s->result->used[i][k];
        }
    for (uint32_t i = 0; i < net->node_count; i++)
        settle_node(s, s->order[i]);
    for (uint32_t i = 0; i < net->tensor_count; i++)
        if (s->root[i] != i) {
            s->result->buffers[i].anchor = s->root[i] + 1;
            s->result->buffers[i].offset = s->offset[i] - s->offset[s->root[i]];
        }
}

/* ---- */

static muc_status allocate(muc_context *ctx, muc_arena *arena, settler *s)
{
    const muc_net *net = s->net;
    muc_lifetimes *result = s->result;
    bool *used;

    result->count = net->tensor_count + net->node_count;
    MUC_TRY(muc_views_find(ctx, net, &s->views));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, result->count, &result->buffers));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, net->node_count, &result->used));
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, s->views.first_share[net->node_count], &used));
    for (uint32_t i = 0; i < net->node_count; i++)
        result->used[i] = used + s->views.first_share[i];
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", net->node_count, &s->step));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", net->tensor_count, &s->root));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", net->tensor_count, &s->offset));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", net->tensor_count, &s->next));
    return MUC_NEW_ARRAY(ctx, "plan", net->tensor_count, &s->is_taken);
}

muc_status muc_lifetimes_find(muc_context *ctx, muc_arena *arena, const muc_net *net,
                              const uint32_t *order, muc_lifetimes *result)
{
    settler s = { .net = net, .order = order, .result = result };
    muc_status status;

    *result = (muc_lifetimes){ 0 };
    MUC_TRY(muc_net_check(ctx, net));
    status = allocate(ctx, arena, &s);
    if (status == MUC_OK)
        status = find_steps(ctx, &s);
    if (status == MUC_OK)
        status = find_lives(ctx, &s);
    if (status == MUC_OK)
        settle(&s);
    muc_views_free(&s.views);
    free(s.step);
    free(s.root);
    free(s.offset);
    free(s.next);
    free(s.is_taken);
    return status;
}
