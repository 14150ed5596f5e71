/* pixel_windows.c - rewrites convolutions, pools and norms over pixels as the operators that
 * kernels have. */
#include "passes/layout/pixel_windows.h"

#include <stdlib.h>
#include <string.h>

#include "passes/layout/padding_taps.h"
#include "passes/rewrite.h"
#include "passes/simplify/join_norms.h"

enum { MOST_ATTRIBUTES = 16, SPATIAL = 3 };

static bool is_last(const muc_node *node)
{
    return muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) == 1;
}

static const muc_tensor *old(const muc_rewrite *r, uint32_t id)
{
    return muc_rewrite_old(r, id);
}

static muc_expr number(const muc_rewrite *r, uint32_t value)
{
    return muc_expr_const(r->graph->pool, value);
}

/* ---- transposed convolutions ---- */

/* One that is a convolution whose pixels are blocks. Channels last, the convolution's channels are
 * those of each pixel of a block by turns; channels first, which groups need, a channel's pixels
 * follow each other. */
typedef struct blocks {
    bool last; /* channels */
    uint32_t spatial, rank, groups;
    uint32_t kernel[SPATIAL], stride[SPATIAL], dilation[SPATIAL];
    uint32_t taps[SPATIAL];   /* of the convolution's window */
    uint32_t in[SPATIAL];     /* pixels */
    uint32_t before[SPATIAL]; /* whole blocks that nobody asks for: less padding */
    uint32_t made[SPATIAL];   /* of the convolution */
    uint32_t first[SPATIAL];  /* of the blocks' pixels that are asked for, and how many */
    uint32_t out[SPATIAL];
    uint32_t in_channels, channels, phases; /* pixels of a block */
} blocks;

/* dimension d of the window */
static bool find_block(const muc_rewrite *r, const muc_node *node, blocks *b, uint32_t d)
{
    const muc_tensor *x = old(r, node->inputs[0]), *w = old(r, node->inputs[1]);
    const muc_tensor *y = old(r, node->outputs[0]);
    uint32_t at = b->last ? 1 : 2;
    int64_t stride = muc_node_item_or(node, MUC_KEY_STRIDES, d, 1);
    int64_t dilation = muc_node_item_or(node, MUC_KEY_DILATIONS, d, 1);
    int64_t pad = muc_node_item_or(node, MUC_KEY_PADS, d, 0);

    if (stride < 1 || stride > 16 || dilation < 1 || dilation > 16 || pad < 0 || pad > 65535 ||
        !muc_rewrite_dim(&r->old, w, at + d, &b->kernel[d]) ||
        !muc_rewrite_dim(&r->old, x, at + d, &b->in[d]) ||
        !muc_rewrite_dim(&r->old, y, at + d, &b->out[d]) || b->out[d] == 0)
        return false;
    b->stride[d] = (uint32_t)stride;
    b->dilation[d] = (uint32_t)dilation;
    b->taps[d] = ((b->kernel[d] - 1) * b->dilation[d] + b->stride[d]) / b->stride[d];
    b->before[d] = (uint32_t)(pad / stride);
    b->before[d] = b->before[d] < b->taps[d] ? b->before[d] : b->taps[d] - 1;
    b->first[d] = (uint32_t)pad - b->before[d] * b->stride[d];
    b->made[d] = (b->first[d] + b->out[d] + b->stride[d] - 1) / b->stride[d];
    if (b->made[d] + b->before[d] < b->in[d])
        b->made[d] = b->in[d] - b->before[d];
    b->phases *= b->stride[d];
    return true;
}

/* whether the node is there in the form in which it is split: groups with channels first */
static bool find_blocks(const muc_rewrite *r, const muc_node *node, blocks *b)
{
    const muc_tensor *x = old(r, node->inputs[0]), *w = old(r, node->inputs[1]);

    *b = (blocks){ .last = is_last(node), .rank = x->rank, .spatial = x->rank - 2, .phases = 1 };
    b->groups = (uint32_t)muc_node_integer_or(node, MUC_KEY_GROUPS, 1);
    if (b->last != (b->groups == 1) || x->rank < 3 || b->spatial > SPATIAL ||
        !muc_rewrite_is_constant(r, node->inputs[1]) || w->sequence ||
        (b->groups > 1 && w->quantization) ||
        !muc_rewrite_dim(&r->old, w, b->last ? 0 : 1, &b->channels) ||
        !muc_rewrite_dim(&r->old, w, b->last ? w->rank - 1 : 0, &b->in_channels))
        return false;
    b->channels *= b->groups;
    for (uint32_t d = 0; d < b->spatial; d++)
        if (!find_block(r, node, b, d))
            return false;
    return true;
}

