/* order_model.c - what lives is counted by roots of views: the span of their tensors that live. */
#include "plan/order_model.h"

#include <stdlib.h>

static bool is_kept(const muc_net_tensor *tensor)
{
    return tensor->output || tensor->persistent;
}

/* ---- building ---- */

/* fills readers; a node that reads a tensor twice is found by its neighbour in the list */
static void fill_readers(const muc_net *net, muc_order_model *out, uint32_t *at)
{
    for (uint32_t i = 0; i < net->node_count; i++)
        for (uint32_t k = 0; k < net->nodes[i].input_count; k++) {
            uint32_t tensor = net->nodes[i].inputs[k], first = out->first_reader[tensor];

            if (at[tensor] == first || out->readers[at[tensor] - 1] != i)
                out->readers[at[tensor]++] = i;
        }
}

static muc_status find_readers(muc_context *ctx, const muc_net *net, muc_order_model *out)
{
    uint32_t *at = NULL, total = 0;
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", (size_t)net->tensor_count + 1, &out->first_reader));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", net->tensor_count, &at));
    for (uint32_t i = 0; i < net->node_count; i++)
        for (uint32_t k = 0; k < net->nodes[i].input_count; k++)
            at[net->nodes[i].inputs[k]]++;
    for (uint32_t i = 0; i < net->tensor_count; i++) {
        uint32_t count = at[i];

        at[i] = out->first_reader[i] = total;
        total += count;
    }
    out->first_reader[net->tensor_count] = total;
    status = MUC_NEW_ARRAY(ctx, "plan", total, &out->readers);
    if (status == MUC_OK)
        fill_readers(net, out, at);
    /* the places that twins left empty repeat what is there */
    for (uint32_t i = 0; i < net->tensor_count && status == MUC_OK; i++)
        for (uint32_t k = at[i]; k < out->first_reader[i + 1]; k++)
            out->readers[k] = out->readers[out->first_reader[i]];
    free(at);
    return status;
}

muc_status muc_order_model_build(muc_context *ctx, const muc_net *net, muc_order_model *out)
{
    *out = (muc_order_model){ .net = net, .words = (net->node_count + 63) / 64 };
    MUC_TRY(muc_views_find(ctx, net, &out->views));
    MUC_TRY(MUC_NEW_ARRAY(ctx, "plan", net->tensor_count, &out->maker));
    for (uint32_t i = 0; i < net->tensor_count; i++)
        out->maker[i] = UINT32_MAX;
    for (uint32_t i = 0; i < net->node_count; i++)
        for (uint32_t k = 0; k < net->nodes[i].output_count; k++)
            out->maker[net->nodes[i].outputs[k]] = i;
    return find_readers(ctx, net, out);
}

void muc_order_model_free(muc_order_model *model)
{
    muc_views_free(&model->views);
    free(model->maker);
    free(model->readers);
    free(model->first_reader);
    *model = (muc_order_model){ 0 };
}

/* ---- what lives ---- */

static bool is_read_by_others(const muc_order_model *model, const muc_node_set *done,
                              uint32_t tensor, uint32_t node)
{
    for (uint32_t i = model->first_reader[tensor]; i < model->first_reader[tensor + 1]; i++)
        if (model->readers[i] != node && !muc_set_has(done, model->readers[i]))
            return true;
    return false;
}

/* between nodes: made, and still needed */
static bool lives(const muc_order_model *model, const muc_node_set *done, uint32_t tensor)
{
    const muc_net_tensor *t = &model->net->tensors[tensor];
    uint32_t maker = model->maker[tensor];

    if (t->persistent)
        return true;
    if (maker != UINT32_MAX && !muc_set_has(done, maker))
        return false;
    return t->output || is_read_by_others(model, done, tensor, UINT32_MAX);
}

typedef struct extent {
    int64_t low, high;
} extent;

static const extent nothing = { INT64_MAX, INT64_MIN };

static uint64_t bytes_of(extent e)
{
    return e.low < e.high ? (uint64_t)(e.high - e.low) : 0;
}

static extent hull(extent a, extent b)
{
    return (extent){ a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high };
}

static extent extent_of(const muc_order_model *model, uint32_t tensor)
{
    int64_t low = model->views.offset[tensor];

    if (model->net->tensors[tensor].bytes == 0)
        return nothing;
    return (extent){ low, low + (int64_t)model->net->tensors[tensor].bytes };
}

/* the span of those tensors of a root that live, and of those that `node` makes, if there is one */
static extent live_extent(const muc_order_model *model, const muc_node_set *done, uint32_t tensor,
                          uint32_t node)
{
    extent all = nothing;
    uint32_t i = tensor;

    do {
        if (lives(model, done, i) || (node != UINT32_MAX && model->maker[i] == node))
            all = hull(all, extent_of(model, i));
        i = model->views.next[i];
    } while (i != tensor);
    return all;
}

uint64_t muc_order_start_bytes(const muc_order_model *model, const muc_node_set *nothing_done)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < model->net->tensor_count; i++)
        if (model->views.root[i] == i)
            bytes += bytes_of(live_extent(model, nothing_done, i, UINT32_MAX));
    return bytes;
}

bool muc_order_is_ready(const muc_order_model *model, const muc_node_set *done, uint32_t node)
{
    const muc_net_node *n = &model->net->nodes[node];

    for (uint32_t i = 0; i < n->input_count; i++) {
        uint32_t maker = model->maker[n->inputs[i]];

        if (maker != UINT32_MAX && !muc_set_has(done, maker))
            return false;
    }
    return true;
}

/* ---- one node ---- */

