/* shift_quantized.c - u8 tensors that carry quantization as i8 ones: bytes and zero points less by
 * 128, which stand for the same numbers and which int8 kernels read.
 *
 * TFLite's arithmetic depends on integers less their zero points alone, but for three things: where
 * weights have one scale, the scales' product is rounded to single precision for u8 (`single`); the
 * halves of an average pool go away from zero, which is up for u8 (`rounding`); and a linear resize
 * stays what it is. */
#include <stdlib.h>
#include <string.h>

#include "graph/scales.h"
#include "passes/integer/qdq.h"
#include "passes/rewrite.h"

enum { SHIFT = 128, MOST_INPUTS = 64, MOST_ATTRIBUTES = 16 };

typedef struct shifting {
    muc_rewrite r;
    uint32_t *shifted; /* old tensor to its i8 form, or MUC_NO_ID */
} shifting;

static const muc_tensor *old(const shifting *s, uint32_t id)
{
    return muc_rewrite_old(&s->r, id);
}

static bool is_u8(const shifting *s, uint32_t id)
{
    const muc_tensor *t = id == MUC_NO_ID ? NULL : old(s, id);

    return t && t->dtype == MUC_U8 && t->quantization &&
           (t->quantization->count == 1 || muc_rewrite_is_constant(&s->r, id));
}

/* does the operator compute on integers less their zero points, or only move and compare them? */
static bool is_known(const muc_node *node)
{
    switch ((unsigned)node->op) {
    case MUC_OP_CONV:
    case MUC_OP_CONV_TRANSPOSE:
    case MUC_OP_LINEAR:
    case MUC_OP_MATMUL:
    case MUC_OP_ADD:
    case MUC_OP_SUB:
    case MUC_OP_MUL:
    case MUC_OP_MAX:
    case MUC_OP_MIN:
    case MUC_OP_PRELU:
    case MUC_OP_RELU:
    case MUC_OP_CLIP:
    case MUC_OP_LEAKY_RELU:
    case MUC_OP_HARD_SWISH:
    case MUC_OP_SIGMOID:
    case MUC_OP_TANH:
    case MUC_OP_ELU:
    case MUC_OP_GELU:
    case MUC_OP_SOFTMAX:
    case MUC_OP_QUANTIZE:
    case MUC_OP_DEQUANTIZE:
    case MUC_OP_AVERAGE_POOL:
    case MUC_OP_MAX_POOL:
    case MUC_OP_REDUCE_MEAN:
    case MUC_OP_REDUCE_SUM:
    case MUC_OP_REDUCE_MAX:
    case MUC_OP_REDUCE_MIN:
    case MUC_OP_ARG_MAX:
    case MUC_OP_ARG_MIN:
    case MUC_OP_RESHAPE:
    case MUC_OP_TRANSPOSE:
    case MUC_OP_CONCAT:
    case MUC_OP_SPLIT:
    case MUC_OP_SLICE:
    case MUC_OP_PAD:
    case MUC_OP_EXPAND:
    case MUC_OP_TILE:
    case MUC_OP_GATHER:
    case MUC_OP_DEPTH_TO_SPACE:
    case MUC_OP_SPACE_TO_DEPTH:
        return true;
    case MUC_OP_RESIZE:
        return muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NEAREST) == MUC_WORD_NEAREST;
    default:
        return false;
    }
}

static bool deals_with(const shifting *s, const muc_node *node)
{
    bool any = false;

    if (!is_known(node) || node->input_count > MOST_INPUTS ||
        node->attribute_count + 1 > MOST_ATTRIBUTES)
        return false;
    for (uint32_t i = 0; i < node->input_count; i++)
        any = any || is_u8(s, node->inputs[i]);
    for (uint32_t i = 0; i < node->output_count; i++)
        any = any || is_u8(s, node->outputs[i]);
    return any;
}

/* ---- forms ---- */

/* a quantization with zero points less by 128; zeros: of its count */
static muc_quantization lower(const muc_quantization *q, int32_t *zeros)
{
    muc_quantization lowered = *q;

    for (uint32_t i = 0; i < q->count; i++)
        zeros[i] = q->zero_points[i] - SHIFT;
    lowered.zero_points = zeros;
    return lowered;
}

/* nothing but the weights of products, of which only what they stand for counts */
static bool are_weights(const shifting *s, uint32_t id)
{
    const muc_node *reader = muc_rewrite_only_reader(&s->r, id);

    return reader && (reader->op == MUC_OP_CONV || reader->op == MUC_OP_LINEAR) &&
           reader->inputs[1] == id && old(s, id)->quantization->count == 1;
}

/* A constant's bytes; weights that are all near enough to their zero point get zero point 0, which
 * more kernels take. */
