/* group_norm.c - puts a group_norm where an exporter wrote it by an instance_norm. */
#include "passes/simplify/group_norm.h"

#include <stdlib.h>
#include <string.h>

static float element(const muc_tensor *t, size_t i)
{
    float value;

    muc_dtype_to_f32(MUC_F32, t->data, t->bytes == sizeof(float) ? 0 : i, 1, &value);
    return value;
}

/* a new vector [channels]: each channel has element i / each of a, times b's or, with `sum`, plus
 * it; b may be NULL */
static muc_status add_vector(muc_rewrite *r, const char *name, uint32_t channels, uint32_t each,
                             const muc_tensor *a, const muc_tensor *b, bool sum, uint32_t *out)
{
    muc_tensor like = { .dtype = MUC_F32, .rank = 1 };
    muc_status status;
    float *vector;

    like.dims[0] = muc_expr_const(r->graph->pool, channels);
    MUC_TRY(MUC_NEW_ARRAY(r->ctx, r->old.name, channels, &vector));
    for (uint32_t c = 0; c < channels; c++) {
        float value = element(a, c / each), other = b ? element(b, c) : 0;

        vector[c] = !b ? value : sum ? value + other : value * other;
    }
    status = muc_rewrite_constant(r, name, &like, vector, channels * sizeof(float), out);
    free(vector);
    return status;
}

/* a norm of channels that are dimension 1, with constant gains */
static bool is_channel_norm(const muc_rewrite *r, const muc_node *node)
{
    return node && (node->op == MUC_OP_INSTANCE_NORM || node->op == MUC_OP_GROUP_NORM) &&
           muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) == 0 &&
           muc_rewrite_old(r, node->inputs[0])->dtype == MUC_F32 &&
           muc_rewrite_is_constant(r, node->inputs[1]) &&
           muc_rewrite_is_constant(r, node->inputs[2]) &&
           muc_rewrite_only_reader(r, node->outputs[0]);
}

muc_status muc_join_group_norm(muc_rewrite *r, const muc_node *node, bool *done)
{
    const muc_node *norm =
        node->op == MUC_OP_RESHAPE ? muc_rewrite_producer(r, node->inputs[0]) : NULL;
    const muc_tensor *x, *y = muc_rewrite_old(r, node->outputs[0]), *parts;
    const muc_node *before;
    muc_attribute attributes[2] = { { .key = MUC_KEY_EPSILON }, { .key = MUC_KEY_GROUPS } };
    uint32_t inputs[3], channels, groups;

    if (!is_channel_norm(r, norm) || norm->op != MUC_OP_INSTANCE_NORM)
        return MUC_OK;
    before = muc_rewrite_producer(r, norm->inputs[0]);
    if (!before || before->op != MUC_OP_RESHAPE)
        return MUC_OK;
    x = muc_rewrite_old(r, before->inputs[0]);
    parts = muc_rewrite_old(r, norm->inputs[0]);
    if (x->rank < 2 || x->rank != y->rank || parts->dims[0] != x->dims[0] ||
        memcmp(x->dims, y->dims, x->rank * sizeof(*x->dims)) != 0 ||
        !muc_rewrite_dim(&r->old, x, 1, &channels) ||
        !muc_rewrite_dim(&r->old, parts, 1, &groups) || groups == 0 || channels % groups != 0)
        return MUC_OK;
    *done = true;
    attributes[0].value.real = muc_node_real(norm, MUC_KEY_EPSILON);
    attributes[1].value.integer = groups;
    MUC_TRY(muc_rewrite_tensor(r, before->inputs[0], &inputs[0]));
    for (uint32_t i = 1; i < 3; i++)
        MUC_TRY(add_vector(r, i == 1 ? "gain" : "bias", channels, channels / groups,
                           muc_rewrite_old(r, norm->inputs[i]), NULL, false, &inputs[i]));
    return muc_rewrite_change(r, node, MUC_OP_GROUP_NORM, inputs, 3, attributes, 2);
}

/* whether a constant has one element for each of x's channels, or one for all */
static bool is_of_channels(const muc_rewrite *r, uint32_t id, const muc_tensor *x)
{
    const muc_tensor *t = muc_rewrite_old(r, id);
    uint32_t size;

    if (!muc_rewrite_is_constant(r, id) || t->dtype != MUC_F32 || t->rank > x->rank)
        return false;
    for (uint32_t i = 0; i < t->rank; i++)
        if (!muc_rewrite_dim(&r->old, t, i, &size) ||
            (size != 1 && (x->rank - t->rank + i != 1 || t->dims[i] != x->dims[1])))
            return false;
    return true;
}

muc_status muc_join_channel_gains(muc_rewrite *r, const muc_node *node, bool *done)
{
    bool sum = node->op == MUC_OP_ADD;

    if (!sum && node->op != MUC_OP_MUL)
        return MUC_OK;
    for (uint32_t side = 0; side < 2 && !*done; side++) {
        const muc_node *norm = muc_rewrite_producer(r, node->inputs[side]);
        uint32_t inputs[3], channels;
        const muc_tensor *x, *by;

        if (!is_channel_norm(r, norm))
            continue;
        x = muc_rewrite_old(r, norm->inputs[0]);
        by = muc_rewrite_old(r, node->inputs[1 - side]);
        if (!muc_rewrite_dim(&r->old, x, 1, &channels) ||
            !is_of_channels(r, node->inputs[1 - side], x))
            continue;
        *done = true;
        MUC_TRY(muc_rewrite_tensor(r, norm->inputs[0], &inputs[0]));
        MUC_TRY(add_vector(r, "gain", channels, 1, muc_rewrite_old(r, norm->inputs[1]),
                           sum ? NULL : by, false, &inputs[1]));
        MUC_TRY(add_vector(r, "bias", channels, 1, muc_rewrite_old(r, norm->inputs[2]), by, sum,
                           &inputs[2]));
        MUC_TRY(muc_rewrite_change(r, node, norm->op, inputs, 3, norm->attributes,
                                   norm->attribute_count));
    }
    return MUC_OK;
}
