/* idle_channels.c - leaves out channels of int8 layers that no result depends on.
 *
 * Forward, node by node, each channel of int8 tensors gets bounds: the least and the greatest
 * integer that it can hold, whatever the network is given. Backward, a channel is idle if what
 * alone reads its tensor does without it.
 */
#include "passes/layout/idle_channels.h"

#include <stdlib.h>
#include <string.h>

#include "graph/scales.h"
#include "passes/rewrite.h"

enum { FOUR = 4 };

typedef struct bounds {
    int32_t least, most;
} bounds;

/* The last dimension of an old tensor. */
typedef struct channels {
    uint32_t count;
    bounds *bounds; /* [count]; NULL: any value of the type */
    bool *idle;     /* [count]; NULL: none is */
    bool may_drop;  /* what computes the tensor can leave channels out */
} channels;

typedef enum layer_kind {
    LAYER_OTHER,
    LAYER_MIXES, /* an output channel sums over all input channels */
    LAYER_APART, /* with weights, output channel c depends on input channel c alone */
    LAYER_PASSES /* without, and what bounds an input channel bounds the output channel */
} layer_kind;

typedef struct dropping {
    muc_rewrite r;
    muc_arena arena;
    channels *of;     /* of old tensors */
    layer_kind *kind; /* of old nodes */
} dropping;

/* A convolution or linear layer. */
typedef struct layer {
    const muc_node *node;
    const muc_tensor *x, *w, *bias, *y; /* bias: NULL if absent */
    const int8_t *weights;              /* [outputs][taps][depth] */
    uint32_t outputs, taps, depth, inputs;
    bool pads;
} layer;

static const muc_tensor *old(const dropping *d, uint32_t id)
{
    return muc_rewrite_old(&d->r, id);
}

static bool is_int8(const muc_tensor *t)
{
    return t->dtype == MUC_I8 && t->rank > 0 && t->quantization && t->quantization->count == 1;
}

/* ---- kinds of layers ---- */

/* a constant with values, and with a quantization for all or for each of its first dimension */
static bool has_values(const dropping *d, uint32_t id, muc_dtype dtype)
{
    const muc_tensor *t = old(d, id);

    return muc_rewrite_is_constant(&d->r, id) && !muc_graph_is_shape(&d->r.old, t) &&
           t->dtype == dtype && !t->sequence &&
           (!t->quantization || t->quantization->count == 1 || t->quantization->axis == 0);
}

static bool pads(const muc_node *node)
{
    for (uint32_t i = 0; i < FOUR; i++)
        if (muc_node_item_or(node, MUC_KEY_PADS, i, 0) != 0)
            return true;
    return false;
}

static layer layer_of(const dropping *d, const muc_node *node)
{
    layer l = { .node = node,
                .x = old(d, node->inputs[0]),
                .w = old(d, node->inputs[1]),
                .y = old(d, node->outputs[0]),
                .weights = (const int8_t *)old(d, node->inputs[1])->data,
                .inputs = d->of[node->inputs[0]].count,
                .outputs = d->of[node->outputs[0]].count,
                .pads = pads(node) };

    if (node->input_count > 2)
        l.bias = old(d, node->inputs[2]);
    if (!muc_rewrite_dim(&d->r.old, l.w, l.w->rank - 1, &l.depth))
        l.depth = 1;
    l.taps = (uint32_t)(l.w->bytes / l.outputs / l.depth);
    return l;
}

static layer_kind kind_of_product(const dropping *d, const muc_node *node)
{
    muc_product_kind kind = muc_op_real_product(node->op);
    const muc_tensor *w = old(d, node->inputs[1]);
    int64_t groups = muc_node_integer_or(node, MUC_KEY_GROUPS, 1);
    uint32_t inputs = d->of[node->inputs[0]].count, outputs = d->of[node->outputs[0]].count;

    if ((kind != MUC_PRODUCT_ROWS && kind != MUC_PRODUCT_FILTER) ||
        !has_values(d, node->inputs[1], MUC_I8) || !w->quantization ||
        (node->input_count > 2 && !has_values(d, node->inputs[2], MUC_I32)) ||
        (kind == MUC_PRODUCT_FILTER && !muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0)) ||
        old(d, node->inputs[0])->rank > FOUR)
        return LAYER_OTHER;
    return groups == 1                             ? LAYER_MIXES
           : groups == inputs && inputs == outputs ? LAYER_APART
                                                   : LAYER_OTHER;
}

