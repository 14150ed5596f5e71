/* int8.c - which nodes compute in int8, on which scales, and the graph that they make. */
#include "passes/int8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes/rewrite.h"

enum { LEVELS = 256, LEAST = -128, MOST = 127, MOST_ATTRIBUTES = 16 };

typedef enum form { FLOAT, WEIGHTED, FREE, FIXED, SHARED, BOUND } form;

typedef struct pass {
    muc_rewrite r;
    const muc_ranges *ranges;
    muc_int8_result *result;
    form *forms;       /* of old nodes */
    bool *available;   /* of old tensors: an int8 form costs no conversion */
    bool *merged;      /* of old nodes: bounds that the node before keeps */
    uint32_t *parents; /* of old tensors: trees of those that share a scale */
    uint32_t *sources; /* of roots: tensors whose values are no moved ones */
    float *scales;     /* of roots */
    int32_t *zeros;    /* of roots */
    uint32_t *made;    /* of old tensors: the new int8 tensor */
} pass;

static form form_of(muc_op op)
{
    static const form forms[MUC_OP_COUNT] = {
#define MUC_INT8(op, kind) [MUC_OP_##op] = kind,
#include "passes/int8.def"
#undef MUC_INT8
    };

    return forms[op];
}

static const muc_tensor *old(const pass *p, uint32_t tensor)
{
    return &p->r.old.tensors[tensor];
}

static bool is_real(const pass *p, uint32_t tensor)
{
    return tensor != MUC_NO_ID && old(p, tensor)->dtype == MUC_F32;
}

/* an f32 constant */
static bool is_constant(const pass *p, uint32_t tensor)
{
    return is_real(p, tensor) && muc_rewrite_is_constant(&p->r, tensor);
}

static uint64_t elements_of(const pass *p, uint32_t tensor)
{
    return old(p, tensor)->bytes / sizeof(float);
}

static float element(const pass *p, uint32_t tensor, uint64_t i)
{
    float value;

    muc_dtype_to_f32(MUC_F32, old(p, tensor)->data, i, 1, &value);
    return value;
}

/* ---- which nodes ---- */

static bool same_dims(const muc_tensor *a, const muc_tensor *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof(*a->dims)) == 0;
}

/* images with channels last, in groups of one or all channels */
static bool takes_window(const pass *p, const muc_node *node)
{
    const muc_tensor *x = old(p, node->inputs[0]);
    int64_t groups = muc_node_integer_or(node, MUC_KEY_GROUPS, 1);
    uint32_t channels;

    return x->rank == 4 && muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) == 1 &&
           muc_rewrite_dim(&p->r.old, x, 3, &channels) && (groups == 1 || groups == channels) &&
           node->output_count == 1 && muc_node_integer_or(node, MUC_KEY_COUNT_INCLUDE_PAD, 0) == 0;
}

static bool takes_weights(const pass *p, const muc_node *node)
{
    uint32_t bias = muc_node_input(node, 2);

    return is_constant(p, node->inputs[1]) && (bias == MUC_NO_ID || is_constant(p, bias)) &&
           (node->op != MUC_OP_CONV || takes_window(p, node));
}

/* the input that the other repeats in; sums and products may change places */
static unsigned wide_input(const pass *p, const muc_node *node)
{
    return !same_dims(old(p, node->inputs[0]), old(p, node->outputs[0])) && node->op != MUC_OP_SUB;
}

static bool takes_pair(const pass *p, const muc_node *node)
{
    unsigned wide = wide_input(p, node);

    return same_dims(old(p, node->inputs[wide]), old(p, node->outputs[0])) &&
           !is_constant(p, node->inputs[wide]);
}

static bool takes_bounds(const pass *p, const muc_node *node)
{
    for (uint32_t i = 1; i < node->input_count; i++)
        if (node->inputs[i] != MUC_NO_ID && !is_constant(p, node->inputs[i]))
            return false;
    return true;
}

