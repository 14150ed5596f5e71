/* shape_window.c - rules of products, convolutions, pools and norms. */
#include "graph/shape.h"

#include "graph/graph_check.h"

#include <string.h>

enum { MOST_SPATIAL = 3, MOST_EXTENT = 1 << 24 };

/* The spatial part of a node: x [N, C, spatial..] or [N, spatial.., C]. */
typedef struct window {
    uint32_t spatial, first; /* number of spatial dimensions, the first of them in x */
    uint32_t channels;       /* the dimension of channels in x */
    uint32_t kernel[MOST_SPATIAL], stride[MOST_SPATIAL], dilation[MOST_SPATIAL];
    uint32_t begin[MOST_SPATIAL], end[MOST_SPATIAL];
} window;

static uint32_t item(const muc_rule *r, muc_attribute_key key, uint32_t i, uint32_t fallback)
{
    const int64_t *items = muc_node_integers(r->node, key);

    return items ? (uint32_t)items[i] : fallback;
}

/* all but the kernel, which conv takes from its weights */
static muc_status read_window(const muc_rule *r, window *w)
{
    const muc_tensor *x = muc_rule_input(r, 0);

    if (x->rank < 3 || x->rank > 2 + MOST_SPATIAL)
        return muc_rule_unexpected(r, 0, "a batch of channels with 1 to 3 spatial dimensions");
    w->spatial = x->rank - 2;
    w->channels = muc_rule_channels(r, x->rank);
    w->first = w->channels == 1 ? 2 : 1;
    MUC_TRY(muc_rule_integers(r, MUC_KEY_STRIDES, w->spatial, 1, MOST_EXTENT));
    MUC_TRY(muc_rule_integers(r, MUC_KEY_DILATIONS, w->spatial, 1, MOST_EXTENT));
    MUC_TRY(muc_rule_integers(r, MUC_KEY_PADS, 2 * w->spatial, 0, MOST_EXTENT));
    for (uint32_t i = 0; i < w->spatial; i++) {
        w->stride[i] = item(r, MUC_KEY_STRIDES, i, 1);
        w->dilation[i] = item(r, MUC_KEY_DILATIONS, i, 1);
        w->begin[i] = item(r, MUC_KEY_PADS, i, 0);
        w->end[i] = item(r, MUC_KEY_PADS, w->spatial + i, 0);
    }
    return MUC_OK;
}

/* elements that the kernel spans, from its first to its last */
static uint64_t extent(const window *w, uint32_t i)
{
    return (uint64_t)(w->kernel[i] - 1) * w->dilation[i] + 1;
}

/* how often the window fits along spatial dimension i */
static muc_status count_windows(const muc_rule *r, const window *w, uint32_t i, bool ceil_mode,
                                muc_expr *out)
{
    muc_expr_pool *pool = r->graph->pool;
    muc_expr in = muc_rule_input(r, 0)->dims[w->first + i];
    muc_expr padded = muc_expr_add_const(pool, in, w->begin[i] + w->end[i]), most;
    uint32_t rest;

    MUC_TRY(muc_expr_status(pool));
    if (extent(w, i) > muc_expr_get(pool, padded)->lo)
        return muc_rule_fail(r, "the kernel spans %llu of %u elements along spatial dimension %u",
                             (unsigned long long)extent(w, i), muc_expr_get(pool, padded)->lo, i);
    rest = (uint32_t)extent(w, i);
    padded = muc_expr_sub_const(pool, padded, rest);
    if (!ceil_mode) {
        *out = muc_expr_add_const(pool, muc_expr_div(pool, padded, w->stride[i]), 1);
        return muc_expr_status(pool);
    }
    /* a window that would begin in the padding at the end does not count */
    *out = muc_expr_add_const(pool, muc_expr_cdiv(pool, padded, w->stride[i]), 1);
    most = muc_expr_cdiv(pool, muc_expr_add_const(pool, in, w->begin[i]), w->stride[i]);
    *out = muc_expr_min(pool, *out, most);
    return muc_expr_status(pool);
}

