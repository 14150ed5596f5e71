/* shape_quantlib.c - rules of QuantLib's integer operators and of caches that grow in place. */
#include "graph/shape.h"

#include <string.h>

/* input i has at most `bits` bits */
static muc_status expect_bits(const muc_rule *r, uint32_t i, unsigned bits)
{
    muc_dtype dtype = muc_rule_input(r, i)->dtype;
    int64_t low, high;

    if (muc_dtype_range(dtype, &low, &high) && low >= -(INT64_C(1) << (bits - 1)) &&
        high < INT64_C(1) << (bits < 32 ? bits : 31))
        return MUC_OK;
    return muc_rule_unexpected(r, i, "integers of at most %u bits", bits);
}

/* input i is i32 of `count` elements, which QuantLib calls what */
static muc_status expect_words(const muc_rule *r, uint32_t i, uint32_t count, const char *what)
{
    const muc_tensor *t = muc_rule_input(r, i);
    uint32_t found;

    if (t->dtype == MUC_I32 && t->rank == 1 && muc_rule_const(r, t->dims[0], &found) &&
        found == count)
        return MUC_OK;
    return muc_rule_unexpected(r, i, "i32 [%u]: %s", count, what);
}

/* input i is i32, one number or one for each element of x's last dimension */
static muc_status expect_columns(const muc_rule *r, uint32_t i)
{
    const muc_tensor *x = muc_rule_input(r, 0), *t = muc_rule_input(r, i);
    uint32_t found;

    if (t->dtype == MUC_I32 && t->rank == 1 && x->rank > 0 &&
        (t->dims[0] == x->dims[x->rank - 1] ||
         (muc_rule_const(r, t->dims[0], &found) && found == 1)))
        return MUC_OK;
    return muc_rule_unexpected(r, i, "i32 of one element or of one for each column");
}

static muc_status like_x(const muc_rule *r, muc_dtype dtype)
{
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    r->outputs[0].dtype = dtype;
    return MUC_OK;
}

/* shift and clamp; output 0 is of type to */
static muc_status set_requantized(const muc_rule *r)
{
    int64_t to = muc_node_integer(r->node, MUC_KEY_TO), low, high;
    int64_t clamp_min = muc_node_integer(r->node, MUC_KEY_CLAMP_MIN);
    int64_t clamp_max = muc_node_integer(r->node, MUC_KEY_CLAMP_MAX);

    if (!muc_dtype_range((muc_dtype)to, &low, &high) || low < INT32_MIN || high > INT32_MAX ||
        clamp_min < low || clamp_max > high || clamp_min > clamp_max)
        return muc_rule_fail(r, "clamp_min, clamp_max %lld, %lld, expected a range of type to",
                             (long long)clamp_min, (long long)clamp_max);
    r->outputs[0].dtype = (muc_dtype)to;
    return MUC_OK;
}

muc_status muc_shape_requant_shift(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0);
    muc_expr dims[MUC_GRAPH_MAX_RANK];

    MUC_TRY(expect_bits(r, 0, 32));
    for (uint32_t i = 1; i <= 2; i++) {
        uint32_t rank = x->rank;

        if (muc_rule_input(r, i)->dtype != MUC_I32)
            return muc_rule_unexpected(r, i, "i32");
        memcpy(dims, x->dims, sizeof(dims));
        MUC_TRY(muc_rule_broadcast(r, i, &rank, dims));
        if (rank != x->rank || memcmp(dims, x->dims, rank * sizeof(*dims)) != 0)
            return muc_rule_unexpected(r, i, "a shape that is broadcast to the first input's");
    }
    muc_rule_like(r, 0, x);
    return set_requantized(r);
}

/* factors of sums, inputs i and i + 1: i32, one element, or one for each of `channels` */
static muc_status expect_factors(const muc_rule *r, uint32_t i, muc_expr channels)
{
    for (uint32_t end = i + 2; i < end; i++) {
        const muc_tensor *t = muc_rule_input(r, i);

        if (t->dtype != MUC_I32)
            return muc_rule_unexpected(r, i, "i32");
        if (t->rank != 1 || t->dims[0] != channels)
            MUC_TRY(muc_rule_expect_scalar(r, i));
    }
    return MUC_OK;
}

muc_status muc_shape_requant_conv(const muc_rule *r)
{
    MUC_TRY(muc_shape_sums_of_conv(r, 4));
    MUC_TRY(expect_factors(r, 2, muc_rule_input(r, 1)->dims[0]));
    return set_requantized(r);
}

muc_status muc_shape_requant_linear(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0), *w = muc_rule_input(r, 1);

    MUC_TRY(muc_rule_expect_narrow(r, 0));
    MUC_TRY(muc_rule_expect_narrow(r, 1));
    if (w->rank != 2 || x->rank == 0 || w->dims[1] != x->dims[x->rank - 1])
        return muc_rule_unexpected(r, 1, "[N, K] for rows of K elements");
    MUC_TRY(expect_factors(r, 2, w->dims[0]));
    if (muc_rule_input(r, 4)) {
        if (muc_rule_input(r, 4)->dtype != x->dtype)
            return muc_rule_unexpected(r, 4, "%s", muc_dtype_get(x->dtype)->name);
        MUC_TRY(muc_rule_expect_scalar(r, 4));
    }
    muc_rule_like(r, 0, x);
    r->outputs[0].dims[x->rank - 1] = w->dims[0];
    return set_requantized(r);
}