/* what TFLite knows: two dimensions of four, by the nearest or by two neighbours each */
static bool takes_resize(const pass *p, const muc_node *node)
{
    const muc_tensor *x = old(p, node->inputs[0]), *y = old(p, node->outputs[0]);
    muc_word mode = muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_NEAREST);
    muc_word places = muc_node_word_or(node, MUC_KEY_COORDINATES, MUC_WORD_HALF_PIXEL);

    return x->rank == 4 && x->dims[0] == y->dims[0] &&
           (x->dims[3] == y->dims[3] || x->dims[1] == y->dims[1]) &&
           (mode == MUC_WORD_NEAREST || mode == MUC_WORD_LINEAR) &&
           (places == MUC_WORD_HALF_PIXEL || places == MUC_WORD_ALIGN_CORNERS ||
            places == MUC_WORD_ASYMMETRIC);
}

static bool takes(const pass *p, const muc_node *node)
{
    const muc_tensor *x = old(p, node->inputs[0]);

    switch ((unsigned)node->op) {
    case MUC_OP_CONV:
    case MUC_OP_LINEAR:
        return takes_weights(p, node);
    case MUC_OP_ADD:
    case MUC_OP_SUB:
    case MUC_OP_MUL:
        return takes_pair(p, node);
    case MUC_OP_PRELU:
        return is_constant(p, node->inputs[1]) && !is_constant(p, node->inputs[0]);
    case MUC_OP_MATMUL:
        return x->rank >= 2 && old(p, node->inputs[1])->rank >= 2 &&
               !is_constant(p, node->inputs[0]);
    case MUC_OP_RESIZE:
        return takes_resize(p, node);
    case MUC_OP_MAX_POOL:
    case MUC_OP_AVERAGE_POOL:
        return takes_window(p, node);
    case MUC_OP_SOFTMAX:
        return muc_node_integer(node, MUC_KEY_AXIS) + 1 == x->rank;
    case MUC_OP_PAD:
        return node->input_count == 1;
    case MUC_OP_CLIP:
        return takes_bounds(p, node);
    default:
        return true;
    }
}

/* whether the node is better off in int8; its data inputs are real and one of them is there in int8
 * already, or it has weights */
static form plan_node(const pass *p, const muc_node *node)
{
    form kind = form_of(node->op);
    bool any = kind == WEIGHTED;

    if (kind == FLOAT || node->input_count == 0 || !is_real(p, node->outputs[0]))
        return FLOAT;
    for (uint32_t i = 0; i < node->input_count && !(kind == BOUND && i > 0); i++) {
        if (node->inputs[i] == MUC_NO_ID)
            continue;
        if (!is_real(p, node->inputs[i]) || (kind == SHARED && is_constant(p, node->inputs[i])))
            return FLOAT;
        any = any || p->available[node->inputs[i]];
    }
    return any && takes(p, node) ? kind : FLOAT;
}

/* relu or clip that alone reads what a node with bounds of its own computes */
static const muc_node *bound_after(const pass *p, const muc_node *node)
{
    const muc_node *next;
    bool required;

    if ((form_of(node->op) != WEIGHTED && form_of(node->op) != FREE) ||
        !muc_op_takes(node->op, MUC_KEY_CLAMP_MIN, &required))
        return NULL;
    next = muc_rewrite_only_reader(&p->r, node->outputs[0]);
    return next && p->forms[next - p->r.old.nodes] == BOUND ? next : NULL;
}

static void plan(pass *p)
{
    const muc_graph *graph = &p->r.old;

    for (uint32_t i = 0; i < graph->tensor_count; i++)
        p->available[i] = graph->tensors[i].kind == MUC_TENSOR_INPUT && is_real(p, i);
    for (uint32_t n = 0; n < graph->node_count; n++) {
        if (!p->r.needed[n])
            continue;
        p->forms[n] = plan_node(p, &graph->nodes[n]);
        for (uint32_t i = 0; i < graph->nodes[n].output_count; i++)
            p->available[graph->nodes[n].outputs[i]] = p->forms[n] != FLOAT;
    }
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const muc_node *bound =
            p->r.needed[n] && p->forms[n] != FLOAT ? bound_after(p, &graph->nodes[n]) : NULL;

        if (bound)
            p->merged[bound - graph->nodes] = true;
    }
}