static muc_status set_windows(const muc_rule *r, const window *w, muc_expr channels, bool ceil_mode)
{
    muc_tensor *out = &r->outputs[0];

    muc_rule_like(r, 0, muc_rule_input(r, 0));
    out->dims[w->channels] = channels;
    for (uint32_t i = 0; i < w->spatial; i++)
        MUC_TRY(count_windows(r, w, i, ceil_mode, &out->dims[w->first + i]));
    return MUC_OK;
}

/* rank and constant dimensions of the weights, and the kernel's size out of them */
static muc_status read_kernel(const muc_rule *r, uint32_t input, bool channels_last, window *w,
                              uint32_t dims[MUC_GRAPH_MAX_RANK])
{
    const muc_tensor *weights = muc_rule_input(r, input);

    if (weights->rank != w->spatial + 2)
        return muc_rule_unexpected(r, input, "rank %u", w->spatial + 2);
    for (uint32_t i = 0; i < weights->rank; i++)
        if (!muc_rule_const(r, weights->dims[i], &dims[i]) || dims[i] == 0 || dims[i] > MOST_EXTENT)
            return muc_rule_unexpected(r, input, "constant dimensions above 0");
    for (uint32_t i = 0; i < w->spatial; i++)
        w->kernel[i] = dims[(channels_last ? 1 : 2) + i];
    return MUC_OK;
}

/* the rule of convolutions whose weights are the given input and bias another */
static muc_status convolve(const muc_rule *r, uint32_t weights, uint32_t bias, bool typed_bias)
{
    const muc_tensor *x = muc_rule_input(r, 0);
    uint32_t dims[MUC_GRAPH_MAX_RANK], channels, groups, in;
    bool channels_last = muc_node_integer_or(r->node, MUC_KEY_CHANNELS_LAST, 0) == 1;
    window w;

    MUC_TRY(read_window(r, &w));
    MUC_TRY(read_kernel(r, weights, channels_last, &w, dims));
    groups = (uint32_t)muc_node_integer_or(r->node, MUC_KEY_GROUPS, 1);
    in = dims[channels_last ? w.spatial + 1 : 1];
    if (!muc_rule_const(r, x->dims[w.channels], &channels) || (uint64_t)in * groups != channels)
        return muc_rule_unexpected(r, 0, "%u groups of %u channels", groups, in);
    if (dims[0] % groups != 0)
        return muc_rule_unexpected(r, weights, "outputs that %u groups divide", groups);
    if (typed_bias && muc_rule_input(r, bias))
        MUC_TRY(muc_rule_expect_vector(r, bias, muc_rule_input(r, weights)->dims[0]));
    return set_windows(r, &w, muc_rule_input(r, weights)->dims[0], false);
}

/* integer operators: input i is i32 [out] */
static muc_status expect_i32(const muc_rule *r, uint32_t i, muc_expr length)
{
    const muc_tensor *t = muc_rule_input(r, i);

    if (!t || (t->dtype == MUC_I32 && t->rank == 1 && t->dims[0] == length))
        return MUC_OK;
    return muc_rule_unexpected(r, i, "i32 [%u]", muc_expr_get(r->graph->pool, length)->hi);
}

/* weights match input 0: the same real type, or with quantization integers that carry it too */
static muc_status expect_weights(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0), *weights = muc_rule_input(r, 1);

    if (!x->quantization)
        return muc_rule_expect_type(r, 1);
    return weights->quantization ? MUC_OK
                                 : muc_rule_unexpected(r, 1, "quantization as input 0 has");
}

muc_status muc_shape_conv(const muc_rule *r)
{
    MUC_TRY(expect_weights(r));
    return convolve(r, 1, 2, true);
}

muc_status muc_rule_expect_byte(const muc_rule *r, uint32_t i)
{
    muc_dtype dtype = muc_rule_input(r, i)->dtype;

    return dtype == MUC_I8 || dtype == MUC_U8 ? MUC_OK : muc_rule_unexpected(r, i, "i8 or u8");
}

