/* order_model.c - counts the bytes of tensors that live between nodes and while one runs. */
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

static uint64_t live_bytes_of(const muc_order_model *model, const muc_node_set *done,
                              uint32_t tensor)
{
    return lives(model, done, tensor) ? model->net->tensors[tensor].bytes : 0;
}

uint64_t muc_order_start_bytes(const muc_order_model *model, const muc_node_set *nothing_done)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < model->net->tensor_count; i++)
        bytes += live_bytes_of(model, nothing_done, i);
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

/* Whether p may be overwritten: the node alone still reads it, with leave to write the output over
 * it. */
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

            has_leave = has_leave ||
                        (share->input == i && share->output == output && share->offset == distance);
        }
        if (!has_leave)
            return false;
    }
    return reads;
}

/* bytes that an output and an input have in common if the share is used; 0 if it cannot be */
static uint64_t saved_by(const muc_order_model *model, const muc_node_set *done, uint32_t node,
                         const muc_net_share *share)
{
    const muc_net_node *n = &model->net->nodes[node];
    uint32_t in = n->inputs[share->input];
    int64_t in_bytes = (int64_t)model->net->tensors[in].bytes;
    int64_t out_bytes = (int64_t)model->net->tensors[n->outputs[share->output]].bytes;
    int64_t low = share->offset > 0 ? share->offset : 0;
    int64_t high = share->offset + out_bytes < in_bytes ? share->offset + out_bytes : in_bytes;

    if (low >= high || !may_lose(model, done, node, in, share->output, share->offset))
        return 0;
    return (uint64_t)(high - low);
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

            if (share->output != output)
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

/* Is this the first time that the node's list of inputs names the tensor? */
static bool comes_first(const muc_net_node *n, uint32_t position)
{
    for (uint32_t i = 0; i < position; i++)
        if (n->inputs[i] == n->inputs[position])
            return false;
    return true;
}

/* bytes of the inputs and outputs of a node that live */
static uint64_t live_around(const muc_order_model *model, const muc_node_set *done,
                            const muc_net_node *n)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < n->input_count; i++)
        bytes += comes_first(n, i) ? live_bytes_of(model, done, n->inputs[i]) : 0;
    for (uint32_t i = 0; i < n->output_count; i++)
        bytes += live_bytes_of(model, done, n->outputs[i]);
    return bytes;
}

uint64_t muc_order_run(const muc_order_model *model, muc_node_set *done, uint64_t live_bytes,
                       uint32_t node, uint64_t *meanwhile)
{
    const muc_net_node *n = &model->net->nodes[node];
    uint64_t before = live_around(model, done, n), after, made = 0;

    for (uint32_t i = 0; i < n->output_count; i++)
        made += model->net->tensors[n->outputs[i]].bytes;
    done[node / 64] |= (uint64_t)1 << node % 64;
    after = live_around(model, done, n);
    done[node / 64] &= ~((uint64_t)1 << node % 64);
    *meanwhile = live_bytes + made + n->scratch_bytes - saved(model, done, node);
    return live_bytes - before + after;
}