/* ---- scales ---- */

static uint32_t root(const pass *p, uint32_t tensor)
{
    while (p->parents[tensor] != tensor)
        tensor = p->parents[tensor] = p->parents[p->parents[tensor]];
    return tensor;
}

static void share(pass *p, uint32_t a, uint32_t b)
{
    a = root(p, a);
    b = root(p, b);
    p->parents[a > b ? a : b] = a > b ? b : a;
}

static bool is_moved(const pass *p, uint32_t tensor)
{
    uint32_t producer = old(p, tensor)->producer;

    return producer != MUC_NO_ID && p->forms[producer] == SHARED;
}

static void set_scale(pass *p, uint32_t tensor, float least, float most)
{
    float scale = (most - least) / (LEVELS - 1);

    if (!(scale > 1e-30f)) { /* always zero */
        p->scales[tensor] = 1;
        p->zeros[tensor] = 0;
        return;
    }
    p->scales[tensor] = scale;
    p->zeros[tensor] = (int32_t)fmaxf(LEAST, fminf(MOST, roundf((float)LEAST - least / scale)));
}

/* what TFLite's kernel gives, if it has no choice */
static bool fixed_scale(muc_op op, float *scale, int32_t *zero)
{
    *scale = op == MUC_OP_TANH ? 1 / 128.0f : 1 / 256.0f;
    *zero = op == MUC_OP_TANH ? 0 : LEAST;
    return form_of(op) == FIXED;
}

static muc_status choose_scales(pass *p)
{
    const muc_graph *graph = &p->r.old;
    muc_range *joined;
    muc_status status = MUC_NEW_ARRAY(p->r.ctx, graph->name, graph->tensor_count, &joined);

    for (uint32_t i = 0; i < graph->tensor_count && status == MUC_OK; i++) {
        muc_range *into = &joined[root(p, i)];
        muc_range *range = &p->ranges->tensors[i];

        if (!is_real(p, i) || is_moved(p, i) || !range->counts)
            continue;
        p->sources[root(p, i)]++;
        status = muc_range_join(p->r.ctx, into, range);
    }
    for (uint32_t i = 0; i < graph->tensor_count && status == MUC_OK; i++) {
        uint32_t producer = graph->tensors[i].producer;
        float least, most;

        if (root(p, i) == i) {
            muc_range_choose(&joined[i], LEVELS, &least, &most);
            set_scale(p, i, least, most);
        }
        (void)(producer != MUC_NO_ID && p->forms[producer] == FIXED &&
               p->sources[root(p, i)] == 1 &&
               fixed_scale(graph->nodes[producer].op, &p->scales[root(p, i)],
                           &p->zeros[root(p, i)]));
    }
    for (uint32_t i = 0; i < graph->tensor_count && joined; i++)
        free(joined[i].counts);
    free(joined);
    return status;
}

static muc_status share_scales(pass *p)
{
    const muc_graph *graph = &p->r.old;

    for (uint32_t i = 0; i < graph->tensor_count; i++)
        p->parents[i] = i;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const muc_node *node = &graph->nodes[n];

        if (p->forms[n] != SHARED)
            continue;
        for (uint32_t i = 0; i < node->input_count; i++)
            share(p, node->inputs[0], node->inputs[i]);
        for (uint32_t i = 0; i < node->output_count; i++)
            share(p, node->inputs[0], node->outputs[i]);
    }
    return choose_scales(p);
}

/* ---- the new graph ---- */

static muc_quantization quantization_of(const pass *p, uint32_t tensor)
{
    uint32_t r = root(p, tensor);

    return (muc_quantization){ 1, 0, &p->scales[r], &p->zeros[r] };
}