/* input i, if it is there, is of input like's type, one or length of them */
static muc_status expect_zeros(const muc_rule *r, uint32_t i, uint32_t like, muc_expr length)
{
    const muc_tensor *t = muc_rule_input(r, i);

    if (!t)
        return MUC_OK;
    if (t->dtype != muc_rule_input(r, like)->dtype)
        return muc_rule_unexpected(r, i, "%s", muc_dtype_get(muc_rule_input(r, like)->dtype)->name);
    if (t->rank == 1 && t->dims[0] == length)
        return MUC_OK;
    return muc_rule_expect_scalar(r, i);
}

muc_status muc_rule_expect_narrow(const muc_rule *r, uint32_t i)
{
    return muc_rule_input(r, i)->dtype == MUC_I16 ? MUC_OK : muc_rule_expect_byte(r, i);
}

muc_status muc_shape_sums_of_conv(const muc_rule *r, uint32_t zero)
{
    MUC_TRY(muc_rule_expect_narrow(r, 0));
    MUC_TRY(muc_rule_expect_narrow(r, 1));
    MUC_TRY(convolve(r, 1, 0, false));
    MUC_TRY(expect_zeros(r, zero, 0, MUC_EXPR_NONE));
    r->outputs[0].dtype = MUC_I32;
    return MUC_OK;
}

muc_status muc_shape_conv_integer(const muc_rule *r)
{
    MUC_TRY(muc_shape_sums_of_conv(r, 2));
    return expect_zeros(r, 3, 1, muc_rule_input(r, 1)->dims[0]);
}

/* scale and zero point of inputs i, i + 1, of values like those of input `like` */
static muc_status expect_scale(const muc_rule *r, uint32_t i, uint32_t like, muc_expr length)
{
    const muc_tensor *scale = muc_rule_input(r, i);

    if (scale->dtype != MUC_F32)
        return muc_rule_unexpected(r, i, "f32");
    if (scale->rank != 1 || scale->dims[0] != length)
        MUC_TRY(muc_rule_expect_scalar(r, i));
    return expect_zeros(r, i + 1, like, length);
}

muc_status muc_shape_qlinear_conv(const muc_rule *r)
{
    muc_expr channels;

    MUC_TRY(muc_rule_expect_byte(r, 0));
    MUC_TRY(muc_rule_expect_byte(r, 3));
    MUC_TRY(convolve(r, 3, 0, false));
    channels = muc_rule_input(r, 3)->dims[0];
    MUC_TRY(expect_scale(r, 1, 0, MUC_EXPR_NONE));
    MUC_TRY(expect_scale(r, 4, 3, channels));
    MUC_TRY(muc_rule_expect_byte(r, 7));
    MUC_TRY(expect_scale(r, 6, 7, MUC_EXPR_NONE));
    MUC_TRY(expect_i32(r, 8, channels));
    r->outputs[0].dtype = muc_rule_input(r, 7)->dtype;
    return MUC_OK;
}

/* (in - 1) * stride + output padding + extent - pads */
static muc_status transposed(const muc_rule *r, const window *w, uint32_t i, muc_expr *out)
{
    muc_expr_pool *pool = r->graph->pool;
    muc_expr in = muc_rule_input(r, 0)->dims[w->first + i];
    uint64_t added = extent(w, i) + item(r, MUC_KEY_OUTPUT_PADDING, i, 0);
    uint64_t removed = (uint64_t)w->stride[i] + w->begin[i] + w->end[i];
    muc_expr full;

    if (added > MOST_EXTENT || removed > MOST_EXTENT)
        return muc_rule_fail(r, "a kernel or pads of more than %d elements", MOST_EXTENT);
    full = muc_expr_add(pool, muc_expr_mul_const(pool, in, w->stride[i]), muc_rule_dim(r, added));
    MUC_TRY(muc_expr_status(pool));
    if (muc_expr_get(pool, in)->lo == 0 || removed > muc_expr_get(pool, full)->lo)
        return muc_rule_fail(r, "pads leave nothing along spatial dimension %u", i);
    *out = muc_expr_sub(pool, full, muc_rule_dim(r, removed));
    return muc_expr_status(pool);
}