/* a pool whose results lie between its inputs, or a view with the same channels */
static bool passes(const dropping *d, const muc_node *node)
{
    bool is_pool = muc_op_has(node->op, MUC_OP_SELECTS | MUC_OP_AVERAGES) &&
                   muc_node_attribute(node, MUC_KEY_KERNEL) &&
                   muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) &&
                   !muc_node_integer_or(node, MUC_KEY_COUNT_INCLUDE_PAD, 0);

    return (is_pool || node->op == MUC_OP_RESHAPE) &&
           muc_scale_is_same(old(d, node->inputs[0])->quantization,
                             old(d, node->outputs[0])->quantization);
}

static layer_kind kind_of(const dropping *d, const muc_node *node)
{
    if (node->input_count == 0 || node->output_count != 1 || !d->of[node->inputs[0]].count ||
        !d->of[node->outputs[0]].count)
        return LAYER_OTHER;
    if (muc_op_real_product(node->op) != MUC_PRODUCT_NONE)
        return kind_of_product(d, node);
    return d->of[node->inputs[0]].count == d->of[node->outputs[0]].count && passes(d, node)
               ? LAYER_PASSES
               : LAYER_OTHER;
}

/* ---- forward: bounds ---- */

static bounds bounds_of(const dropping *d, uint32_t tensor, uint32_t c)
{
    const bounds any = { INT8_MIN, INT8_MAX };

    return d->of[tensor].bounds ? d->of[tensor].bounds[c] : any;
}

/* of input channels less their zero point, padding included */
static muc_status centre(dropping *d, const layer *l, bounds **out)
{
    MUC_TRY(MUC_ARENA_NEW(d->r.ctx, &d->arena, l->inputs, out));
    for (uint32_t c = 0; c < l->inputs; c++) {
        bounds b = bounds_of(d, l->node->inputs[0], c);

        b.least -= muc_zero_of(l->x);
        b.most -= muc_zero_of(l->x);
        if (l->pads) {
            b.least = b.least < 0 ? b.least : 0;
            b.most = b.most > 0 ? b.most : 0;
        }
        (*out)[c] = b;
    }
    return MUC_OK;
}

static int32_t zero_of_weights(const layer *l, uint32_t o)
{
    return l->w->quantization->zero_points[l->w->quantization->count > 1 ? o : 0];
}

static int32_t old_bias(const layer *l, uint32_t o)
{
    return l->bias ? (int32_t)muc_load_u32(l->bias->data + 4 * (size_t)o) : 0;
}

static int32_t limited(int64_t q, bounds clamp)
{
    return (int32_t)(q < clamp.least ? clamp.least : q > clamp.most ? clamp.most : q);
}

/* the output's integer of a sum */
static int32_t rounded(int32_t sum, muc_multiplier factor, int32_t zero, bounds clamp)
{
    return limited((int64_t)muc_multiply(sum, factor) + zero, clamp);
}

/* of an output channel; centred: of the input's, clamp: of all */
static bounds bound_output(const layer *l, uint32_t o, const bounds *centred, bounds clamp)
{
    const int8_t *weights = l->weights + (size_t)o * l->taps * l->depth;
    const bounds *x = l->depth < l->inputs ? &centred[o] : centred;
    int64_t least = old_bias(l, o), most = least;
    muc_multiplier factor = muc_scale_product(l->node, l->x, l->w, l->y, o);
    int32_t zero = zero_of_weights(l, o);
    bounds out;

    for (uint32_t t = 0; t < l->taps; t++)
        for (uint32_t c = 0; c < l->depth; c++) {
            int32_t w = *weights++ - zero;

            least += w > 0 ? w * x[c].least : w * x[c].most;
            most += w > 0 ? w * x[c].most : w * x[c].least;
        }
    if (least < INT32_MIN || most > INT32_MAX)
        return clamp;
    out.least = rounded((int32_t)least, factor, muc_zero_of(l->y), clamp);
    out.most = rounded((int32_t)most, factor, muc_zero_of(l->y), clamp);
    return out;
}

