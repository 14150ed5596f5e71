/* int8_emit.c - builds the int8 graph, node by node. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "passes/int8/int8_pass.h"
#include "passes/pointwise.h"

enum { MOST_ATTRIBUTES = 16 };

/* ---- the new graph ---- */

muc_quantization muc_int8_quantization_of(const pass *p, uint32_t tensor)
{
    uint32_t r = root(p, tensor);

    return (muc_quantization){ 1, 0, &p->scales[r], &p->zeros[r] };
}

muc_status muc_int8_suffixed(pass *p, uint32_t tensor, const char *suffix, const char **out)
{
    return muc_arena_format(p->r.ctx, &p->r.graph->arena, out, "%s.%s", old(p, tensor)->name,
                            suffix);
}

muc_status muc_int8_name(pass *p, uint32_t tensor, const char **out)
{
    *out = old(p, tensor)->name;
    if (p->r.is_output[tensor] || p->r.map[tensor] != MUC_NO_ID ||
        old(p, tensor)->kind != MUC_TENSOR_ACTIVATION)
        return muc_int8_suffixed(p, tensor, "int8", out);
    return MUC_OK;
}

/* Adds the node that gives an old tensor's int8 form, of its scale. */
static muc_status add_int8(pass *p, muc_op op, uint32_t tensor, const uint32_t *inputs,
                           uint32_t input_count, const muc_attribute *attributes,
                           uint32_t attribute_count)
{
    muc_quantization q = muc_int8_quantization_of(p, tensor);
    const char *name;

    MUC_TRY(muc_int8_name(p, tensor, &name));
    return muc_rewrite_add_named(&p->r, op, name, inputs, input_count, attributes, attribute_count,
                                 &q, &p->made[tensor]);
}

muc_status muc_int8_give_float(pass *p, uint32_t tensor, uint32_t integers)
{
    const char *name = old(p, tensor)->name;

    if (!p->r.is_output[tensor])
        MUC_TRY(muc_int8_suffixed(p, tensor, "f32", &name));
    return muc_rewrite_add_named(&p->r, MUC_OP_DEQUANTIZE, name, &integers, 1, NULL, 0, NULL,
                                 &p->r.map[tensor]);
}

muc_status muc_int8_need_float(pass *p, uint32_t tensor, uint32_t *out)
{
    if (p->made[tensor] != MUC_NO_ID && p->r.map[tensor] == MUC_NO_ID)
        MUC_TRY(muc_int8_give_float(p, tensor, p->made[tensor]));
    return muc_rewrite_tensor(&p->r, tensor, out);
}

const muc_attribute muc_int8_to = { .key = MUC_KEY_TO, .value.integer = MUC_I8 };

/* ---- constants ---- */

float muc_int8_reach(const pass *p, uint32_t tensor, uint64_t first, uint64_t count)
{
    bool shape = is_shape(p, tensor);
    float most = shape ? 1 : 0;

    for (uint64_t i = first; i < first + count && !shape; i++)
        most = fmaxf(most, fabsf(element(p, tensor, i)));
    return most;
}

/* to the nearest integer of a type and a quantization of one scale */
static int32_t round_to(float value, muc_dtype dtype, const muc_quantization *q)
{
    return muc_scale_quantize(&(muc_tensor){ .dtype = dtype, .quantization = q }, value);
}

muc_status muc_int8_constant(pass *p, uint32_t tensor, muc_dtype dtype, const muc_quantization *q,
                             uint64_t each, const char *suffix, uint32_t *out)
{
    uint64_t count = elements_of(p, tensor), width = muc_dtype_get(dtype)->block_bytes;
    muc_tensor like = *old(p, tensor);
    const char *name;
    muc_status status;
    uint8_t *data;

    like.dtype = dtype;
    like.quantization = q;
    like.sequence = NULL;
    like.sequence_bytes = 0;
    MUC_TRY(muc_int8_suffixed(p, tensor, suffix, &name));
    if (is_shape(p, tensor))
        return muc_rewrite_constant(&p->r, name, &like, like.data, count * width, out);
    MUC_TRY(MUC_NEW_ARRAY(p->r.ctx, like.name, (size_t)(count * width), &data));
    for (uint64_t i = 0; i < count; i++) {
        uint64_t c = i / each % q->count;
        muc_quantization one = { 1, 0, &q->scales[c], &q->zero_points[c] };
        int32_t level = round_to(element(p, tensor, i), dtype, &one);

        for (uint64_t k = 0; k < width; k++)
            data[i * width + k] = (uint8_t)((uint32_t)level >> 8 * k);
    }
    status = muc_rewrite_constant(&p->r, name, &like, data, count * width, out);
    free(data);
    return status;
}