muc_status muc_shape_conv_transpose(const muc_rule *r)
{
    bool channels_last = muc_node_integer_or(r->node, MUC_KEY_CHANNELS_LAST, 0) == 1;
    uint32_t dims[MUC_GRAPH_MAX_RANK], channels, groups, in, each;
    muc_expr out;
    window w;

    MUC_TRY(expect_weights(r));
    MUC_TRY(read_window(r, &w));
    MUC_TRY(read_kernel(r, 1, channels_last, &w, dims));
    MUC_TRY(muc_rule_integers(r, MUC_KEY_OUTPUT_PADDING, w.spatial, 0, MOST_EXTENT));
    MUC_TRY(muc_rule_integer(r, MUC_KEY_GROUPS, 1, channels_last ? 1 : MOST_EXTENT));
    groups = (uint32_t)muc_node_integer_or(r->node, MUC_KEY_GROUPS, 1);
    in = channels_last ? dims[w.spatial + 1] : dims[0];
    each = channels_last ? dims[0] : dims[1];
    if (!muc_rule_const(r, muc_rule_input(r, 0)->dims[w.channels], &channels) || in != channels ||
        in % groups != 0 || (uint64_t)each * groups > MOST_EXTENT)
        return muc_rule_unexpected(r, 0, "%u channels in %u groups", in, groups);
    out = muc_rule_dim(r, (uint64_t)each * groups);
    if (muc_rule_input(r, 2))
        MUC_TRY(muc_rule_expect_vector(r, 2, out));
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    r->outputs[0].dims[w.channels] = out;
    for (uint32_t i = 0; i < w.spatial; i++)
        MUC_TRY(transposed(r, &w, i, &r->outputs[0].dims[w.first + i]));
    return MUC_OK;
}

muc_status muc_shape_pool(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0);
    window w;

    MUC_TRY(read_window(r, &w));
    MUC_TRY(muc_rule_integers(r, MUC_KEY_KERNEL, w.spatial, 1, MOST_EXTENT));
    for (uint32_t i = 0; i < w.spatial; i++) {
        w.kernel[i] = item(r, MUC_KEY_KERNEL, i, 1);
        /* else a window could lie in the padding alone, and have no greatest element or mean */
        if (w.begin[i] >= extent(&w, i) || w.end[i] >= extent(&w, i))
            return muc_rule_fail(r, "pads %u, %u of spatial dimension %u hold a window of %llu",
                                 w.begin[i], w.end[i], i, (unsigned long long)extent(&w, i));
    }
    return set_windows(r, &w, x->dims[w.channels],
                       muc_node_integer_or(r->node, MUC_KEY_CEIL_MODE, 0) == 1);
}

muc_status muc_shape_max_pool(const muc_rule *r)
{
    MUC_TRY(muc_shape_pool(r));
    if (r->node->output_count > 1) {
        muc_rule_like(r, 1, &r->outputs[0]);
        r->outputs[1].dtype = MUC_I64;
    }
    return MUC_OK;
}

/* numpy's matmul of inputs a and b, of any type */
static muc_status multiply(const muc_rule *r, uint32_t a, uint32_t b)
{
    const muc_tensor *x = muc_rule_input(r, a), *y = muc_rule_input(r, b);
    muc_tensor *out = &r->outputs[0];
    uint32_t rank;

    if (x->rank == 0 || y->rank == 0)
        return muc_rule_unexpected(r, x->rank == 0 ? a : b, "at least a vector");
    if (x->dims[x->rank - 1] != y->dims[y->rank > 1 ? y->rank - 2 : 0])
        return muc_rule_unexpected(r, b, "%u elements to multiply with",
                                   muc_expr_get(r->graph->pool, x->dims[x->rank - 1])->hi);
    /* the dimensions before the matrices broadcast */
    rank = x->rank > 2 ? x->rank - 2 : 0;
    memcpy(out->dims, x->dims, rank * sizeof(*out->dims));
    out->rank = y->rank > 2 ? y->rank - 2 : 0;
    if (rank < out->rank) {
        memmove(out->dims + out->rank - rank, out->dims, rank * sizeof(*out->dims));
        for (uint32_t i = 0; i < out->rank - rank; i++)
            out->dims[i] = muc_rule_dim(r, 1);
        rank = out->rank;
    }
    for (uint32_t i = 0; y->rank > 2 && i < y->rank - 2; i++) {
        muc_expr *dim = &out->dims[rank - (y->rank - 2) + i];

        if (*dim == muc_rule_dim(r, 1))
            *dim = y->dims[i];
        else if (y->dims[i] != *dim && y->dims[i] != muc_rule_dim(r, 1))
            return muc_rule_unexpected(r, b, "a stack that broadcasts with input %u's", a);
    }
    out->rank = rank;
    if (x->rank > 1)
        out->dims[out->rank++] = x->dims[x->rank - 2];
    if (y->rank > 1)
        out->dims[out->rank++] = y->dims[y->rank - 1];
    out->dtype = x->dtype;
    return MUC_OK;
}