static void shift_bytes(const muc_tensor *x, bool weights, int32_t *zeros, int8_t *bytes)
{
    int32_t least = INT32_MAX, most = INT32_MIN, step = SHIFT;

    for (uint64_t i = 0; i < x->bytes; i++) {
        least = x->data[i] < least ? x->data[i] : least;
        most = x->data[i] > most ? x->data[i] : most;
    }
    if (weights && least - SHIFT - zeros[0] >= INT8_MIN && most - SHIFT - zeros[0] <= INT8_MAX) {
        step += zeros[0];
        zeros[0] = 0;
    }
    for (uint64_t i = 0; i < x->bytes; i++)
        bytes[i] = (int8_t)(x->data[i] - step);
}

static muc_status add_constant(shifting *s, uint32_t id)
{
    muc_tensor like = *old(s, id);
    muc_quantization q;
    int32_t *zeros;
    int8_t *bytes = NULL;
    muc_status status = MUC_NEW_ARRAY(s->r.ctx, s->r.old.name, like.quantization->count, &zeros);

    if (status == MUC_OK)
        status = MUC_NEW_ARRAY(s->r.ctx, s->r.old.name, (size_t)like.bytes + 1, &bytes);
    if (status == MUC_OK) {
        q = lower(like.quantization, zeros);
        shift_bytes(&like, are_weights(s, id), zeros, bytes);
        like.dtype = MUC_I8;
        like.quantization = &q;
        status = muc_rewrite_constant(&s->r, like.name, &like, bytes, like.bytes, &s->shifted[id]);
    }
    free(bytes);
    free(zeros);
    return status;
}

static muc_status get_shifted(shifting *s, uint32_t id, uint32_t *out)
{
    const muc_attribute to = { .key = MUC_KEY_TO, .value.integer = MUC_I8 };
    uint32_t plain;
    int32_t zero;
    muc_quantization q;

    if (s->shifted[id] == MUC_NO_ID && muc_rewrite_is_constant(&s->r, id)) {
        MUC_TRY(add_constant(s, id));
    } else if (s->shifted[id] == MUC_NO_ID) {
        MUC_TRY(muc_rewrite_tensor(&s->r, id, &plain));
        q = lower(old(s, id)->quantization, &zero);
        MUC_TRY(muc_rewrite_add(&s->r, MUC_OP_QUANTIZE, old(s, id)->name, &plain, 1, &to, 1, &q,
                                &s->shifted[id]));
    }
    *out = s->shifted[id];
    return MUC_OK;
}

/* an output of the graph has its own name */
static muc_status get_plain(shifting *s, uint32_t id, uint32_t *out)
{
    const muc_attribute to = { .key = MUC_KEY_TO, .value.integer = MUC_U8 };

    if (id != MUC_NO_ID && s->r.map[id] == MUC_NO_ID && s->shifted[id] != MUC_NO_ID &&
        !muc_rewrite_is_constant(&s->r, id)) {
        const muc_quantization *q = old(s, id)->quantization;
        const muc_new_node node = { .op = MUC_OP_QUANTIZE,
                                    .name = old(s, id)->name,
                                    .input_count = 1,
                                    .inputs = &s->shifted[id],
                                    .attribute_count = 1,
                                    .attributes = &to,
                                    .output_count = 1,
                                    .quantization = &q };

        if (s->r.is_output[id])
            MUC_TRY(muc_graph_add(s->r.ctx, s->r.graph, &node, &s->r.map[id]));
        else
            MUC_TRY(muc_rewrite_add(&s->r, node.op, node.name, node.inputs, 1, &to, 1, q,
                                    &s->r.map[id]));
    }
    return muc_rewrite_tensor(&s->r, id, out);
}

/* ---- nodes ---- */

/* A node to be. */
typedef struct draft {
    uint32_t inputs[MOST_INPUTS];
    muc_attribute attributes[MOST_ATTRIBUTES];
    uint32_t attribute_count;
} draft;

static void add_attribute(draft *d, muc_attribute_key key, int64_t value)
{
    d->attributes[d->attribute_count++] = (muc_attribute){ .key = key, .value.integer = value };
}

/* can a window have an even number of elements inside? */
static bool may_be_even(const muc_node *pool)
{
    const int64_t *kernel = muc_node_integers(pool, MUC_KEY_KERNEL);
    const muc_attribute *pads = muc_node_attribute(pool, MUC_KEY_PADS);

    for (uint32_t i = 0; pads && i < pads->value.integers.count; i++)
        if (pads->value.integers.items[i] != 0)
            return true;
    for (uint32_t i = 0; i < muc_node_attribute(pool, MUC_KEY_KERNEL)->value.integers.count; i++)
        if (kernel[i] % 2 == 0)
            return true;
    return muc_node_integer_or(pool, MUC_KEY_CEIL_MODE, 0) != 0;
}