/* adds a node of one output under this very name */
static muc_status add_named(pass *p, muc_op op, const char *name, const uint32_t *inputs,
                            uint32_t input_count, const muc_attribute *attributes,
                            uint32_t attribute_count, const muc_quantization *quantization,
                            uint32_t *out)
{
    const muc_new_node node = { .op = op,
                                .name = name,
                                .input_count = input_count,
                                .inputs = inputs,
                                .attribute_count = attribute_count,
                                .attributes = attributes,
                                .output_count = 1,
                                .quantization = quantization ? &quantization : NULL };

    return muc_graph_add(p->r.ctx, p->r.graph, &node, out);
}

static muc_status suffixed(pass *p, uint32_t tensor, const char *suffix, const char **out)
{
    return muc_arena_format(p->r.ctx, &p->r.graph->arena, out, "%s.%s", old(p, tensor)->name,
                            suffix);
}

/* the name of an old tensor's int8 form */
static muc_status int8_name(pass *p, uint32_t tensor, const char **out)
{
    *out = old(p, tensor)->name;
    if (p->r.is_output[tensor] || p->r.map[tensor] != MUC_NO_ID ||
        old(p, tensor)->kind != MUC_TENSOR_ACTIVATION)
        return suffixed(p, tensor, "int8", out);
    return MUC_OK;
}

static muc_status need_float(pass *p, uint32_t tensor, uint32_t *out)
{
    const char *name = old(p, tensor)->name;

    if (p->made[tensor] != MUC_NO_ID && p->r.map[tensor] == MUC_NO_ID) {
        if (!p->r.is_output[tensor])
            MUC_TRY(suffixed(p, tensor, "f32", &name));
        MUC_TRY(add_named(p, MUC_OP_DEQUANTIZE, name, &p->made[tensor], 1, NULL, 0, NULL,
                          &p->r.map[tensor]));
    }
    return muc_rewrite_tensor(&p->r, tensor, out);
}

static const muc_attribute to_int8 = { .key = MUC_KEY_TO, .value.integer = MUC_I8 };

static int8_t round_to(float value, float scale, int32_t zero)
{
    float q = roundf(value / scale) + (float)zero;

    return (int8_t)(q < LEAST ? LEAST : q > MOST ? MOST : q);
}

/* a constant of one scale over its own range */
static muc_status int8_constant(pass *p, uint32_t tensor, uint32_t *out)
{
    const muc_tensor *from = old(p, tensor);
    uint64_t count = elements_of(p, tensor);
    muc_quantization q = quantization_of(p, tensor);
    muc_tensor like = *from;
    float least = 0, most = 0;
    const char *name;
    muc_status status;
    int8_t *data;

    for (uint64_t i = 0; i < count; i++) {
        least = fminf(least, element(p, tensor, i));
        most = fmaxf(most, element(p, tensor, i));
    }
    if (!(isfinite(least) && isfinite(most)))
        return muc_fail(p->r.ctx, MUC_MALFORMED, from->name, MUC_NO_OFFSET, "not finite");
    if (p->sources[root(p, tensor)] == 0) /* else it shares a scale */
        set_scale(p, root(p, tensor), least, most);
    MUC_TRY(MUC_NEW_ARRAY(p->r.ctx, from->name, (size_t)count, &data));
    for (uint64_t i = 0; i < count; i++)
        data[i] = round_to(element(p, tensor, i), *q.scales, *q.zero_points);
    like.dtype = MUC_I8;
    like.quantization = &q;
    status = suffixed(p, tensor, "int8", &name);
    if (status == MUC_OK)
        status = muc_rewrite_constant(&p->r, name, &like, data, count, out);
    free(data);
    return status;
}

static muc_status need_int8(pass *p, uint32_t tensor, uint32_t *out)
{
    muc_quantization q = quantization_of(p, tensor);
    const char *name;
    uint32_t x;

    if (p->made[tensor] == MUC_NO_ID && is_constant(p, tensor)) {
        MUC_TRY(int8_constant(p, tensor, &p->made[tensor]));
    } else if (p->made[tensor] == MUC_NO_ID) {
        MUC_TRY(need_float(p, tensor, &x));
        MUC_TRY(suffixed(p, tensor, "int8", &name));
        MUC_TRY(muc_rewrite_add(&p->r, MUC_OP_QUANTIZE, name, &x, 1, &to_int8, 1, &q,
                                &p->made[tensor]));
    }
    *out = p->made[tensor];
    return MUC_OK;
}