static uint32_t product_of(const uint32_t *extents, uint32_t spatial)
{
    uint32_t all = 1;

    for (uint32_t d = 0; d < spatial; d++)
        all *= extents[d];
    return all;
}

/* the channel that one of the convolution's is a pixel of, and which pixel of a block */
static uint32_t channel_of(const blocks *b, uint32_t made, uint32_t *phase)
{
    *phase = b->last ? made / b->channels : made % b->phases;
    return b->last ? made % b->channels : made / b->phases;
}

/* the kernel element that pixel `phase` of a block meets at a tap: phase + stride t at the tap t
 * before the last; false if none */
static bool meets(const blocks *b, uint32_t phase, uint32_t tap, uint32_t *element)
{
    uint32_t step = 1;

    *element = 0;
    for (uint32_t d = b->spatial; d-- > 0;) {
        uint32_t k = phase % b->stride[d] + b->stride[d] * (b->taps[d] - 1 - tap % b->taps[d]);

        phase /= b->stride[d];
        tap /= b->taps[d];
        if (k % b->dilation[d] != 0 || k / b->dilation[d] >= b->kernel[d])
            return false;
        *element += k / b->dilation[d] * step;
        step *= b->kernel[d];
    }
    return true;
}

/* weights [made][taps..][in] of those [out][kernel..][in], channels first [made][in][taps..] of
 * those [in][out of a group][kernel..] */
static void spread_weights(const blocks *b, const muc_tensor *w, uint8_t *out)
{
    const size_t width = muc_dtype_get(w->dtype)->block_bytes;
    const uint32_t taps = product_of(b->taps, b->spatial),
                   kernel = product_of(b->kernel, b->spatial);
    const uint32_t in = b->in_channels / b->groups, each = b->channels / b->groups;
    const muc_quantization *q = w->quantization;

    for (uint32_t made = 0; made < b->phases * b->channels; made++)
        for (uint32_t t = 0; t < taps; t++) {
            uint32_t phase, c = channel_of(b, made, &phase), k;
            bool any = meets(b, phase, t, &k);

            for (uint32_t i = 0; i < in; i++) {
                size_t to = b->last ? ((size_t)made * taps + t) * in + i
                                    : ((size_t)made * in + i) * taps + t;
                size_t from = b->last
                                  ? ((size_t)c * kernel + k) * in + i
                                  : ((size_t)(c / each * in + i) * each + c % each) * kernel + k;

                if (any)
                    memcpy(out + to * width, w->data + from * width, width);
                else /* what stands for 0 */
                    memset(out + to * width, q ? (int)q->zero_points[q->count > 1 ? c : 0] : 0,
                           width);
            }
        }
}

/* a constant's numbers of each channel again for each pixel of a block */
static muc_status repeat_quantization(muc_rewrite *r, const blocks *b, const muc_quantization *from,
                                      muc_quantization *out)
{
    *out = *from;
    if (from->count == 1)
        return MUC_OK;
    out->count = from->count * b->phases;
    MUC_TRY(MUC_ARENA_NEW(r->ctx, &r->graph->arena, out->count, (float **)(uintptr_t)&out->scales));
    MUC_TRY(MUC_ARENA_NEW(r->ctx, &r->graph->arena, out->count,
                          (int32_t **)(uintptr_t)&out->zero_points));
    for (uint32_t i = 0; i < out->count; i++) {
        uint32_t phase, c = channel_of(b, i, &phase);

        ((float *)(uintptr_t)out->scales)[i] = from->scales[c];
        ((int32_t *)(uintptr_t)out->zero_points)[i] = from->zero_points[c];
    }
    return MUC_OK;
}