static muc_status bound_outputs(dropping *d, const muc_node *node, layer_kind kind)
{
    channels *out = &d->of[node->outputs[0]];
    bounds clamp;

    MUC_TRY(MUC_ARENA_NEW(d->r.ctx, &d->arena, out->count, &out->bounds));
    muc_scale_clamp(node, old(d, node->outputs[0]), &clamp.least, &clamp.most);
    if (kind != LAYER_PASSES) {
        layer l = layer_of(d, node);
        bounds *centred;

        MUC_TRY(centre(d, &l, &centred));
        for (uint32_t o = 0; o < out->count; o++)
            out->bounds[o] = bound_output(&l, o, centred, clamp);
        return MUC_OK;
    }
    for (uint32_t c = 0; c < out->count; c++) {
        bounds b = bounds_of(d, node->inputs[0], c);

        out->bounds[c].least = limited(b.least, clamp);
        out->bounds[c].most = limited(b.most, clamp);
    }
    return MUC_OK;
}

/* Nothing else reads what a layer leaves channels out of. */
static bool may_drop(const dropping *d, const muc_node *node, layer_kind kind)
{
    return kind != LAYER_OTHER && muc_rewrite_only_reader(&d->r, node->outputs[0]) &&
           (kind == LAYER_MIXES || d->of[node->inputs[0]].may_drop);
}

static muc_status go_forward(dropping *d)
{
    for (uint32_t i = 0; i < d->r.old.tensor_count; i++) {
        const muc_tensor *t = &d->r.old.tensors[i];

        if (is_int8(t) && !muc_rewrite_dim(&d->r.old, t, t->rank - 1, &d->of[i].count))
            d->of[i].count = 0;
    }
    for (uint32_t i = 0; i < d->r.old.node_count; i++) {
        const muc_node *node = &d->r.old.nodes[i];

        d->kind[i] = d->r.needed[i] ? kind_of(d, node) : LAYER_OTHER;
        if (d->kind[i] == LAYER_OTHER)
            continue;
        MUC_TRY(bound_outputs(d, node, d->kind[i]));
        d->of[node->outputs[0]].may_drop = may_drop(d, node, d->kind[i]);
    }
    return MUC_OK;
}

/* ---- backward: which channels are idle ---- */

static bool is_idle(const dropping *d, uint32_t tensor, uint32_t c)
{
    return d->of[tensor].idle && d->of[tensor].idle[c];
}

/* the sum of output o's weights of input channel c, less their zero points */
static int64_t sum_weights(const layer *l, uint32_t o, uint32_t c)
{
    int64_t sum = -(int64_t)l->taps * zero_of_weights(l, o);

    for (uint32_t t = 0; t < l->taps; t++)
        sum += l->weights[((size_t)o * l->taps + t) * l->depth + c];
    return sum;
}

/* are those weights, of outputs that stay, all zero points? */
static bool are_unread(const dropping *d, const layer *l, uint32_t c)
{
    for (uint32_t o = 0; o < l->outputs; o++)
        for (uint32_t t = 0; t < l->taps && !is_idle(d, l->node->outputs[0], o); t++)
            if (l->weights[((size_t)o * l->taps + t) * l->depth + c] != zero_of_weights(l, o))
                return false;
    return true;
}

/* Output o's bias with the input channels that are left out, which hold one value each or meet
 * zeros. */
static int64_t bias_of(const dropping *d, const layer *l, uint32_t o)
{
    uint32_t x = l->node->inputs[0];
    int64_t bias = old_bias(l, o);

    for (uint32_t c = 0; l->depth == l->inputs && c < l->inputs; c++)
        if (is_idle(d, x, c) && bounds_of(d, x, c).least == bounds_of(d, x, c).most)
            bias += sum_weights(l, o, c) * (bounds_of(d, x, c).least - muc_zero_of(l->x));
    return bias;
}

/* Can a layer that mixes channels do without input channel c? */
static bool can_spare(const dropping *d, const layer *l, uint32_t c)
{
    bounds b = bounds_of(d, l->node->inputs[0], c);
    bool is_known = b.least == b.most && (b.least == muc_zero_of(l->x) || (!l->pads && l->bias));

    return is_known || are_unread(d, l, c);
}