/* ---- bounds ---- */

/* A node's attributes with the integers that bound it. */
typedef struct bounds {
    float least, most; /* of relu or clip; infinite where there is none */
} bounds;

static bounds bounds_of(const pass *p, const muc_node *node)
{
    bounds b = { -INFINITY, INFINITY };

    if (node->op == MUC_OP_RELU)
        b.least = 0;
    if (node->op == MUC_OP_CLIP && muc_node_input(node, 1) != MUC_NO_ID)
        b.least = element(p, node->inputs[1], 0);
    if (node->op == MUC_OP_CLIP && muc_node_input(node, 2) != MUC_NO_ID)
        b.most = element(p, node->inputs[2], 0);
    return b;
}

static int64_t integer_of(const pass *p, uint32_t tensor, float value)
{
    muc_quantization q = quantization_of(p, tensor);

    return round_to(value, *q.scales, *q.zero_points);
}

/* the node's attributes, and the bounds of the relu or clip that it keeps; *count grows */
static muc_status bounded_attributes(pass *p, const muc_node *node, const muc_node *bound,
                                     muc_attribute *out, uint32_t *count)
{
    static const muc_attribute_key keys[] = { MUC_KEY_CLAMP_MIN, MUC_KEY_CLAMP_MAX };
    int64_t limits[2] = { LEAST, MOST };

    *count = node->attribute_count;
    if (*count + 2 > MOST_ATTRIBUTES)
        return muc_fail(p->r.ctx, MUC_UNSUPPORTED, p->r.old.name, MUC_NO_OFFSET,
                        "node '%s' has %u attributes", node->name, *count);
    memcpy(out, node->attributes, *count * sizeof(*out));
    if (bound) {
        bounds b = bounds_of(p, bound);

        limits[0] = integer_of(p, bound->outputs[0], b.least);
        limits[1] = integer_of(p, bound->outputs[0], b.most);
    }
    for (unsigned i = 0; i < 2; i++)
        if (limits[i] != (i ? MOST : LEAST))
            out[(*count)++] = (muc_attribute){ .key = keys[i], .value.integer = limits[i] };
    return MUC_OK;
}

/* ---- nodes ---- */

/* The weights of a node and the quantization that they and the biases get. */
typedef struct weights {
    size_t channels, each;
    float *scales, *bias_scales; /* [channels] */
    int32_t *zeros, *biases;     /* [channels] */
    int8_t *data;
} weights;

/* The least power of 2^(1/8) that is not below a scale: so scales of any number of channels have
 * eight mantissas in all, and a kernel keeps a byte a channel instead of two words. */
static float round_up_scale(float scale)
{
    static const float powers[] = { 0x1.172b84p-1f, 0x1.306fe0p-1f, 0x1.4bfdaep-1f, 0x1.6a09e6p-1f,
                                    0x1.8ace54p-1f, 0x1.ae89fap-1f, 0x1.d5818ep-1f };
    int exponent;
    float mantissa = frexpf(scale, &exponent);

    for (size_t i = 0; i < MUC_COUNT(powers); i++)
        if (mantissa <= powers[i])
            return ldexpf(powers[i], exponent);
    return ldexpf(1, exponent);
}

/* The scales of channels; channels of zeros of a linear node take the greatest. */
static muc_status choose_weight_scales(pass *p, uint32_t id, bool linear, weights *w)
{
    float greatest = 0;

    for (size_t c = 0; c < w->channels; c++) {
        float most = 0;

        for (size_t i = 0; i < w->each; i++)
            most = fmaxf(most, fabsf(element(p, id, c * w->each + i)));
        if (!isfinite(most))
            return muc_fail(p->r.ctx, MUC_MALFORMED, old(p, id)->name, MUC_NO_OFFSET,
                            "channel %zu is not finite", c);
        w->scales[c] = most / MOST > 1e-30f ? most / MOST : 0;
        if (linear && w->scales[c] > 0)
            w->scales[c] = round_up_scale(w->scales[c]);
        greatest = fmaxf(greatest, w->scales[c]);
    }
    for (size_t c = 0; c < w->channels; c++)
        if (w->scales[c] == 0)
            w->scales[c] = linear && greatest > 0 ? greatest : 1;
    return MUC_OK;
}