static muc_status add_spread(muc_rewrite *r, const blocks *b, const muc_tensor *w, uint32_t *out)
{
    const uint32_t in = b->in_channels / b->groups;
    size_t bytes = (size_t)b->phases * b->channels * product_of(b->taps, b->spatial) * in *
                   muc_dtype_get(w->dtype)->block_bytes;
    muc_tensor like = *w;
    muc_quantization q;
    muc_status status;
    uint8_t *data;

    like.dims[0] = number(r, b->phases * b->channels);
    like.dims[b->last ? b->rank - 1 : 1] = number(r, in);
    for (uint32_t d = 0; d < b->spatial; d++)
        like.dims[(b->last ? 1 : 2) + d] = number(r, b->taps[d]);
    if (w->quantization) {
        MUC_TRY(repeat_quantization(r, b, w->quantization, &q));
        like.quantization = &q;
    }
    if (muc_rewrite_is_shape(r, w, bytes))
        return muc_rewrite_constant(r, w->name, &like, w->data, bytes, out);
    data = malloc(bytes + 1);
    if (!data)
        return muc_fail_nomem(r->ctx, r->old.name, bytes);
    spread_weights(b, w, data);
    status = muc_rewrite_constant(r, w->name, &like, data, bytes, out);
    free(data);
    return status;
}

static muc_status add_repeated(muc_rewrite *r, const blocks *b, const muc_tensor *bias,
                               uint32_t *out)
{
    const size_t width = muc_dtype_get(bias->dtype)->block_bytes;
    muc_tensor like = *bias;
    muc_quantization q;
    muc_status status;
    uint8_t *data;

    like.dims[0] = number(r, b->phases * b->channels);
    if (bias->quantization) {
        MUC_TRY(repeat_quantization(r, b, bias->quantization, &q));
        like.quantization = &q;
    }
    data = malloc((size_t)bias->bytes * b->phases + 1);
    if (!data)
        return muc_fail_nomem(r->ctx, r->old.name, (size_t)bias->bytes * b->phases);
    for (uint32_t i = 0; i < b->phases * b->channels; i++) {
        uint32_t phase, c = channel_of(b, i, &phase);

        memcpy(data + i * width, bias->data + c * width, width);
    }
    status = muc_rewrite_constant(r, bias->name, &like, data, bias->bytes * b->phases, out);
    free(data);
    return status;
}

/* what the convolution has of its own; the rest is how sums become integers */
static bool is_shape(muc_attribute_key key)
{
    return key == MUC_KEY_CHANNELS_LAST || key == MUC_KEY_PADS || key == MUC_KEY_STRIDES ||
           key == MUC_KEY_DILATIONS || key == MUC_KEY_OUTPUT_PADDING || key == MUC_KEY_GROUPS;
}

/* [N, made.., phases * C] */
static muc_status add_conv(muc_rewrite *r, const muc_node *node, const blocks *b, uint32_t *out)
{
    uint32_t bias = muc_node_input(node, 2), inputs[3], count = 2;
    muc_attribute attributes[MOST_ATTRIBUTES];
    int64_t pads[2 * SPATIAL];

    MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &inputs[0]));
    MUC_TRY(add_spread(r, b, old(r, node->inputs[1]), &inputs[1]));
    if (bias != MUC_NO_ID)
        MUC_TRY(add_repeated(r, b, old(r, bias), &inputs[2]));
    for (uint32_t d = 0; d < b->spatial; d++) {
        pads[d] = (int64_t)b->taps[d] - 1 - b->before[d];
        pads[b->spatial + d] = (int64_t)b->made[d] + b->before[d] - b->in[d];
    }
    attributes[0] = (muc_attribute){ .key = MUC_KEY_CHANNELS_LAST, .value.integer = b->last };
    attributes[1] =
        (muc_attribute){ .key = MUC_KEY_PADS, .value.integers = { pads, 2 * b->spatial } };
    if (b->groups > 1)
        attributes[count++] = (muc_attribute){ .key = MUC_KEY_GROUPS, .value.integer = b->groups };
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (!is_shape(node->attributes[i].key) && count < MOST_ATTRIBUTES)
            attributes[count++] = node->attributes[i];
    return muc_rewrite_add(r, MUC_OP_CONV, node->name, inputs, bias == MUC_NO_ID ? 2 : 3,
                           attributes, count, old(r, node->outputs[0])->quantization, out);
}

