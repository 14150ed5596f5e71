/* fuse.c - joins nodes with the operator before or after them, where that can do their work. */
#include <stdlib.h>
#include <string.h>

#include "graph/scales.h"
#include "passes/simplify/canonical.h"
#include "passes/simplify/join_norms.h"
#include "passes/rewrite.h"

/* ---- padding ---- */

/* the padding's value is zero, or the integer that stands for it */
static bool pads_zero(const muc_rewrite *r, const muc_node *pad)
{
    uint32_t id = muc_node_input(pad, 1);
    const muc_tensor *value, *x = muc_rewrite_old(r, pad->inputs[0]);
    int64_t zero = x->quantization ? muc_zero_of(x) : 0;

    if (muc_node_word_or(pad, MUC_KEY_MODE, MUC_WORD_CONSTANT) != MUC_WORD_CONSTANT)
        return false;
    if (id == MUC_NO_ID)
        return true;
    value = muc_rewrite_old(r, id);
    if (!muc_rewrite_is_constant(r, id))
        return false;
    if (muc_dtype_get(value->dtype)->kind == MUC_DTYPE_FLOAT) {
        float real;

        return muc_dtype_to_f32(value->dtype, value->data, 0, 1, &real) && real == 0;
    }
    return muc_dtype_integer(value->dtype, value->data) == zero;
}

/* of a [N, C, spatial..] or [N, spatial.., C] only spatial dimensions are padded, none cut */
static bool pads_pixels(const int64_t *pads, uint32_t rank, uint32_t channels)
{
    for (uint32_t i = 0; i < 2 * rank; i++)
        if (pads[i] < 0 || (pads[i] != 0 && (i % rank == 0 || i % rank == channels)))
            return false;
    return true;
}

static muc_status fold_padding(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_node *pad = muc_op_real_product(node->op) == MUC_PRODUCT_FILTER
                              ? muc_rewrite_producer(r, node->inputs[0])
                              : NULL;
    bool required;
    int64_t items[2 * MUC_GRAPH_MAX_RANK];
    muc_attribute sum = { .key = MUC_KEY_PADS, .value.integers = { items, 0 } };
    const int64_t *own = muc_node_integers(node, MUC_KEY_PADS), *more;
    uint32_t rank, spatial, first, inputs[3];
    muc_attribute_list a;

    if (!pad || !muc_op_has(pad->op, MUC_OP_MOVES) ||
        !muc_op_takes(pad->op, MUC_KEY_PADS, &required) ||
        !muc_rewrite_only_reader(r, node->inputs[0]) || !pads_zero(r, pad) ||
        !muc_attribute_list_of(&a, node))
        return MUC_OK;
    rank = muc_rewrite_old(r, node->inputs[0])->rank;
    spatial = rank - 2;
    first = muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) ? 1 : 2;
    more = muc_node_integers(pad, MUC_KEY_PADS);
    if (!pads_pixels(more, rank, first == 1 ? rank - 1 : 1))
        return MUC_OK;
    *done = true;
    for (uint32_t i = 0; i < 2 * spatial; i++)
        items[i] = (own ? own[i] : 0) + more[(i < spatial ? 0 : rank - spatial) + first + i];
    sum.value.integers.count = 2 * spatial;
    muc_attribute_list_set(&a, sum);
    MUC_TRY(muc_rewrite_tensor(r, pad->inputs[0], &inputs[0]));
    for (uint32_t i = 1; i < node->input_count; i++)
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[i], &inputs[i]));
    return muc_rewrite_change(r, node, node->op, inputs, node->input_count, a.items, a.count);
}

/* ---- factors and biases ---- */

/* all elements of a constant as floats, to be freed; NULL if it is none or memory is out */
static float *floats_of(const muc_rewrite *r, uint32_t id, size_t *count)
{
    const muc_tensor *tensor;
    float *out;

    if (!muc_rewrite_is_constant(r, id) || muc_rewrite_old(r, id)->dtype != MUC_F32)
        return NULL;
    tensor = muc_rewrite_old(r, id);
    out = malloc((size_t)tensor->bytes + 1);
    if (out)
        memcpy(out, tensor->data, (size_t)tensor->bytes);
    *count = (size_t)tensor->bytes / sizeof(float);
    return out;
}

/* weights [in, out, kernel..] */
static bool is_transposed(const muc_node *node)
{
    return muc_op_real_product(node->op) == MUC_PRODUCT_SPREAD &&
           muc_node_integer_or(node, MUC_KEY_GROUPS, 1) == 1 &&
           muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) == 0;
}