/* what the node of u8 does otherwise than one of i8 would */
static void keep_roundings(const shifting *s, const muc_node *node, draft *d)
{
    bool conv = node->op == MUC_OP_CONV || node->op == MUC_OP_CONV_TRANSPOSE;

    for (uint32_t i = 0; i < d->attribute_count; i++) {
        muc_attribute *a = &d->attributes[i];

        if (is_u8(s, node->outputs[0]) &&
            (a->key == MUC_KEY_CLAMP_MIN || a->key == MUC_KEY_CLAMP_MAX))
            a->value.integer -= SHIFT;
        if (is_u8(s, node->outputs[0]) && a->key == MUC_KEY_TO)
            a->value.integer = MUC_I8;
    }
    if (conv && is_u8(s, node->inputs[0]) && is_u8(s, node->inputs[1]))
        add_attribute(d, MUC_KEY_SINGLE, 1);
    if (node->op == MUC_OP_AVERAGE_POOL && is_u8(s, node->inputs[0]) && may_be_even(node))
        add_attribute(d, MUC_KEY_ROUNDING, MUC_WORD_ROUND_PREFER_CEIL);
}

/* outputs of i8 have names of their own until somebody asks for the plain form */
static muc_status add_node(shifting *s, const muc_node *node, const draft *d)
{
    const char *names[MUC_GRAPH_MAX_OUTPUTS];
    const muc_quantization *quantization[MUC_GRAPH_MAX_OUTPUTS];
    muc_quantization lowered[MUC_GRAPH_MAX_OUTPUTS];
    int32_t zeros[MUC_GRAPH_MAX_OUTPUTS];
    uint32_t outputs[MUC_GRAPH_MAX_OUTPUTS];
    const muc_new_node added = { .op = node->op,
                                 .name = node->name,
                                 .input_count = node->input_count,
                                 .inputs = d->inputs,
                                 .attribute_count = d->attribute_count,
                                 .attributes = d->attributes,
                                 .output_count = node->output_count,
                                 .output_names = names,
                                 .quantization = quantization };

    for (uint32_t i = 0; i < node->output_count; i++) {
        const muc_tensor *out = old(s, node->outputs[i]);

        names[i] = out->name;
        quantization[i] = out->quantization;
        if (!is_u8(s, node->outputs[i]))
            continue;
        lowered[i] = lower(out->quantization, &zeros[i]);
        quantization[i] = &lowered[i];
        if (s->r.is_output[node->outputs[i]])
            MUC_TRY(muc_arena_format(s->r.ctx, &s->r.graph->arena, &names[i], "%s#i8", out->name));
    }
    MUC_TRY(muc_graph_add(s->r.ctx, s->r.graph, &added, outputs));
    for (uint32_t i = 0; i < node->output_count; i++)
        *(is_u8(s, node->outputs[i]) ? &s->shifted[node->outputs[i]]
                                     : &s->r.map[node->outputs[i]]) = outputs[i];
    return MUC_OK;
}

static muc_status deal_with(shifting *s, const muc_node *node)
{
    draft d = { .attribute_count = node->attribute_count };
    uint32_t id;

    if (!deals_with(s, node)) {
        for (uint32_t i = 0; i < node->input_count; i++)
            MUC_TRY(get_plain(s, node->inputs[i], &id));
        return muc_rewrite_keep(&s->r, node);
    }
    for (uint32_t i = 0; i < node->input_count; i++)
        MUC_TRY(is_u8(s, node->inputs[i]) ? get_shifted(s, node->inputs[i], &d.inputs[i])
                                          : get_plain(s, node->inputs[i], &d.inputs[i]));
    if (node->attribute_count)
        memcpy(d.attributes, node->attributes, node->attribute_count * sizeof(*d.attributes));
    keep_roundings(s, node, &d);
    return add_node(s, node, &d);
}

static bool has_u8(const muc_graph *graph)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].dtype == MUC_U8 && graph->tensors[i].quantization)
            return true;
    return false;
}

static muc_status shift(shifting *s)
{
    uint32_t plain;

    MUC_TRY(MUC_NEW_ARRAY(s->r.ctx, s->r.old.name, s->r.old.tensor_count, &s->shifted));
    for (size_t i = 0; i < s->r.old.tensor_count; i++)
        s->shifted[i] = MUC_NO_ID;
    for (uint32_t n = 0; n < s->r.old.node_count; n++)
        if (s->r.needed[n])
            MUC_TRY(deal_with(s, &s->r.old.nodes[n]));
    for (uint32_t i = 0; i < s->r.old.output_count; i++)
        MUC_TRY(get_plain(s, s->r.old.outputs[i], &plain));
    return muc_rewrite_end(&s->r);
}

muc_status muc_shift_quantized(muc_context *ctx, muc_graph *graph)
{
    shifting s = { .shifted = NULL };
    muc_status status = MUC_OK;

    if (!has_u8(graph))
        return MUC_OK;
    status = muc_rewrite_begin(ctx, graph, &s.r);
    if (status == MUC_OK)
        status = shift(&s);
    free(s.shifted);
    muc_rewrite_free(&s.r);
    return status;
}