/* what numbers of a constant are at least, where a mask's depth does not matter */
static float floor_of(const pass *p, uint32_t tensor)
{
    float least = INFINITY, most = -INFINITY, spread = 0;

    if (p->ranges->masks[tensor] != MUC_MASK)
        return -INFINITY;
    for (uint64_t i = 0; i < elements_of(p, tensor); i++)
        most = fmaxf(most, element(p, tensor, i)), least = fminf(least, element(p, tensor, i));
    if (!(most - least > MUC_MASK_DEEP))
        return -INFINITY;
    for (uint32_t n = 0; n < p->r.old.node_count; n++)
        for (uint32_t k = 0; k < p->r.old.nodes[n].input_count; k++)
            if (p->r.old.nodes[n].inputs[k] == tensor) {
                const muc_range *other = &p->ranges->tensors[p->r.old.nodes[n].inputs[1 - k]];

                spread = fmaxf(spread, other->counts ? other->most - other->least : 0);
            }
    return muc_mask_floor(most, spread);
}

/* a constant of one scale over its own range */
static muc_status int8_constant(pass *p, uint32_t tensor, uint32_t *out)
{
    uint64_t count = is_shape(p, tensor) ? 0 : elements_of(p, tensor);
    muc_quantization q = muc_int8_quantization_of(p, tensor);
    float least = 0, most = 0, floor = floor_of(p, tensor);
    bool shared = p->sources[root(p, tensor)] > 0;

    for (uint64_t i = 0; i < count; i++)
        most = fmaxf(most, element(p, tensor, i));
    for (uint64_t i = 0; i < count && !shared; i++)
        least = fminf(least, fmaxf(element(p, tensor, i), floor));
    if (!(isfinite(least) && isfinite(most)))
        return muc_fail(p->r.ctx, MUC_MALFORMED, old(p, tensor)->name, MUC_NO_OFFSET, "not finite");
    if (!shared)
        muc_int8_set_scale(p, root(p, tensor), least, most);
    return muc_int8_constant(p, tensor, MUC_I8, &q, 1, "int8", out);
}