/* conv, its transposed or linear with f32 weights that are constant, read by one node alone */
static const muc_node *weighted_before(const muc_rewrite *r, uint32_t tensor)
{
    const muc_node *node = muc_rewrite_producer(r, tensor);
    muc_product_kind kind = node ? muc_op_real_product(node->op) : MUC_PRODUCT_NONE;
    uint32_t bias;

    if (!node || (kind != MUC_PRODUCT_FILTER && kind != MUC_PRODUCT_ROWS && !is_transposed(node)) ||
        !muc_rewrite_only_reader(r, tensor) || !muc_rewrite_is_constant(r, node->inputs[1]) ||
        muc_rewrite_old(r, node->inputs[1])->dtype != MUC_F32)
        return NULL;
    bias = muc_node_input(node, 2);
    return bias == MUC_NO_ID ||
                   (muc_rewrite_is_constant(r, bias) && muc_rewrite_old(r, bias)->dtype == MUC_F32)
               ? node
               : NULL;
}

/* the weights of a node, those of each channel times its factor */
static muc_status scale_weights(muc_rewrite *r, const muc_node *weighted, const double *factor,
                                size_t channels, uint32_t *out)
{
    const muc_tensor *w = muc_rewrite_old(r, weighted->inputs[1]);
    size_t count = 0, each;
    muc_status status;
    float *weights;
    uint32_t in;

    if (muc_rewrite_is_shape(r, w, w->bytes))
        return muc_rewrite_constant(r, w->name, w, w->data, w->bytes, out);
    weights = floats_of(r, weighted->inputs[1], &count);
    if (!weights)
        return muc_fail_nomem(r->ctx, r->old.name, count);
    each = count / channels; /* weights in a row that have one factor */
    if (is_transposed(weighted) && muc_rewrite_dim(&r->old, w, 0, &in) && in > 0)
        each /= in;
    for (size_t i = 0; i < count; i++)
        weights[i] = (float)(factor[i / each % channels] * (double)weights[i]);
    status = muc_rewrite_constant(r, w->name, w, weights, count * sizeof(float), out);
    free(weights);
    return status;
}

static muc_status scale_bias(muc_rewrite *r, const muc_node *weighted, const double *factor,
                             const double *offset, size_t channels, uint32_t *out)
{
    muc_tensor like = { .dtype = MUC_F32, .rank = 1 };
    size_t count = 0;
    float *old = floats_of(r, muc_node_input(weighted, 2), &count);
    float *bias = malloc(channels * sizeof(float));
    muc_status status = bias ? MUC_OK : muc_fail_nomem(r->ctx, r->old.name, channels);

    for (size_t c = 0; status == MUC_OK && c < channels; c++)
        bias[c] = (float)((factor ? factor[c] : 1) * (old ? (double)old[c] : 0) + offset[c]);
    like.dims[0] = muc_expr_const(r->graph->pool, (uint32_t)channels);
    if (status == MUC_OK)
        status = muc_rewrite_constant(r, "bias", &like, bias, channels * sizeof(float), out);
    free(old);
    free(bias);
    return status;
}

/* `node`, whose result is factor[c] * y + offset[c] of weighted's result y, becomes weighted with
 * other weights and bias; factor NULL is 1 */
static muc_status fold_into(muc_rewrite *r, const muc_node *node, const muc_node *weighted,
                            const double *factor, const double *offset, size_t channels)
{
    uint32_t inputs[3];

    MUC_TRY(muc_rewrite_tensor(r, weighted->inputs[0], &inputs[0]));
    if (factor)
        MUC_TRY(scale_weights(r, weighted, factor, channels, &inputs[1]));
    else
        MUC_TRY(muc_rewrite_tensor(r, weighted->inputs[1], &inputs[1]));
    MUC_TRY(scale_bias(r, weighted, factor, offset, channels, &inputs[2]));
    return muc_rewrite_change(r, node, weighted->op, inputs, 3, weighted->attributes,
                              weighted->attribute_count);
}