static muc_status quantize_weights(pass *p, uint32_t id, uint32_t bias, float x_scale, weights *w)
{
    for (size_t c = 0; c < w->channels; c++) {
        double b;

        w->bias_scales[c] = x_scale * w->scales[c];
        for (size_t i = 0; i < w->each; i++)
            w->data[c * w->each + i] = round_to(element(p, id, c * w->each + i), w->scales[c], 0);
        if (bias == MUC_NO_ID)
            continue;
        b = round((double)element(p, bias, c) / ((double)x_scale * (double)w->scales[c]));
        w->biases[c] = (int32_t)fmax(INT32_MIN, fmin(INT32_MAX, b));
    }
    p->result->weights += w->channels * w->each;
    return MUC_OK;
}

static muc_status add_weights(pass *p, uint32_t id, uint32_t bias, weights *w, uint32_t *out)
{
    muc_quantization q = { (uint32_t)w->channels, 0, w->scales, w->zeros };
    muc_quantization bias_q = { (uint32_t)w->channels, 0, w->bias_scales, w->zeros };
    muc_tensor like = *old(p, id);
    const char *name;

    like.dtype = MUC_I8;
    like.quantization = &q;
    like.sequence = NULL;
    like.sequence_bytes = 0;
    MUC_TRY(suffixed(p, id, "int8", &name));
    MUC_TRY(muc_rewrite_constant(&p->r, name, &like, w->data, w->channels * w->each, &out[1]));
    if (bias == MUC_NO_ID)
        return MUC_OK;
    like = *old(p, bias);
    like.dtype = MUC_I32;
    like.quantization = &bias_q;
    MUC_TRY(suffixed(p, bias, "int32", &name));
    return muc_rewrite_constant(&p->r, name, &like, w->biases, w->channels * sizeof(int32_t),
                                &out[2]);
}

/* weights and bias of a node as new constants out[1], out[2] */
static muc_status make_weights(pass *p, const muc_node *node, uint32_t *out)
{
    uint32_t id = node->inputs[1], bias = muc_node_input(node, 2), channels = 0;
    muc_arena arena = { 0 };
    weights w = { 0 };
    muc_status status;

    (void)muc_rewrite_dim(&p->r.old, old(p, id), 0, &channels);
    w.channels = channels;
    w.each = channels ? (size_t)elements_of(p, id) / channels : 0;
    status = MUC_ARENA_NEW(p->r.ctx, &arena, w.channels, &w.scales);
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(p->r.ctx, &arena, w.channels, &w.bias_scales);
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(p->r.ctx, &arena, w.channels, &w.zeros);
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(p->r.ctx, &arena, w.channels, &w.biases);
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(p->r.ctx, &arena, w.channels * w.each, &w.data);
    if (status == MUC_OK)
        status = choose_weight_scales(p, id, node->op == MUC_OP_LINEAR, &w);
    if (status == MUC_OK)
        status = quantize_weights(p, id, bias, *quantization_of(p, node->inputs[0]).scales, &w);
    if (status == MUC_OK)
        status = add_weights(p, id, bias, &w, out);
    muc_arena_free(&arena);
    return status;
}

