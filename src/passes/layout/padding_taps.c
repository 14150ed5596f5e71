/* padding_taps.c - leaves out the taps of convolutions that meet padding alone. */
#include "passes/layout/padding_taps.h"

#include <stdlib.h>
#include <string.h>

#include "passes/rewrite.h"

enum { MOST_ATTRIBUTES = 16, AXES = 2 }; /* AXES: of an image */

/* A convolution's window in one dimension, and which of its taps meet the image. */
typedef struct taps {
    uint32_t kernel, first, end;
    int64_t before, behind, dilation; /* padding */
} taps;

static bool find_taps(const muc_rewrite *r, const muc_node *node, uint32_t d, taps *t)
{
    int64_t stride = muc_node_item_or(node, MUC_KEY_STRIDES, d, 1), last;
    uint32_t in, out;

    t->before = muc_node_item_or(node, MUC_KEY_PADS, d, 0);
    t->behind = muc_node_item_or(node, MUC_KEY_PADS, AXES + d, 0);
    t->dilation = muc_node_item_or(node, MUC_KEY_DILATIONS, d, 1);
    if (!muc_rewrite_dim(&r->old, muc_rewrite_old(r, node->inputs[0]), 1 + d, &in) ||
        !muc_rewrite_dim(&r->old, muc_rewrite_old(r, node->inputs[1]), 1 + d, &t->kernel) ||
        !muc_rewrite_dim(&r->old, muc_rewrite_old(r, node->outputs[0]), 1 + d, &out) || out == 0)
        return false;
    t->first = 0;
    t->end = t->kernel;
    for (last = ((int64_t)out - 1) * stride;
         t->first + 1 < t->end && t->before >= t->dilation && last < t->before; t->first++)
        t->before -= t->dilation;
    while (t->end > t->first + 1 && t->behind >= t->dilation &&
           (t->end - 1 - t->first) * t->dilation - t->before >= in) {
        t->behind -= t->dilation;
        t->end--;
    }
    return true;
}

/* the weights of these taps, of so many channels with so many bytes a tap */
static muc_status add_taps(muc_rewrite *r, const muc_tensor *w, const taps t[AXES],
                           uint32_t channels, size_t pixel, uint32_t *out)
{
    uint32_t rows = t[0].end - t[0].first, columns = t[1].end - t[1].first;
    size_t bytes = (size_t)channels * rows * columns * pixel;
    muc_tensor like = *w;
    muc_status status;
    uint8_t *data, *to;

    like.dims[1] = muc_expr_const(r->graph->pool, rows);
    like.dims[2] = muc_expr_const(r->graph->pool, columns);
    if (muc_rewrite_is_shape(r, w, bytes))
        return muc_rewrite_constant(r, w->name, &like, w->data, bytes, out);
    to = data = malloc(bytes + 1);
    if (!data)
        return muc_fail_nomem(r->ctx, r->old.name, bytes);
    for (uint32_t i = 0; i < channels * rows; i++, to += columns * pixel)
        memcpy(to,
               w->data + (((size_t)(i / rows) * t[0].kernel + t[0].first + i % rows) * t[1].kernel +
                          t[1].first) *
                             pixel,
               columns * pixel);
    status = muc_rewrite_constant(r, w->name, &like, data, bytes, out);
    free(data);
    return status;
}

static muc_status drop_taps(muc_rewrite *r, const muc_node *node, bool *done)
{
    muc_attribute attributes[MOST_ATTRIBUTES];
    int64_t pads[2 * AXES];
    taps t[AXES];
    uint32_t inputs[3], channels, depth;
    const muc_tensor *w;

    if (node->op != MUC_OP_CONV || !muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) ||
        muc_rewrite_old(r, node->inputs[0])->rank != 4 || node->input_count > 3 ||
        node->attribute_count > MOST_ATTRIBUTES || !muc_rewrite_is_constant(r, node->inputs[1]))
        return MUC_OK;
    w = muc_rewrite_old(r, node->inputs[1]);
    if (w->sequence || !muc_rewrite_dim(&r->old, w, 0, &channels) ||
        !muc_rewrite_dim(&r->old, w, 3, &depth) || !find_taps(r, node, 0, &t[0]) ||
        !find_taps(r, node, 1, &t[1]) ||
        (t[0].end - t[0].first == t[0].kernel && t[1].end - t[1].first == t[1].kernel))
        return MUC_OK;
    *done = true;
    for (uint32_t d = 0; d < AXES; d++) {
        pads[d] = t[d].before;
        pads[AXES + d] = t[d].behind;
    }
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        attributes[i] = node->attributes[i];
        if (attributes[i].key == MUC_KEY_PADS)
            attributes[i].value.integers.items = pads;
    }
    for (uint32_t i = 0; i < node->input_count; i += 2)
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i], &inputs[i]));
    MUC_TRY(add_taps(r, w, t, channels, depth * muc_dtype_get(w->dtype)->block_bytes, &inputs[1]));
    return muc_rewrite_change(r, node, MUC_OP_CONV, inputs, node->input_count, attributes,
                              node->attribute_count);
}

muc_status muc_drop_taps(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const rules[] = { drop_taps };

    return muc_rewrite_with(ctx, graph, rules, MUC_COUNT(rules), NULL);
}