/* Marks the channels that the layer spares, a multiple of four where all are. */
static void mark_spared(dropping *d, const muc_node *node)
{
    layer l = layer_of(d, node);
    channels *x = &d->of[node->inputs[0]];
    uint32_t left = 0, unit = x->count % FOUR == 0 ? FOUR : 1;

    for (uint32_t c = 0; c < x->count; c++) {
        x->idle[c] = can_spare(d, &l, c);
        left += !x->idle[c];
    }
    for (uint32_t c = 0; c < x->count && (left == 0 || left % unit != 0); c++) {
        left += x->idle[c];
        x->idle[c] = false;
    }
    for (uint32_t o = 0; o < l.outputs; o++) {
        int64_t bias = bias_of(d, &l, o);

        if (bias < INT32_MIN || bias > INT32_MAX)
            memset(x->idle, 0, x->count * sizeof(*x->idle));
    }
}

static muc_status go_backward(dropping *d)
{
    for (uint32_t i = d->r.old.node_count; i-- > 0;) {
        const muc_node *node = &d->r.old.nodes[i];
        channels *x;

        if (d->kind[i] == LAYER_OTHER || !d->of[node->inputs[0]].may_drop)
            continue;
        x = &d->of[node->inputs[0]];
        MUC_TRY(MUC_ARENA_NEW(d->r.ctx, &d->arena, x->count, &x->idle));
        if (d->kind[i] == LAYER_MIXES)
            mark_spared(d, node);
        else if (d->of[node->outputs[0]].idle)
            memcpy(x->idle, d->of[node->outputs[0]].idle, x->count * sizeof(*x->idle));
    }
    return MUC_OK;
}

/* ---- the layers without them ---- */

static uint32_t count_left(const dropping *d, uint32_t tensor)
{
    uint32_t left = 0;

    for (uint32_t c = 0; c < d->of[tensor].count; c++)
        left += !is_idle(d, tensor, c);
    return left;
}

static bool loses(const dropping *d, uint32_t tensor)
{
    return d->of[tensor].count && count_left(d, tensor) < d->of[tensor].count;
}

/* the quantization of outputs that stay, its arrays in the arena */
static muc_status cut_quantization(dropping *d, const layer *l, const muc_quantization *q,
                                   const muc_quantization **out)
{
    muc_quantization *cut;
    float *scales;
    int32_t *zeros;

    *out = q;
    if (!q || q->count == 1)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(d->r.ctx, &d->arena, 1, &cut));
    MUC_TRY(MUC_ARENA_NEW(d->r.ctx, &d->arena, q->count, &scales));
    MUC_TRY(MUC_ARENA_NEW(d->r.ctx, &d->arena, q->count, &zeros));
    *cut = (muc_quantization){ 0, q->axis, scales, zeros };
    for (uint32_t o = 0; o < l->outputs; o++) {
        if (is_idle(d, l->node->outputs[0], o))
            continue;
        scales[cut->count] = q->scales[o];
        zeros[cut->count++] = q->zero_points[o];
    }
    *out = cut;
    return MUC_OK;
}

/* the constant with these bytes and the first dimension that the outputs left have */
static muc_status add_constant(dropping *d, const layer *l, const muc_tensor *t, muc_expr depth,
                               const void *data, size_t bytes, uint32_t *out)
{
    muc_tensor like = *t;

    like.dims[0] = muc_expr_const(d->r.graph->pool, count_left(d, l->node->outputs[0]));
    if (depth != MUC_EXPR_NONE)
        like.dims[t->rank - 1] = depth;
    MUC_TRY(cut_quantization(d, l, t->quantization, &like.quantization));
    return muc_rewrite_constant(&d->r, t->name, &like, data, bytes, out);
}