/* one output, with the bounds of what follows; the two inputs of a pair in the order of kernels */
static muc_status emit_single(pass *p, const muc_node *node)
{
    const muc_node *bound = bound_after(p, node);
    uint32_t out = bound ? bound->outputs[0] : node->outputs[0], count;
    bool turns = node->op == MUC_OP_ADD || node->op == MUC_OP_SUB || node->op == MUC_OP_MUL;
    bool pair = turns || node->op == MUC_OP_PRELU || node->op == MUC_OP_MATMUL;
    unsigned first = turns ? wide_input(p, node) : 0;
    muc_attribute attributes[MOST_ATTRIBUTES];
    muc_quantization q = quantization_of(p, out);
    uint32_t inputs[3] = { MUC_NO_ID, MUC_NO_ID, MUC_NO_ID };
    const char *name;

    MUC_TRY(need_int8(p, node->inputs[first], &inputs[0]));
    if (pair)
        MUC_TRY(need_int8(p, node->inputs[1 - first], &inputs[1]));
    if (form_of(node->op) == WEIGHTED)
        MUC_TRY(make_weights(p, node, inputs));
    MUC_TRY(bounded_attributes(p, node, bound, attributes, &count));
    MUC_TRY(int8_name(p, out, &name));
    return add_named(p, node->op, name, inputs, node->input_count, attributes, count, &q,
                     &p->made[out]);
}

static muc_status emit_fixed(pass *p, const muc_node *node)
{
    uint32_t out = node->outputs[0], x, made;
    muc_quantization q = quantization_of(p, out), own = { .count = 1 };
    const char *name;
    float scale;
    int32_t zero;

    (void)fixed_scale(node->op, &scale, &zero);
    own.scales = &scale;
    own.zero_points = &zero;
    MUC_TRY(need_int8(p, node->inputs[0], &x));
    MUC_TRY(int8_name(p, out, &name));
    if (*q.scales == scale && *q.zero_points == zero)
        return add_named(p, node->op, name, &x, 1, node->attributes, node->attribute_count, &own,
                         &p->made[out]);
    MUC_TRY(
        add_named(p, node->op, name, &x, 1, node->attributes, node->attribute_count, &own, &made));
    MUC_TRY(suffixed(p, out, "shared", &name));
    return muc_rewrite_add(&p->r, MUC_OP_QUANTIZE, name, &made, 1, &to_int8, 1, &q, &p->made[out]);
}

/* relu and clip by saturation, where the output's integers end at the bounds */
static muc_status emit_bound(pass *p, const muc_node *node)
{
    uint32_t out = node->outputs[0], x;
    muc_quantization q = quantization_of(p, out);
    bounds b = bounds_of(p, node);
    const char *name;

    if (integer_of(p, out, b.least) > LEAST || integer_of(p, out, b.most) < MOST) {
        p->forms[node - p->r.old.nodes] = FLOAT;
        return MUC_OK;
    }
    MUC_TRY(need_int8(p, node->inputs[0], &x));
    MUC_TRY(int8_name(p, out, &name));
    return add_named(p, MUC_OP_QUANTIZE, name, &x, 1, &to_int8, 1, &q, &p->made[out]);
}

static muc_status emit_shared(pass *p, const muc_node *node)
{
    const muc_quantization *quantization[MUC_GRAPH_MAX_OUTPUTS];
    muc_quantization q = quantization_of(p, node->inputs[0]);
    const char *names[MUC_GRAPH_MAX_OUTPUTS];
    uint32_t outputs[MUC_GRAPH_MAX_OUTPUTS];
    uint32_t *inputs;
    muc_new_node added = { .op = node->op,
                           .input_count = node->input_count,
                           .attribute_count = node->attribute_count,
                           .attributes = node->attributes,
                           .output_count = node->output_count,
                           .output_names = names,
                           .quantization = quantization };
    muc_status status = MUC_NEW_ARRAY(p->r.ctx, p->r.old.name, node->input_count, &inputs);

    added.inputs = inputs;
    for (uint32_t i = 0; i < node->input_count && status == MUC_OK; i++)
        status = need_int8(p, node->inputs[i], &inputs[i]);
    for (uint32_t i = 0; i < node->output_count && status == MUC_OK; i++) {
        quantization[i] = &q;
        status = int8_name(p, node->outputs[i], &names[i]);
    }
    added.name = status == MUC_OK ? names[0] : NULL;
    if (status == MUC_OK)
        status = muc_graph_add(p->r.ctx, p->r.graph, &added, outputs);
    for (uint32_t i = 0; i < node->output_count && status == MUC_OK; i++)
        p->made[node->outputs[i]] = outputs[i];
    free(inputs);
    return status;
}