muc_status muc_shape_matmul(const muc_rule *r)
{
    MUC_TRY(expect_weights(r));
    return multiply(r, 0, 1);
}

muc_status muc_shape_sums_of_matmul(const muc_rule *r)
{
    MUC_TRY(muc_rule_expect_narrow(r, 0));
    MUC_TRY(muc_rule_expect_narrow(r, 1));
    MUC_TRY(multiply(r, 0, 1));
    r->outputs[0].dtype = MUC_I32;
    return MUC_OK;
}

muc_status muc_shape_matmul_integer(const muc_rule *r)
{
    const muc_tensor *a = muc_rule_input(r, 0), *b = muc_rule_input(r, 1);

    MUC_TRY(muc_shape_sums_of_matmul(r));
    MUC_TRY(expect_zeros(r, 2, 0, a->rank > 1 ? a->dims[a->rank - 2] : MUC_EXPR_NONE));
    return expect_zeros(r, 3, 1, b->rank > 1 ? b->dims[b->rank - 1] : MUC_EXPR_NONE);
}

muc_status muc_shape_qlinear_matmul(const muc_rule *r)
{
    const muc_tensor *a = muc_rule_input(r, 0), *b = muc_rule_input(r, 3);

    MUC_TRY(muc_rule_expect_byte(r, 0));
    MUC_TRY(muc_rule_expect_byte(r, 3));
    MUC_TRY(multiply(r, 0, 3));
    MUC_TRY(expect_scale(r, 1, 0, a->rank > 1 ? a->dims[a->rank - 2] : MUC_EXPR_NONE));
    MUC_TRY(expect_scale(r, 4, 3, b->dims[b->rank - 1]));
    MUC_TRY(muc_rule_expect_byte(r, 7));
    MUC_TRY(expect_scale(r, 6, 7, MUC_EXPR_NONE));
    r->outputs[0].dtype = muc_rule_input(r, 7)->dtype;
    return MUC_OK;
}

muc_status muc_shape_gemm(const muc_rule *r)
{
    const muc_tensor *a = muc_rule_input(r, 0), *b = muc_rule_input(r, 1);
    muc_tensor *out = &r->outputs[0];
    uint32_t ta, tb, rank = 2;
    muc_expr dims[2];

    MUC_TRY(muc_rule_expect_type(r, 1));
    ta = (uint32_t)muc_node_integer_or(r->node, MUC_KEY_TRANSPOSE_A, 0);
    tb = (uint32_t)muc_node_integer_or(r->node, MUC_KEY_TRANSPOSE_B, 0);
    if (a->rank != 2)
        return muc_rule_unexpected(r, 0, "a matrix");
    if (b->rank != 2 || b->dims[tb] != a->dims[1 - ta])
        return muc_rule_unexpected(r, 1, "a matrix of %u elements to multiply with",
                                   muc_expr_get(r->graph->pool, a->dims[1 - ta])->hi);
    out->dtype = a->dtype;
    out->rank = 2;
    dims[0] = out->dims[0] = a->dims[ta];
    dims[1] = out->dims[1] = b->dims[1 - tb];
    if (!muc_rule_input(r, 2))
        return MUC_OK;
    MUC_TRY(muc_rule_expect_type(r, 2));
    if (muc_rule_input(r, 2)->rank > 2)
        return muc_rule_unexpected(r, 2, "at most a matrix");
    MUC_TRY(muc_rule_broadcast(r, 2, &rank, dims));
    if (dims[0] != out->dims[0] || dims[1] != out->dims[1])
        return muc_rule_unexpected(r, 2, "a shape that broadcasts to the product's");
    return MUC_OK;
}