/* the dimensions of a block beside those of pixels, then in turns with them; whether that moves
 * anything */
static bool turn_blocks(const muc_rewrite *r, const blocks *b, muc_expr *apart, int64_t *perm)
{
    const uint32_t s = b->spatial, pixels = b->last ? 1 : 2 + s, block = b->last ? 1 + s : 2;
    bool moves = !b->last;

    apart[b->last ? 1 + 2 * s : 1] = number(r, b->channels);
    perm[0] = 0;
    perm[b->last ? 1 + 2 * s : 1] = b->last ? 1 + 2 * s : 1;
    for (uint32_t d = 0; d < s; d++) {
        apart[pixels + d] = number(r, b->made[d]);
        apart[block + d] = number(r, b->stride[d]);
        perm[(b->last ? 1 : 2) + 2 * d] = pixels + d;
        perm[(b->last ? 2 : 3) + 2 * d] = block + d;
        moves = moves || (d + 1 < s && b->stride[d] > 1);
    }
    return moves;
}

/* blocks become pixels: [N, made * stride.., C] */
static muc_status add_pixels(muc_rewrite *r, const muc_node *node, const blocks *b, uint32_t x,
                             uint32_t *out)
{
    int64_t perm[MUC_GRAPH_MAX_RANK];
    const muc_attribute order = { .key = MUC_KEY_PERM,
                                  .value.integers = { perm, 2 + 2 * b->spatial } };
    const muc_attribute block[] = {
        { .key = MUC_KEY_BLOCK, .value.integer = b->stride[0] },
        { .key = MUC_KEY_CHANNELS_LAST, .value.integer = b->last },
        { .key = MUC_KEY_MODE, .value.integer = MUC_WORD_CRD },
    };
    muc_expr batch = old(r, node->inputs[0])->dims[0];
    muc_expr apart[MUC_GRAPH_MAX_RANK] = { batch }, whole[2 + SPATIAL] = { batch };

    if (b->spatial == 2 && b->stride[0] == b->stride[1] && b->stride[0] > 1)
        return muc_rewrite_add(r, MUC_OP_DEPTH_TO_SPACE, node->name, &x, 1, block, b->last ? 2 : 3,
                               NULL, out);
    if (turn_blocks(r, b, apart, perm)) {
        MUC_TRY(muc_rewrite_add_view(r, node->name, x, apart, 2 + 2 * b->spatial, &x));
        MUC_TRY(muc_rewrite_add(r, MUC_OP_TRANSPOSE, node->name, &x, 1, &order, 1, NULL, &x));
    }
    for (uint32_t d = 0; d < b->spatial; d++)
        whole[(b->last ? 1 : 2) + d] = number(r, b->made[d] * b->stride[d]);
    whole[b->last ? 1 + b->spatial : 1] = number(r, b->channels);
    return muc_rewrite_add_view(r, node->name, x, whole, b->rank, out);
}

static muc_status split_transposed(muc_rewrite *r, const muc_node *node, bool *done)
{
    uint32_t bias = muc_node_input(node, 2), x;
    int64_t axes[SPATIAL];
    muc_expr starts[SPATIAL], sizes[SPATIAL];
    bool all = true;
    muc_cut cut;
    blocks b;

    if (node->op != MUC_OP_CONV_TRANSPOSE || !find_blocks(r, node, &b) ||
        (bias != MUC_NO_ID && !muc_rewrite_is_constant(r, bias)))
        return MUC_OK;
    *done = true;
    MUC_TRY(add_conv(r, node, &b, &x));
    MUC_TRY(add_pixels(r, node, &b, x, &x));
    for (uint32_t d = 0; d < b.spatial; d++) {
        axes[d] = (b.last ? 1 : 2) + d;
        starts[d] = number(r, b.first[d]);
        sizes[d] = number(r, b.out[d]);
        all = all && b.first[d] == 0 && b.out[d] == b.made[d] * b.stride[d];
    }
    if (all)
        return muc_rewrite_change_to_view(r, node, x);
    cut = muc_cut_of(axes, starts, sizes, NULL, b.spatial);
    return muc_rewrite_change(r, node, cut.op, &x, 1, cut.attributes, cut.attribute_count);
}