/* the dimension of channels is the one that the weights' outputs are */
static bool same_channels(const muc_rewrite *r, const muc_node *norm, const muc_node *weighted)
{
    uint32_t rank = muc_rewrite_old(r, norm->inputs[0])->rank;

    if (muc_op_real_product(weighted->op) == MUC_PRODUCT_ROWS)
        return rank == 2 || muc_node_integer_or(norm, MUC_KEY_CHANNELS_LAST, 0) == 1;
    return muc_node_integer_or(norm, MUC_KEY_CHANNELS_LAST, 0) ==
           muc_node_integer_or(weighted, MUC_KEY_CHANNELS_LAST, 0);
}

static muc_status fold_norm(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_node *weighted =
        node->op == MUC_OP_BATCH_NORM ? weighted_before(r, node->inputs[0]) : NULL;
    size_t channels;
    double *numbers =
        weighted && same_channels(r, node, weighted) ? muc_norm_numbers(r, node, &channels) : NULL;
    muc_status status;

    if (!numbers)
        return MUC_OK;
    *done = true;
    status = fold_into(r, node, weighted, numbers, numbers + channels, channels);
    free(numbers);
    return status;
}

/* whether all dimensions but the last `kept` are 1, and there are those */
static bool is_padded(const muc_rewrite *r, const muc_tensor *t, uint32_t kept)
{
    uint32_t extent;

    for (uint32_t i = 0; i + kept < t->rank; i++)
        if (!muc_rewrite_dim(&r->old, t, i, &extent) || extent != 1)
            return false;
    return t->rank >= kept;
}

/* add of a constant [channels] to a linear that has its outputs last */
static muc_status fold_bias(muc_rewrite *r, const muc_node *node, bool *done)
{
    muc_status status = MUC_OK;

    if (node->op != MUC_OP_ADD || muc_rewrite_old(r, node->outputs[0])->dtype != MUC_F32)
        return MUC_OK;
    for (uint32_t side = 0; side < 2 && !*done; side++) {
        const muc_node *weighted = weighted_before(r, node->inputs[side]);
        const muc_tensor *b = muc_rewrite_old(r, node->inputs[1 - side]);
        double *offset;
        float *bias;
        size_t count;

        if (!weighted || muc_op_real_product(weighted->op) != MUC_PRODUCT_ROWS ||
            !is_padded(r, b, 1) || b->rank > muc_rewrite_old(r, node->inputs[side])->rank ||
            b->dims[b->rank - 1] != muc_rewrite_old(r, weighted->inputs[1])->dims[0])
            continue;
        bias = floats_of(r, node->inputs[1 - side], &count);
        offset = bias ? malloc(count * sizeof(double)) : NULL;
        for (size_t c = 0; offset && c < count; c++)
            offset[c] = (double)bias[c];
        if (offset) {
            *done = true;
            status = fold_into(r, node, weighted, NULL, offset, count);
        }
        free(offset);
        free(bias);
    }
    return status;
}

/* a constant [k, n] as [n, k], or with n 1 as it lies, of the shape of `like` */
static muc_status add_rows(muc_rewrite *r, uint32_t constant, const muc_tensor *like, uint32_t n,
                           uint32_t *out)
{
    const muc_tensor *w = muc_rewrite_old(r, constant);
    size_t count = 0, k;
    muc_status status;
    float *from, *to;

    if (n == 1 || muc_rewrite_is_shape(r, w, w->bytes))
        return muc_rewrite_constant(r, w->name, like, w->data, w->bytes, out);
    from = floats_of(r, constant, &count);
    to = malloc(count * sizeof(float) + 1);
    status = from && to ? MUC_OK : muc_fail_nomem(r->ctx, r->old.name, count * sizeof(float));
    k = count / n;
    for (size_t i = 0; status == MUC_OK && i < count; i++)
        to[i] = from[i % k * n + i / k];
    if (status == MUC_OK)
        status = muc_rewrite_constant(r, w->name, like, to, count * sizeof(float), out);
    free(from);
    free(to);
    return status;
}