static muc_status cut_weights(dropping *d, const layer *l, uint32_t *out)
{
    bool mixes = l->depth == l->inputs;
    uint32_t x = l->node->inputs[0], depth = mixes ? count_left(d, x) : l->depth;
    const int8_t *from = l->weights;
    int8_t *data, *to;

    MUC_TRY(MUC_ARENA_NEW(d->r.ctx, &d->arena, l->w->bytes, &data));
    to = data;
    for (uint32_t o = 0; o < l->outputs; o++)
        for (uint32_t k = 0; k < l->taps * l->depth; k++, from++)
            if (!is_idle(d, l->node->outputs[0], o) && !(mixes && is_idle(d, x, k % l->depth)))
                *to++ = *from;
    return add_constant(d, l, l->w, muc_expr_const(d->r.graph->pool, depth), data,
                        (size_t)(to - data), out);
}

static muc_status cut_bias(dropping *d, const layer *l, uint32_t *out)
{
    uint8_t *data, *to;

    MUC_TRY(MUC_ARENA_NEW(d->r.ctx, &d->arena, l->bias->bytes, &data));
    to = data;
    for (uint32_t o = 0; o < l->outputs; o++) {
        if (is_idle(d, l->node->outputs[0], o))
            continue;
        muc_store_u32(to, (uint32_t)bias_of(d, l, o));
        to += 4;
    }
    return add_constant(d, l, l->bias, MUC_EXPR_NONE, data, (size_t)(to - data), out);
}

static muc_status cut_product(dropping *d, const muc_node *node, layer_kind kind)
{
    layer l = layer_of(d, node);
    muc_attribute_list attributes;
    uint32_t inputs[3];

    if (!muc_attribute_list_of(&attributes, node))
        return muc_rewrite_keep(&d->r, node);
    if (kind == LAYER_APART)
        muc_attribute_list_set(&attributes,
                               (muc_attribute){ .key = MUC_KEY_GROUPS,
                                                .value.integer = count_left(d, node->inputs[0]) });
    MUC_TRY(muc_rewrite_tensor(&d->r, node->inputs[0], &inputs[0]));
    MUC_TRY(cut_weights(d, &l, &inputs[1]));
    if (l.bias)
        MUC_TRY(cut_bias(d, &l, &inputs[2]));
    return muc_rewrite_change(&d->r, node, node->op, inputs, node->input_count, attributes.items,
                              attributes.count);
}

/* a view of so many channels */
static muc_status cut_view(dropping *d, const muc_node *node)
{
    const muc_tensor *y = old(d, node->outputs[0]);
    muc_expr dims[MUC_GRAPH_MAX_RANK];
    muc_attribute shape = { .key = MUC_KEY_SHAPE, .value.exprs = { dims, y->rank } };
    uint32_t x;

    memcpy(dims, y->dims, sizeof(dims));
    dims[y->rank - 1] = muc_expr_const(d->r.graph->pool, count_left(d, node->outputs[0]));
    MUC_TRY(muc_rewrite_tensor(&d->r, node->inputs[0], &x));
    return muc_rewrite_change(&d->r, node, node->op, &x, 1, &shape, 1);
}

static muc_status rebuild(dropping *d)
{
    for (uint32_t i = 0; i < d->r.old.node_count; i++) {
        const muc_node *node = &d->r.old.nodes[i];
        bool cut =
            d->kind[i] != LAYER_OTHER && (loses(d, node->inputs[0]) || loses(d, node->outputs[0]));

        if (!d->r.needed[i])
            continue;
        if (cut && d->kind[i] != LAYER_PASSES)
            MUC_TRY(cut_product(d, node, d->kind[i]));
        else if (cut && node->op == MUC_OP_RESHAPE)
            MUC_TRY(cut_view(d, node));
        else
            MUC_TRY(muc_rewrite_keep(&d->r, node));
    }
    return muc_rewrite_end(&d->r);
}

muc_status muc_drop_idle_channels(muc_context *ctx, muc_graph *graph)
{
    dropping d = { 0 };
    muc_status status = muc_rewrite_begin(ctx, graph, &d.r);

    if (status == MUC_OK)
        status = MUC_ARENA_NEW(ctx, &d.arena, d.r.old.tensor_count, &d.of);
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(ctx, &d.arena, d.r.old.node_count, &d.kind);
    if (status == MUC_OK)
        status = go_forward(&d);
    if (status == MUC_OK)
        status = go_backward(&d);
    if (status == MUC_OK)
        status = rebuild(&d);
    muc_rewrite_free(&d.r);
    muc_arena_free(&d.arena);
    return status;
}