muc_status muc_split_groups(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const rules[] = { split_transposed };

    return muc_rewrite_with(ctx, graph, rules, MUC_COUNT(rules), NULL);
}

/* ---- one spatial dimension ---- */

/* [N, L, C] as [N, 1, L, C] */
static void widen_dims(const muc_rewrite *r, const muc_tensor *t, muc_expr dims[4])
{
    dims[0] = t->dims[0];
    dims[1] = number(r, 1);
    dims[2] = t->dims[1];
    dims[3] = t->dims[2];
}

/* an attribute with an item for each spatial dimension, or two for each */
static bool widen_attribute(const muc_attribute *from, int64_t items[4], muc_attribute *out)
{
    bool pads = from->key == MUC_KEY_PADS;

    *out = *from;
    if (!pads && from->key != MUC_KEY_KERNEL && from->key != MUC_KEY_STRIDES &&
        from->key != MUC_KEY_DILATIONS)
        return false;
    items[0] = pads ? 0 : 1;
    items[1] = from->value.integers.items[0];
    items[2] = 0;
    items[3] = pads ? from->value.integers.items[1] : 0;
    out->value.integers.items = items;
    out->value.integers.count = pads ? 4 : 2;
    return true;
}

static muc_status widen_line(muc_rewrite *r, const muc_node *node, bool *done)
{
    bool weighted = muc_op_real_product(node->op) == MUC_PRODUCT_FILTER, required;
    bool pools = muc_op_takes(node->op, MUC_KEY_KERNEL, &required) &&
                 muc_op_has(node->op, MUC_OP_QUANTIZED); /* the others have no kernels */
    const muc_tensor *x = old(r, node->inputs[0]), *y = old(r, node->outputs[0]);
    muc_attribute attributes[MOST_ATTRIBUTES];
    int64_t items[MOST_ATTRIBUTES][4];
    muc_expr dims[4];
    uint32_t inputs[3];

    if ((!weighted && !pools) || !is_last(node) || x->rank != 3 || node->output_count != 1 ||
        node->attribute_count > MOST_ATTRIBUTES ||
        (weighted &&
         (!muc_rewrite_is_constant(r, node->inputs[1]) || old(r, node->inputs[1])->sequence)))
        return MUC_OK;
    *done = true;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        (void)widen_attribute(&node->attributes[i], items[i], &attributes[i]);
    for (uint32_t i = 2; i < node->input_count; i++)
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i], &inputs[i]));
    if (weighted) {
        const muc_tensor *w = old(r, node->inputs[1]);
        muc_tensor like = *w;

        like.rank = 4;
        widen_dims(r, w, like.dims);
        MUC_TRY(muc_rewrite_constant(r, w->name, &like, w->data, w->bytes, &inputs[1]));
    }
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &inputs[0]));
    widen_dims(r, x, dims);
    MUC_TRY(muc_rewrite_add_view(r, node->name, inputs[0], dims, 4, &inputs[0]));
    MUC_TRY(muc_rewrite_add(r, node->op, node->name, inputs, node->input_count, attributes,
                            node->attribute_count, y->quantization, &inputs[0]));
    return muc_rewrite_change_to_view(r, node, inputs[0]);
}

/* ---- three spatial dimensions, of integers ---- */

enum { MOST_DEPTH = 16, OVER_DEPTH = 5 };

/* A convolution of [N, D, H, W, C] with [out, kd, kh, kw, C of a group], and what it makes. */
typedef struct volume {
    const muc_node *node;
    uint32_t x[OVER_DEPTH], w[OVER_DEPTH], y[OVER_DEPTH], groups;
} volume;

static bool find_volume(const muc_rewrite *r, const muc_node *node, volume *v)
{
    const muc_tensor *x = old(r, node->inputs[0]);

    *v = (volume){ .node = node };
    if (node->op != MUC_OP_CONV || !is_last(node) || x->rank != OVER_DEPTH || !x->quantization ||
        !muc_rewrite_is_constant(r, node->inputs[1]) || old(r, node->inputs[1])->sequence ||
        node->attribute_count > MOST_ATTRIBUTES - 4)
        return false;
    for (uint32_t i = 0; i < OVER_DEPTH; i++)
        if (!muc_rewrite_dim(&r->old, x, i, &v->x[i]) ||
            !muc_rewrite_dim(&r->old, old(r, node->inputs[1]), i, &v->w[i]) ||
            !muc_rewrite_dim(&r->old, old(r, node->outputs[0]), i, &v->y[i]))
            return false;
    v->groups = v->x[4] / v->w[4];
    return v->w[1] <= MOST_DEPTH;
}