/* matmul with a constant [k, n], and gemm with one, as linear */
static muc_status make_linear(muc_rewrite *r, const muc_node *node, bool *done)
{
    bool transposed = muc_node_integer_or(node, MUC_KEY_TRANSPOSE_B, 0) == 1;
    uint32_t inputs[3], k, n;
    const muc_tensor *w, *c, *x = muc_rewrite_old(r, node->inputs[0]);
    muc_tensor like;

    if (muc_op_real_product(node->op) != MUC_PRODUCT_COLUMNS ||
        !muc_rewrite_is_constant(r, node->inputs[1]))
        return MUC_OK;
    w = muc_rewrite_old(r, node->inputs[1]);
    if (!is_padded(r, w, 2) || w->dtype != MUC_F32 || x->rank < w->rank ||
        !muc_rewrite_dim(&r->old, w, w->rank - (transposed ? 1 : 2), &k) ||
        !muc_rewrite_dim(&r->old, w, w->rank - (transposed ? 2 : 1), &n))
        return MUC_OK;
    if (muc_node_integer_or(node, MUC_KEY_TRANSPOSE_A, 0) ||
        muc_node_real_or(node, MUC_KEY_ALPHA, 1) != 1 ||
        muc_node_real_or(node, MUC_KEY_BETA, 1) != 1)
        return MUC_OK;
    c = muc_node_input(node, 2) == MUC_NO_ID ? NULL : muc_rewrite_old(r, node->inputs[2]);
    if (c && (c->rank != 1 || c->dims[0] != w->dims[transposed ? 0 : 1]))
        return MUC_OK;
    like = *w;
    like.rank = 2;
    like.dims[0] = muc_expr_const(r->graph->pool, n);
    like.dims[1] = muc_expr_const(r->graph->pool, k);
    *done = true;
    MUC_TRY(muc_rewrite_tensor(r, node->inputs[0], &inputs[0]));
    MUC_TRY(add_rows(r, node->inputs[1], &like, transposed ? 1 : n, &inputs[1]));
    if (c)
        MUC_TRY(muc_rewrite_tensor(r, node->inputs[2], &inputs[2]));
    return muc_rewrite_change(r, node, MUC_OP_LINEAR, inputs, c ? 3 : 2, NULL, 0);
}

/* ---- bounds of integers ---- */

static muc_status fold_bounds(muc_rewrite *r, const muc_node *node, bool *done)
{
    bool at_zero, is_bound = muc_op_bounds(node->op, &at_zero);
    const muc_node *before = is_bound ? muc_rewrite_producer(r, node->inputs[0]) : NULL;
    const muc_tensor *y = muc_rewrite_old(r, node->outputs[0]), *bounds[2] = { NULL, NULL };
    muc_attribute low = { .key = MUC_KEY_CLAMP_MIN }, high = { .key = MUC_KEY_CLAMP_MAX };
    int32_t least, most;
    uint32_t inputs[3];
    bool required;
    muc_attribute_list a;

    if (!before || !muc_op_takes(before->op, MUC_KEY_CLAMP_MIN, &required) ||
        !muc_op_takes(before->op, MUC_KEY_CLAMP_MAX, &required) || before->output_count != 1 ||
        before->input_count > 3 || !muc_attribute_list_of(&a, before) ||
        !muc_rewrite_only_reader(r, node->inputs[0]) ||
        !muc_scale_is_same(muc_rewrite_old(r, node->inputs[0])->quantization, y->quantization) ||
        muc_rewrite_old(r, node->inputs[0])->dtype != y->dtype)
        return MUC_OK;
    for (uint32_t i = 1; i < node->input_count; i++) {
        if (node->inputs[i] == MUC_NO_ID)
            continue;
        bounds[i - 1] = muc_rewrite_old(r, node->inputs[i]);
        if (!muc_rewrite_is_constant(r, node->inputs[i]) || !bounds[i - 1]->quantization)
            return MUC_OK;
    }
    muc_scale_clamp(before, y, &least, &most);
    muc_scale_bounds(node->op, y, bounds[0], bounds[1], &least, &most);
    if (least > most)
        return MUC_OK;
    low.value.integer = least;
    high.value.integer = most;
    *done = true;
    muc_attribute_list_set(&a, low);
    muc_attribute_list_set(&a, high);
    for (uint32_t i = 0; i < before->input_count; i++)
        MUC_TRY(muc_rewrite_tensor(r, before->inputs[i], &inputs[i]));
    return muc_rewrite_change(r, node, before->op, inputs, before->input_count, a.items, a.count);
}

muc_status muc_fuse(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const rules[] = { make_linear, fold_bias, fold_norm, fold_padding,
                                               fold_bounds };

    return muc_rewrite_with(ctx, graph, rules, MUC_COUNT(rules), NULL);
}

muc_status muc_fuse_but_norms(muc_context *ctx, muc_graph *graph)
{
    static muc_rewrite_rule *const rules[] = { make_linear, fold_bias, fold_padding, fold_bounds };

    return muc_rewrite_with(ctx, graph, rules, MUC_COUNT(rules), NULL);
}