muc_status muc_shape_requant_matmul(const muc_rule *r)
{
    const muc_tensor *b = muc_rule_input(r, 1);

    MUC_TRY(muc_shape_sums_of_matmul(r));
    MUC_TRY(expect_factors(r, 2, b->rank > 1 ? b->dims[b->rank - 1] : MUC_EXPR_NONE));
    return set_requantized(r);
}

muc_status muc_shape_requant_pair(const muc_rule *r)
{
    muc_tensor *out = &r->outputs[0];

    MUC_TRY(muc_rule_expect_narrow(r, 0));
    MUC_TRY(muc_rule_expect_narrow(r, 1));
    MUC_TRY(expect_factors(r, 2, MUC_EXPR_NONE));
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    MUC_TRY(muc_rule_broadcast(r, 1, &out->rank, out->dims));
    return set_requantized(r);
}

muc_status muc_shape_lookup(const muc_rule *r)
{
    const muc_tensor *table = muc_rule_input(r, 1);
    uint32_t size = 0;

    MUC_TRY(muc_rule_expect_byte(r, 0));
    MUC_TRY(muc_rule_expect_byte(r, 1));
    if (table->rank != 1 || !muc_rule_const(r, table->dims[0], &size) || size != 256)
        return muc_rule_unexpected(r, 1, "256 elements");
    return like_x(r, table->dtype);
}

muc_status muc_shape_integer_norm(const muc_rule *r)
{
    MUC_TRY(expect_bits(r, 0, 16));
    for (uint32_t i = 1; i < r->node->input_count; i++)
        MUC_TRY(expect_columns(r, i));
    return like_x(r, MUC_I8);
}

/* rows of one element or more, and 2..256 levels */
static muc_status check_softmax(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0);

    MUC_TRY(expect_bits(r, 0, 16));
    if (x->rank == 0 || muc_expr_get(r->graph->pool, x->dims[x->rank - 1])->lo == 0)
        return muc_rule_unexpected(r, 0, "rows of one element or more");
    return MUC_OK;
}

muc_status muc_shape_integer_softmax(const muc_rule *r)
{
    MUC_TRY(check_softmax(r));
    MUC_TRY(expect_words(r, 1, 3, "b, c, log2"));
    return like_x(r, MUC_U8);
}

muc_status muc_shape_ita_max(const muc_rule *r)
{
    MUC_TRY(check_softmax(r));
    return like_x(r, MUC_U8);
}

muc_status muc_shape_integer_hard_swish(const muc_rule *r)
{
    MUC_TRY(expect_bits(r, 0, 16));
    MUC_TRY(expect_words(r, 1, 3, "one_over_six, three, six"));
    return like_x(r, MUC_I32);
}

muc_status muc_shape_integer_gelu(const muc_rule *r)
{
    MUC_TRY(expect_bits(r, 0, 16));
    MUC_TRY(expect_words(r, 1, 2, "b, one"));
    return like_x(r, MUC_I32);
}

muc_status muc_shape_integer_div(const muc_rule *r)
{
    uint32_t rank = muc_rule_input(r, 0)->rank;

    MUC_TRY(expect_bits(r, 0, 32));
    MUC_TRY(expect_bits(r, 1, 32));
    if (muc_node_integer(r->node, MUC_KEY_DELTA) * muc_node_integer(r->node, MUC_KEY_ETA) >
        UINT32_MAX)
        return muc_rule_fail(r, "delta times eta are beyond 32 bits");
    MUC_TRY(like_x(r, MUC_I32));
    MUC_TRY(muc_rule_broadcast(r, 1, &rank, r->outputs[0].dims));
    r->outputs[0].rank = rank;
    return MUC_OK;
}

/* Dimension axis of the state has room for position + new rows. */
muc_status muc_shape_append(const muc_rule *r)
{
    const muc_tensor *state = muc_rule_input(r, 0), *rows = muc_rule_input(r, 1);
    muc_expr_pool *pool = r->graph->pool;
    uint32_t axis, room;
    muc_expr end;

    if (state->kind != MUC_TENSOR_STATE)
        return muc_rule_unexpected(r, 0, "a state");
    MUC_TRY(muc_rule_expect_type(r, 1));
    MUC_TRY(muc_rule_axis(r, MUC_KEY_AXIS, state->rank, &axis));
    if (rows->rank != state->rank)
        return muc_rule_unexpected(r, 1, "%u dimensions, as the state has", state->rank);
    for (uint32_t i = 0; i < state->rank; i++)
        if (i != axis && rows->dims[i] != state->dims[i])
            return muc_rule_unexpected(r, 1, "the state's dimensions but for %u", axis);
    end = muc_expr_add(pool, muc_node_expr(r->node, MUC_KEY_POSITION), rows->dims[axis]);
    MUC_TRY(muc_expr_status(pool));
    if (!muc_rule_const(r, state->dims[axis], &room) || muc_expr_get(pool, end)->may_overflow ||
        muc_expr_get(pool, end)->hi > room)
        return muc_rule_unexpected(r, 0, "room for position + %u",
                                   muc_expr_get(pool, rows->dims[axis])->hi);
    muc_rule_like(r, 0, state);
    r->outputs[0].dims[axis] = end;
    return MUC_OK;
}