/* one pixel of each depth: the window is over depths, and rows of pixels */
static bool is_over_depths(const volume *v)
{
    bool apart = v->w[2] != 1 || v->w[3] != 1;

    for (uint32_t d = 1; d < 3; d++)
        apart = apart || muc_node_item_or(v->node, MUC_KEY_STRIDES, d, 1) != 1 ||
                muc_node_item_or(v->node, MUC_KEY_PADS, d, 0) != 0 ||
                muc_node_item_or(v->node, MUC_KEY_PADS, 3 + d, 0) != 0;
    return !apart;
}

/* the depths that each result reads, one after another as channels: [N * depths, H, W, kd * C] */
static muc_status gather_depths(muc_rewrite *r, const volume *v, uint32_t *out)
{
    const int64_t step = muc_node_item_or(v->node, MUC_KEY_STRIDES, 0, 1), axis = 1;
    const int64_t apart = muc_node_item_or(v->node, MUC_KEY_DILATIONS, 0, 1);
    const int64_t pads[2 * OVER_DEPTH] = { [1] = muc_node_item_or(v->node, MUC_KEY_PADS, 0, 0),
                                           [1 + OVER_DEPTH] =
                                               muc_node_item_or(v->node, MUC_KEY_PADS, 3, 0) };
    const muc_attribute pad = { .key = MUC_KEY_PADS, .value.integers = { pads, 2 * OVER_DEPTH } };
    const muc_attribute join = { .key = MUC_KEY_AXIS, .value.integer = OVER_DEPTH };
    muc_expr start, size = number(r, v->y[1]), whole[4];
    const char *name = v->node->name;
    muc_expr dims[OVER_DEPTH + 1];
    uint32_t x, parts[MOST_DEPTH];
    muc_cut cut;

    for (uint32_t i = 0; i < OVER_DEPTH + 1; i++)
        dims[i] = number(r, i == 1 ? v->y[1] : i == 4 ? v->groups : i == 5 ? v->w[4] : v->x[i]);
    MUC_TRY(muc_rewrite_tensor(r, v->node->inputs[0], &x));
    if (pads[1] || pads[1 + OVER_DEPTH])
        MUC_TRY(muc_rewrite_add(r, MUC_OP_PAD, name, &x, 1, &pad, 1, NULL, &x));
    for (uint32_t k = 0; k < v->w[1]; k++) {
        start = number(r, (uint32_t)(k * apart));
        cut = muc_cut_of(&axis, &start, &size, &step, 1);
        MUC_TRY(muc_rewrite_add(r, cut.op, name, &x, 1, cut.attributes, cut.attribute_count, NULL,
                                &parts[k]));
        MUC_TRY(muc_rewrite_add_view(r, name, parts[k], dims, OVER_DEPTH + 1, &parts[k]));
    }
    if (v->w[1] > 1)
        MUC_TRY(muc_rewrite_add(r, MUC_OP_CONCAT, name, parts, v->w[1], &join, 1, NULL, parts));
    whole[0] = number(r, v->x[0] * v->y[1]);
    whole[1] = number(r, v->x[2]);
    whole[2] = number(r, v->x[3]);
    whole[3] = number(r, v->w[1] * v->x[4]);
    return muc_rewrite_add_view(r, name, parts[0], whole, 4, out);
}