static muc_status emit_float(pass *p, const muc_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t x;

        if (node->inputs[i] != MUC_NO_ID)
            MUC_TRY(need_float(p, node->inputs[i], &x));
    }
    p->result->float_nodes++;
    return muc_rewrite_keep(&p->r, node);
}

static muc_status emit(pass *p, uint32_t n)
{
    const muc_node *node = &p->r.old.nodes[n];

    switch (p->forms[n]) {
    case WEIGHTED:
    case FREE:
        MUC_TRY(emit_single(p, node));
        break;
    case FIXED:
        MUC_TRY(emit_fixed(p, node));
        break;
    case SHARED:
        MUC_TRY(emit_shared(p, node));
        break;
    case BOUND:
        MUC_TRY(emit_bound(p, node));
        break;
    case FLOAT:
        break;
    }
    if (p->forms[n] == FLOAT)
        return emit_float(p, node);
    p->result->integer_nodes++;
    return MUC_OK;
}

static muc_status emit_all(pass *p)
{
    for (uint32_t n = 0; n < p->r.old.node_count; n++)
        if (p->r.needed[n] && !p->merged[n])
            MUC_TRY(emit(p, n));
    for (uint32_t i = 0; i < p->r.old.output_count; i++) {
        uint32_t id;

        MUC_TRY(need_float(p, p->r.old.outputs[i], &id));
    }
    return muc_rewrite_end(&p->r);
}

static muc_status allocate(pass *p)
{
    size_t tensors = p->r.old.tensor_count, nodes = p->r.old.node_count;
    muc_context *ctx = p->r.ctx;
    const char *name = p->r.old.name;

    MUC_TRY(MUC_NEW_ARRAY(ctx, name, nodes, &p->forms));
    MUC_TRY(MUC_NEW_ARRAY(ctx, name, nodes, &p->merged));
    MUC_TRY(MUC_NEW_ARRAY(ctx, name, tensors, &p->available));
    MUC_TRY(MUC_NEW_ARRAY(ctx, name, tensors, &p->parents));
    MUC_TRY(MUC_NEW_ARRAY(ctx, name, tensors, &p->sources));
    MUC_TRY(MUC_NEW_ARRAY(ctx, name, tensors, &p->scales));
    MUC_TRY(MUC_NEW_ARRAY(ctx, name, tensors, &p->zeros));
    MUC_TRY(MUC_NEW_ARRAY(ctx, name, tensors, &p->made));
    for (size_t i = 0; i < tensors; i++)
        p->made[i] = MUC_NO_ID;
    return MUC_OK;
}

static void release(pass *p)
{
    muc_rewrite_free(&p->r);
    free(p->forms);
    free(p->merged);
    free(p->available);
    free(p->parents);
    free(p->sources);
    free(p->scales);
    free(p->zeros);
    free(p->made);
}

muc_status muc_int8_quantize(muc_context *ctx, muc_graph *graph, const muc_ranges *ranges,
                             muc_int8_result *out)
{
    pass p = { .ranges = ranges, .result = out };
    muc_status status;

    *out = (muc_int8_result){ 0 };
    if (ranges->runs == 0)
        return muc_fail(ctx, MUC_USAGE, graph->name, MUC_NO_OFFSET, "nothing calibrates it");
    status = muc_rewrite_begin(ctx, graph, &p.r);
    if (status == MUC_OK)
        status = allocate(&p);
    if (status == MUC_OK) {
        plan(&p);
        status = share_scales(&p);
    }
    if (status == MUC_OK)
        status = emit_all(&p);
    release(&p);
    if (status == MUC_OK && out->integer_nodes == 0)
        return muc_fail(ctx, MUC_UNSUPPORTED, graph->name, MUC_NO_OFFSET,
                        "no node of this network has an int8 form");
    return status;
}