/* as in lifetimes.c: the node alone still reads p, with leave to write the output over it */
static bool may_lose(const muc_order_model *model, const muc_node_set *done, uint32_t node,
                     uint32_t p, uint32_t output, int64_t distance)
{
    const muc_net_node *n = &model->net->nodes[node];
    bool reads = false;

    if (is_kept(&model->net->tensors[p]) || is_read_by_others(model, done, p, node))
        return false;
    for (uint32_t i = 0; i < n->input_count; i++) {
        bool has_leave = false;

        if (n->inputs[i] != p)
            continue;
        reads = true;
        for (uint32_t k = 0; k < n->share_count; k++) {
            const muc_net_share *share = &n->shares[k];

            has_leave = has_leave || (share->kind == MUC_SHARE_OVERWRITE && share->input == i &&
                                      share->output == output && share->offset == distance);
        }
        if (!has_leave)
            return false;
    }
    return reads;
}

/* in the set, or an output of the node */
static bool lives_now(const muc_order_model *model, const muc_node_set *done, uint32_t tensor,
                      uint32_t node)
{
    return model->maker[tensor] == node || lives(model, done, tensor);
}

/* `a` and whatever shares its root, moved by shift, lie where nothing is that must stay; what
 * lives of them is added to *all */
static bool clears(const muc_order_model *model, const muc_node_set *done, uint32_t node,
                   const muc_net_share *share, uint32_t p, int64_t shift, extent *all)
{
    uint32_t out = model->net->nodes[node].outputs[share->output], q = out;
    extent a = extent_of(model, p);

    do {
        extent b = extent_of(model, q);

        b = (extent){ b.low + shift, b.high + shift };
        if (lives_now(model, done, q, node)) {
            *all = hull(*all, b);
            if (b.low < a.high && a.low < b.high &&
                !(q == out && may_lose(model, done, node, p, share->output, b.low - a.low)))
                return false;
        }
        q = model->views.next[q];
    } while (q != out);
    return true;
}

/* bytes that an output and an input have in common if the share is used; 0 if it cannot be */
static uint64_t saved_by(const muc_order_model *model, const muc_node_set *done, uint32_t node,
                         const muc_net_share *share)
{
    const muc_net_node *n = &model->net->nodes[node];
    uint32_t in = n->inputs[share->input], out = n->outputs[share->output], p = in;
    int64_t shift = model->views.offset[in] + share->offset - model->views.offset[out];
    extent ins = nothing, outs = nothing;
    uint64_t apart, together;

    if (model->net->tensors[in].bytes == 0 || model->net->tensors[out].bytes == 0 ||
        model->views.root[in] == model->views.root[out])
        return 0;
    do {
        if (lives_now(model, done, p, node)) {
            ins = hull(ins, extent_of(model, p));
            if (!clears(model, done, node, share, p, shift, &outs))
                return 0;
        }
        p = model->views.next[p];
    } while (p != in);
    apart = bytes_of(ins) + bytes_of(outs);
    together = bytes_of(hull(ins, outs));
    return apart > together ? apart - together : 0;
}

/* each output takes the first share that saves, and no input is taken twice */
static uint64_t saved(const muc_order_model *model, const muc_node_set *done, uint32_t node)
{
    const muc_net_node *n = &model->net->nodes[node];
    uint32_t taken[8], taken_count = 0;
    uint64_t bytes = 0;

    for (uint32_t output = 0; output < n->output_count; output++)
        for (uint32_t k = 0; k < n->share_count && taken_count < MUC_COUNT(taken); k++) {
            const muc_net_share *share = &n->shares[k];
            bool is_taken = false;
            uint64_t gain;

            if (share->output != output || share->kind != MUC_SHARE_OVERWRITE)
                continue;
            for (uint32_t i = 0; i < taken_count; i++)
                is_taken = is_taken || taken[i] == n->inputs[share->input];
            gain = is_taken ? 0 : saved_by(model, done, node, share);
            if (gain == 0)
                continue;
            bytes += gain;
            taken[taken_count++] = n->inputs[share->input];
            break;
        }
    return bytes;
}

/* Is tensor the first of the node's inputs and outputs, in this order, with its root? */
static bool comes_first(const muc_order_model *model, const muc_net_node *n, uint32_t position)
{
    uint32_t inputs = n->input_count;
    uint32_t root =
        model->views.root[position < inputs ? n->inputs[position] : n->outputs[position - inputs]];

    for (uint32_t i = 0; i < position; i++)
        if (model->views.root[i < inputs ? n->inputs[i] : n->outputs[i - inputs]] == root)
            return false;
    return true;
}

uint64_t muc_order_run(const muc_order_model *model, muc_node_set *done, uint64_t live_bytes,
                       uint32_t node, uint64_t *meanwhile)
{
    const muc_net_node *n = &model->net->nodes[node];
    uint64_t before = 0, during = 0, after = 0;

    for (uint32_t i = 0; i < n->input_count + n->output_count; i++) {
        uint32_t tensor = i < n->input_count ? n->inputs[i] : n->outputs[i - n->input_count];

        if (!comes_first(model, n, i))
            continue;
        before += bytes_of(live_extent(model, done, tensor, UINT32_MAX));
        during += bytes_of(live_extent(model, done, tensor, node));
        done[node / 64] |= (uint64_t)1 << node % 64;
        after += bytes_of(live_extent(model, done, tensor, UINT32_MAX));
        done[node / 64] &= ~((uint64_t)1 << node % 64);
    }
    *meanwhile = live_bytes - before + during + n->scratch_bytes - saved(model, done, node);
    return live_bytes - before + after;
}