/* weights [out, kh, kw, kd * C of a group], or [out, kd, 1, C of a group] */
static muc_status add_flat_weights(muc_rewrite *r, const volume *v, bool over_depths, uint32_t *out)
{
    const muc_tensor *w = old(r, v->node->inputs[1]);
    const size_t row = (size_t)v->w[4] * muc_dtype_get(w->dtype)->block_bytes;
    const uint32_t window = v->w[2] * v->w[3], depth = v->w[1];
    muc_tensor like = *w;
    muc_status status;
    uint8_t *data;

    like.rank = 4;
    like.dims[1] = number(r, over_depths ? depth : v->w[2]);
    like.dims[2] = number(r, over_depths ? 1 : v->w[3]);
    like.dims[3] = number(r, over_depths ? v->w[4] : depth * v->w[4]);
    if (over_depths || muc_rewrite_is_shape(r, w, w->bytes))
        return muc_rewrite_constant(r, w->name, &like, w->data, w->bytes, out);
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, r->old.name, (size_t)w->bytes + 1, &data));
    for (size_t c = 0; c < v->w[0]; c++)
        for (size_t k = 0; k < depth; k++)
            for (size_t t = 0; t < window; t++)
                memcpy(data + ((c * window + t) * depth + k) * row,
                       w->data + ((c * depth + k) * window + t) * row, row);
    status = muc_rewrite_constant(r, w->name, &like, data, w->bytes, out);
    free(data);
    return status;
}

/* the node's attributes for a window over depths and none, or over rows and columns */
static uint32_t flat_attributes(const volume *v, bool over_depths, int64_t items[8],
                                muc_attribute *out)
{
    static const muc_attribute_key keys[] = { MUC_KEY_STRIDES, MUC_KEY_DILATIONS };
    uint32_t count = 0;

    for (uint32_t k = 0; k < 2; k++) {
        items[2 * k] = muc_node_item_or(v->node, keys[k], over_depths ? 0 : 1, 1);
        items[2 * k + 1] = over_depths ? 1 : muc_node_item_or(v->node, keys[k], 2, 1);
        out[count++] = (muc_attribute){ .key = keys[k], .value.integers = { items + 2 * k, 2 } };
    }
    for (uint32_t end = 0; end < 2; end++) {
        items[4 + 2 * end] = muc_node_item_or(v->node, MUC_KEY_PADS, 3 * end + !over_depths, 0);
        items[5 + 2 * end] =
            over_depths ? 0 : muc_node_item_or(v->node, MUC_KEY_PADS, 3 * end + 2, 0);
    }
    out[count++] = (muc_attribute){ .key = MUC_KEY_PADS, .value.integers = { items + 4, 4 } };
    for (uint32_t i = 0; i < v->node->attribute_count; i++) {
        muc_attribute_key key = v->node->attributes[i].key;

        if (!is_shape(key) || key == MUC_KEY_GROUPS || key == MUC_KEY_CHANNELS_LAST)
            out[count++] = v->node->attributes[i];
    }
    return count;
}

static muc_status flatten_volume(muc_rewrite *r, const muc_node *node, bool *done)
{
    muc_attribute attributes[MOST_ATTRIBUTES];
    uint32_t inputs[3], count;
    bool over_depths;
    int64_t items[8];
    volume v;

    if (!find_volume(r, node, &v))
        return MUC_OK;
    *done = true;
    over_depths = is_over_depths(&v);
    if (over_depths) {
        const muc_expr flat[] = { number(r, v.x[0]), number(r, v.x[1]), number(r, v.x[2] * v.x[3]),
                                  number(r, v.x[4]) };

        MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &inputs[0]));
        MUC_TRY(muc_rewrite_add_view(r, node->name, inputs[0], flat, 4, &inputs[0]));
    } else {
        MUC_TRY(gather_depths(r, &v, &inputs[0]));
    }
    MUC_TRY(add_flat_weights(r, &v, over_depths, &inputs[1]));
    for (uint32_t i = 2; i < node->input_count; i++)
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i], &inputs[i]));
    count = flat_attributes(&v, over_depths, items, attributes);
    MUC_TRY(muc_rewrite_add(r, MUC_OP_CONV, node->name, inputs, node->input_count, attributes,
                            count, old(r, node->outputs[0])->quantization, &inputs[0]));
    return muc_rewrite_change_to_view(r, node, inputs[0]);
}

/* ---- batch norms ---- */