muc_status muc_int8_need(pass *p, uint32_t tensor, uint32_t *out)
{
    muc_quantization q = muc_int8_quantization_of(p, tensor);
    const char *name;
    uint32_t x;

    if (p->made[tensor] == MUC_NO_ID && is_constant(p, tensor)) {
        MUC_TRY(int8_constant(p, tensor, &p->made[tensor]));
    } else if (p->made[tensor] == MUC_NO_ID) {
        MUC_TRY(muc_int8_need_float(p, tensor, &x));
        MUC_TRY(muc_int8_suffixed(p, tensor, "int8", &name));
        MUC_TRY(muc_rewrite_add(&p->r, MUC_OP_QUANTIZE, name, &x, 1, &muc_int8_to, 1, &q,
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
    bool at_zero;

    if (muc_op_bounds(node->op, &at_zero) && at_zero)
        b.least = 0;
    if (muc_node_input(node, 1) != MUC_NO_ID)
        b.least = element(p, node->inputs[1], 0);
    if (muc_node_input(node, 2) != MUC_NO_ID)
        b.most = element(p, node->inputs[2], 0);
    return b;
}

static int64_t integer_of(const pass *p, uint32_t tensor, float value)
{
    muc_quantization q = muc_int8_quantization_of(p, tensor);

    return round_to(value, MUC_I8, &q);
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

/* The scales of channels of `each` elements; channels of zeros of a linear node take the greatest.
 */
static muc_status choose_scales(pass *p, uint32_t id, bool linear, uint64_t each, size_t channels,
                                float *scales)
{
    float greatest = 0;

    for (size_t c = 0; c < channels; c++) {
        float most = muc_int8_reach(p, id, c * each, each);

        if (!isfinite(most))
            return muc_fail(p->r.ctx, MUC_MALFORMED, old(p, id)->name, MUC_NO_OFFSET,
                            "channel %zu is not finite", c);
        scales[c] = most / MOST > 1e-30f ? most / MOST : 0;
        if (linear && scales[c] > 0)
            scales[c] = round_up_scale(scales[c]);
        greatest = fmaxf(greatest, scales[c]);
    }
    for (size_t c = 0; c < channels; c++)
        if (scales[c] == 0)
            scales[c] = linear && greatest > 0 ? greatest : 1;
    return MUC_OK;
}

/* biases in units of the products of x and weights of such a quantization */
static muc_status add_bias(pass *p, uint32_t id, float x_scale, const muc_quantization *weights,
                           muc_arena *arena, uint32_t *out)
{
    muc_quantization q = *weights;
    muc_tensor like = *old(p, id);
    const char *name;
    int32_t *biases;
    float *scales;

    MUC_TRY(MUC_ARENA_NEW(p->r.ctx, arena, q.count, &scales));
    MUC_TRY(MUC_ARENA_NEW(p->r.ctx, arena, q.count, &biases));
    for (uint32_t c = 0; c < q.count; c++) {
        double unit = (double)x_scale * (double)weights->scales[c];

        scales[c] = x_scale * weights->scales[c];
        biases[c] =
            (int32_t)fmax(INT32_MIN, fmin(INT32_MAX, round((double)element(p, id, c) / unit)));
    }
    q.scales = scales;
    like.dtype = MUC_I32;
    like.quantization = &q;
    MUC_TRY(muc_int8_suffixed(p, id, "int32", &name));
    return muc_rewrite_constant(&p->r, name, &like, biases, q.count * sizeof(*biases), out);
}

static muc_status fill_weights(pass *p, const muc_node *node, muc_arena *arena, uint32_t *out)
{
    uint32_t id = node->inputs[1], bias = muc_node_input(node, 2), channels = 0;
    float *scales;
    int32_t *zeros;
    uint64_t each;

    (void)muc_rewrite_dim(&p->r.old, old(p, id), 0, &channels);
    each = channels ? elements_of(p, id) / channels : 1;
    MUC_TRY(MUC_ARENA_NEW(p->r.ctx, arena, channels, &scales));
    MUC_TRY(MUC_ARENA_NEW(p->r.ctx, arena, channels, &zeros));
    MUC_TRY(choose_scales(p, id, muc_op_real_product(node->op) == MUC_PRODUCT_ROWS, each, channels,
                          scales));
    p->result->weights += elements_of(p, id);
    MUC_TRY(muc_int8_constant(p, id, MUC_I8, &(muc_quantization){ channels, 0, scales, zeros },
                              each, "int8", &out[1]));
    if (bias == MUC_NO_ID)
        return MUC_OK;
    return add_bias(p, bias, *muc_int8_quantization_of(p, node->inputs[0]).scales,
                    &(muc_quantization){ channels, 0, scales, zeros }, arena, &out[2]);
}

/* weights and bias of a node as new constants out[1], out[2] */
static muc_status make_weights(pass *p, const muc_node *node, uint32_t *out)
{
    muc_arena arena = { 0 };
    muc_status status = fill_weights(p, node, &arena, out);

    muc_arena_free(&arena);
    return status;
}

/* one output, with the bounds of what follows; the two inputs of a pair in the order of kernels */
static muc_status emit_single(pass *p, const muc_node *node)
{
    const muc_node *bound = muc_int8_bound_after(p, node);
    uint32_t out = bound ? bound->outputs[0] : node->outputs[0], count;
    bool weighted = muc_int8_form_of(node->op) == WEIGHTED;
    unsigned first = muc_int8_wide_input(p, node);
    muc_attribute attributes[MOST_ATTRIBUTES];
    uint32_t inputs[3] = { MUC_NO_ID, MUC_NO_ID, MUC_NO_ID };

    MUC_TRY(muc_int8_need(p, node->inputs[first], &inputs[0]));
    if (weighted)
        MUC_TRY(make_weights(p, node, inputs));
    else if (node->input_count == 2)
        MUC_TRY(muc_int8_need(p, node->inputs[1 - first], &inputs[1]));
    MUC_TRY(bounded_attributes(p, node, bound, attributes, &count));
    return add_int8(p, node->op, out, inputs, node->input_count, attributes, count);
}

static muc_status emit_fixed(pass *p, const muc_node *node)
{
    uint32_t out = node->outputs[0], x, made;
    muc_quantization q = muc_int8_quantization_of(p, out), own = { .count = 1 };
    const char *name;
    float scale;
    int32_t zero;

    (void)muc_int8_fixed_scale(node->op, &scale, &zero);
    own.scales = &scale;
    own.zero_points = &zero;
    MUC_TRY(muc_int8_need(p, node->inputs[0], &x));
    MUC_TRY(muc_int8_name(p, out, &name));
    if (*q.scales == scale && *q.zero_points == zero)
        return muc_rewrite_add_named(&p->r, node->op, name, &x, 1, node->attributes,
                                     node->attribute_count, &own, &p->made[out]);
    MUC_TRY(muc_rewrite_add_named(&p->r, node->op, name, &x, 1, node->attributes,
                                  node->attribute_count, &own, &made));
    MUC_TRY(muc_int8_suffixed(p, out, "shared", &name));
    return muc_rewrite_add(&p->r, MUC_OP_QUANTIZE, name, &made, 1, &muc_int8_to, 1, &q,
                           &p->made[out]);
}

/* ---- functions of one tensor ---- */

/* the outputs for inputs -128.. */
static muc_status make_table(const pass *p, uint32_t tensor, const muc_quantization *x,
                             const muc_quantization *y, int8_t table[LEVELS])
{
    float numbers[LEVELS], values[LEVELS];

    for (int i = 0; i < LEVELS; i++)
        numbers[i] = *x->scales * (float)(i + LEAST - *x->zero_points);
    MUC_TRY(muc_pointwise_evaluate(&p->r, p->functions[tensor], tensor, numbers, LEVELS, values));
    for (int i = 0; i < LEVELS; i++)
        table[i] = (int8_t)round_to(values[i], MUC_I8, y);
    return MUC_OK;
}

static muc_status emit_table(pass *p, const muc_node *node)
{
    uint32_t out = node->outputs[0], from = p->functions[out], inputs[2];
    muc_quantization x = muc_int8_quantization_of(p, from), y = muc_int8_quantization_of(p, out);
    muc_tensor like = { .dtype = MUC_I8, .rank = 1 };
    int8_t table[LEVELS];
    const char *name;

    like.dims[0] = muc_expr_const(p->r.graph->pool, LEVELS);
    MUC_TRY(muc_int8_need(p, from, &inputs[0]));
    MUC_TRY(make_table(p, out, &x, &y, table));
    MUC_TRY(muc_int8_suffixed(p, out, "table", &name));
    MUC_TRY(muc_rewrite_constant(&p->r, name, &like, table, sizeof(table), &inputs[1]));
    return add_int8(p, MUC_OP_LOOKUP, out, inputs, 2, NULL, 0);
}

/* the same integers */
static muc_status emit_scaled(pass *p, const muc_node *node)
{
    uint32_t out = node->outputs[0], x;

    MUC_TRY(muc_int8_need(p, p->functions[out], &x));
    return add_int8(p, MUC_OP_IDENTITY, out, &x, 1, NULL, 0);
}

/* relu and clip by saturation, where the output's integers end at the bounds */
static muc_status emit_bound(pass *p, const muc_node *node)
{
    uint32_t out = node->outputs[0], x;
    bounds b = bounds_of(p, node);

    if (integer_of(p, out, b.least) > LEAST || integer_of(p, out, b.most) < MOST) {
        if (p->functions[out] != out)
            return emit_table(p, node);
        p->forms[node - p->r.old.nodes] = FLOAT;
        return MUC_OK;
    }
    MUC_TRY(muc_int8_need(p, node->inputs[0], &x));
    return add_int8(p, MUC_OP_QUANTIZE, out, &x, 1, &muc_int8_to, 1);
}

/* ---- norms ---- */

static bool has_integers(const pass *p, const muc_node *node)
{
    muc_quantization xq = muc_int8_quantization_of(p, node->inputs[0]);
    muc_quantization yq = muc_int8_quantization_of(p, node->outputs[0]);
    muc_tensor x = *old(p, node->inputs[0]), y = *old(p, node->outputs[0]);
    uint32_t bias = muc_node_input(node, 2);
    muc_norm_scales scales;
    muc_norm_rows rows;

    x.quantization = &xq;
    y.quantization = &yq;
    return muc_int8_norm_rows(p, node, &rows) &&
           muc_scale_norm(&x, old(p, node->inputs[1]), bias == MUC_NO_ID ? NULL : old(p, bias),
                          muc_node_real(node, MUC_KEY_EPSILON), &rows, &y, NULL, NULL, &scales);
}

static muc_status emit_norm(pass *p, const muc_node *node)
{
    uint32_t inputs[3];

    if (!has_integers(p, node)) {
        p->forms[node - p->r.old.nodes] = FLOAT;
        return MUC_OK;
    }
    MUC_TRY(muc_int8_need(p, node->inputs[0], &inputs[0]));
    for (uint32_t i = 1; i < node->input_count; i++)
        MUC_TRY(muc_rewrite_tensor(&p->r, node->inputs[i], &inputs[i]));
    return add_int8(p, node->op, node->outputs[0], inputs, node->input_count, node->attributes,
                    node->attribute_count);
}

/* an input on the scale of what it comes together with others in */
static muc_status need_on_scale(pass *p, const muc_node *node, uint32_t i, uint32_t *out)
{
    uint32_t id = node->inputs[i], y = node->outputs[0], x;
    muc_quantization q = muc_int8_quantization_of(p, y);
    const char *name;
    char suffix[24];

    if (!is_real(p, id)) /* indices */
        return muc_rewrite_tensor(&p->r, id, out);
    MUC_TRY(muc_int8_need(p, id, &x));
    *out = x;
    if (root(p, id) == root(p, y))
        return MUC_OK;
    snprintf(suffix, sizeof(suffix), "in%u", i);
    MUC_TRY(muc_int8_suffixed(p, y, suffix, &name));
    return muc_rewrite_add(&p->r, MUC_OP_QUANTIZE, name, &x, 1, &muc_int8_to, 1, &q, out);
}

static muc_status emit_shared(pass *p, const muc_node *node)
{
    const muc_quantization *quantization[MUC_GRAPH_MAX_OUTPUTS];
    muc_quantization q = muc_int8_quantization_of(p, node->outputs[0]);
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
        status = need_on_scale(p, node, i, &inputs[i]);
    for (uint32_t i = 0; i < node->output_count && status == MUC_OK; i++) {
        bool real = is_real(p, node->outputs[i]); /* else indices */

        quantization[i] = real ? &q : NULL;
        names[i] = old(p, node->outputs[i])->name;
        if (real)
            status = muc_int8_name(p, node->outputs[i], &names[i]);
    }
    added.name = status == MUC_OK ? names[0] : NULL;
    if (status == MUC_OK)
        status = muc_graph_add(p->r.ctx, p->r.graph, &added, outputs);
    for (uint32_t i = 0; i < node->output_count && status == MUC_OK; i++)
        (is_real(p, node->outputs[i]) ? p->made : p->r.map)[node->outputs[i]] = outputs[i];
    free(inputs);
    return status;
}

/* places of numbers, which are those of the integers that they are dequantized from */
static bool finds_among_integers(const pass *p, const muc_node *node)
{
    return muc_op_has(node->op, MUC_OP_QUANTIZED) && !is_real(p, node->outputs[0]) &&
           p->made[node->inputs[0]] != MUC_NO_ID && p->r.map[node->inputs[0]] == MUC_NO_ID;
}

static muc_status emit_float(pass *p, const muc_node *node)
{
    if (finds_among_integers(p, node)) {
        p->result->integer_nodes++;
        return muc_rewrite_change(&p->r, node, node->op, &p->made[node->inputs[0]], 1,
                                  node->attributes, node->attribute_count);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t x;

        if (node->inputs[i] != MUC_NO_ID)
            MUC_TRY(muc_int8_need_float(p, node->inputs[i], &x));
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
    case NORM:
        MUC_TRY(emit_norm(p, node));
        break;
    case RECURRENT:
        MUC_TRY(muc_int8_emit_recurrent(p, node));
        break;
    case SCALED:
        MUC_TRY(emit_scaled(p, node));
        break;
    case TABLE:
        MUC_TRY(emit_table(p, node));
        break;
    case INNER:
        return MUC_OK;
    case FLOAT:
        break;
    }
    if (p->forms[n] == FLOAT)
        return emit_float(p, node);
    p->result->integer_nodes++;
    return MUC_OK;
}

muc_status muc_int8_emit(pass *p)
{
    for (uint32_t n = 0; n < p->r.old.node_count; n++)
        if (p->r.needed[n] && !p->merged[n])
            MUC_TRY(emit(p, n));
    for (uint32_t i = 0; i < p->r.old.output_count; i++) {
        uint32_t id;

        MUC_TRY(muc_int8_need_float(p, p->r.old.outputs[i], &id));
    }
    return muc_rewrite_end(&p->r);
}