static muc_status check_epsilon(const muc_rule *r)
{
    return muc_node_real(r->node, MUC_KEY_EPSILON) < 0
               ? muc_rule_fail(r, "expected an epsilon of at least 0")
               : MUC_OK;
}

/* inputs 1..count are vectors of channels */
static muc_status channel_vectors(const muc_rule *r, uint32_t count)
{
    const muc_tensor *x = muc_rule_input(r, 0);

    MUC_TRY(check_epsilon(r));
    if (x->rank < 2)
        return muc_rule_unexpected(r, 0, "a batch of channels");
    for (uint32_t i = 1; i <= count; i++) {
        const muc_tensor *v = muc_rule_input(r, i);
        muc_expr channels = x->dims[muc_rule_channels(r, x->rank)];

        if (!x->quantization) /* int8 norms have real gains */
            MUC_TRY(muc_rule_expect_vector(r, i, channels));
        else if (v->dtype != MUC_F32 || v->rank != 1 || v->dims[0] != channels)
            return muc_rule_unexpected(r, i, "f32, one per channel");
    }
    muc_rule_like(r, 0, x);
    return MUC_OK;
}

muc_status muc_shape_batch_norm(const muc_rule *r)
{
    return channel_vectors(r, 4);
}

muc_status muc_shape_instance_norm(const muc_rule *r)
{
    uint32_t channels;

    MUC_TRY(channel_vectors(r, 2));
    if (!muc_node_attribute(r->node, MUC_KEY_GROUPS))
        return MUC_OK;
    if (!muc_rule_const(r, r->outputs[0].dims[muc_rule_channels(r, r->outputs[0].rank)],
                        &channels) ||
        channels % (uint32_t)muc_node_integer(r->node, MUC_KEY_GROUPS) != 0)
        return muc_rule_unexpected(r, 0, "channels that %lld groups divide",
                                   (long long)muc_node_integer(r->node, MUC_KEY_GROUPS));
    return MUC_OK;
}

muc_status muc_shape_layer_norm(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0);
    uint32_t axis;

    MUC_TRY(muc_rule_axis(r, MUC_KEY_AXIS, x->rank, &axis));
    MUC_TRY(check_epsilon(r));
    muc_rule_like(r, 0, x);
    for (uint32_t i = 1; i < r->node->input_count; i++) {
        uint32_t rank = x->rank - axis;
        muc_expr dims[MUC_GRAPH_MAX_RANK];

        memcpy(dims, x->dims + axis, rank * sizeof(*dims));
        if ((x->dtype != MUC_F32 && !x->quantization) || !muc_rule_is_float(r, i))
            MUC_TRY(muc_rule_expect_type(r, i));
        MUC_TRY(muc_rule_broadcast(r, i, &rank, dims));
        if (rank != x->rank - axis || memcmp(dims, x->dims + axis, rank * sizeof(*dims)) != 0)
            return muc_rule_unexpected(r, i, "a shape that broadcasts to the dimensions from axis");
    }
    for (uint32_t o = 1; o < r->node->output_count; o++) {
        muc_rule_like(r, o, x);
        for (uint32_t i = axis; i < x->rank; i++)
            r->outputs[o].dims[i] = muc_rule_dim(r, 1);
        r->outputs[o].dtype = x->dtype == MUC_F64 ? MUC_F64 : MUC_F32;
    }
    return MUC_OK;
}

muc_status muc_shape_lrn(const muc_rule *r)
{
    if (muc_rule_input(r, 0)->rank < 2)
        return muc_rule_unexpected(r, 0, "a batch of channels");
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    return MUC_OK;
}