static muc_status spread_norm(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_tensor *x = old(r, node->inputs[0]);
    muc_tensor like = { .dtype = MUC_F32 };
    const muc_attribute attributes[] = {
        { .key = MUC_KEY_CHANNELS_LAST, .value.integer = 1 },
        { .key = MUC_KEY_GROUPS, .value.integer = 0 },
    };
    muc_attribute own[2];
    uint32_t channels, inputs[3];
    size_t count = 0;
    muc_status status;
    double *exact;
    float *numbers;

    if (node->op != MUC_OP_BATCH_NORM || x->dtype != MUC_F32 || !is_last(node) || x->rank < 3 ||
        x->rank > 4 || !muc_rewrite_dim(&r->old, x, x->rank - 1, &channels))
        return MUC_OK;
    exact = muc_norm_numbers(r, node, &count);
    if (!exact)
        return MUC_OK;
    *done = true;
    memcpy(own, attributes, sizeof(own));
    own[1].value.integer = channels;
    status = MUC_NEW_ARRAY(r->ctx, r->old.name, 2 * count, &numbers);
    for (size_t i = 0; status == MUC_OK && i < 2 * count; i++)
        numbers[i] = (float)exact[i];
    free(exact);
    MUC_TRY(status);
    status = muc_rewrite_tensor(r, node->inputs[0], &inputs[0]);
    like.rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++)
        like.dims[i] = number(r, i ? 1 : channels);
    if (status == MUC_OK)
        status =
            muc_rewrite_constant(r, "scale", &like, numbers, channels * sizeof(float), &inputs[1]);
    like.rank = 1;
    if (status == MUC_OK)
        status = muc_rewrite_constant(r, "bias", &like, numbers + channels,
                                      channels * sizeof(float), &inputs[2]);
    free(numbers);
    MUC_TRY(status);
    return muc_rewrite_change(r, node, MUC_OP_CONV, inputs, 3, own, 2);
}

/* ---- functions before views ---- */

/* a function of single elements that alone reads a view, or a move of all elements, reads what that
 * moves: so it can become part of what computes it */
static bool is_view(const muc_rewrite *r, const muc_node *view)
{
    const muc_node *before;
    bool required;

    if (view->op == MUC_OP_RESHAPE || view->op == MUC_OP_DEPTH_TO_SPACE)
        return true;
    before = muc_op_takes(view->op, MUC_KEY_STARTS, &required)
                 ? muc_rewrite_producer(r, view->inputs[0])
                 : NULL;
    return before && before->op == MUC_OP_DEPTH_TO_SPACE; /* the seam of blocks */
}

static muc_status turn_view(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_node *view = node->input_count ? muc_rewrite_producer(r, node->inputs[0]) : NULL;
    const muc_tensor *y = old(r, node->outputs[0]);
    uint32_t inputs[3];
    bool at_zero;

    if (!view || !muc_op_has(node->op, MUC_OP_POINTWISE) || node->output_count != 1 ||
        node->input_count > 3 || y->dtype != MUC_F32 || !is_view(r, view) ||
        old(r, view->inputs[0])->dtype != MUC_F32 ||
        old(r, view->inputs[0])->kind != MUC_TENSOR_ACTIVATION ||
        !muc_rewrite_only_reader(r, node->inputs[0]) ||
        (node->input_count > 1 && !muc_op_bounds(node->op, &at_zero)))
        return MUC_OK;
    for (uint32_t i = 1; i < node->input_count; i++)
        if (node->inputs[i] != MUC_NO_ID && !muc_rewrite_is_constant(r, node->inputs[i]))
            return MUC_OK;
    *done = true;
    for (uint32_t i = 1; i < node->input_count; i++)
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i], &inputs[i]));
    MUC_TRY(muc_rewrite_tensor(r, view->inputs[0], &inputs[0]));
    MUC_TRY(muc_rewrite_add(r, node->op, node->name, inputs, node->input_count, node->attributes,
                            node->attribute_count, NULL, &inputs[0]));
    return muc_rewrite_change(r, node, view->op, inputs, 1, view->attributes,
                              view->attribute_count);
}

muc_status muc_lay_windows(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const rules[] = { split_transposed, spread_norm, widen_line,
                                               flatten_volume, turn_view };

    MUC_TRY(muc_rewrite_with(ctx, graph, rules, MUC_COUNT(rules), NULL));
    return muc_drop_taps(ctx, graph);
}
