/* shape_reduce.c - rules of operators that work along dimensions. */
#include "graph/shape.h"

#include <string.h>

muc_status muc_shape_axis(const muc_rule *r)
{
    uint32_t axis;

    MUC_TRY(muc_rule_axis(r, MUC_KEY_AXIS, muc_rule_input(r, 0)->rank, &axis));
    MUC_TRY(muc_rule_integer(r, MUC_KEY_P, 1, 2));
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    return MUC_OK;
}

muc_status muc_shape_softmax(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0);
    muc_dtype to = (muc_dtype)muc_node_integer_or(r->node, MUC_KEY_TO, x->dtype);

    if (to != x->dtype && !(x->quantization && x->dtype == MUC_I8 && to == MUC_I16))
        return muc_rule_fail(r, "to is %s, expected i16 of i8, or the type of the input",
                             muc_dtype_get(to)->name);
    MUC_TRY(muc_shape_axis(r));
    r->outputs[0].dtype = to;
    return MUC_OK;
}

/* the dimensions of x without those of the mask, or with 1 in their place */
static muc_status remove_axes(const muc_rule *r, uint32_t mask)
{
    const muc_tensor *x = muc_rule_input(r, 0);
    muc_tensor *out = &r->outputs[0];
    bool keep = muc_node_integer_or(r->node, MUC_KEY_KEEP_DIMS, 1) == 1;

    out->dtype = x->dtype;
    out->rank = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (!(mask >> i & 1))
            out->dims[out->rank++] = x->dims[i];
        else if (keep)
            out->dims[out->rank++] = muc_rule_dim(r, 1);
    }
    return MUC_OK;
}

muc_status muc_shape_reduce(const muc_rule *r)
{
    const muc_attribute *axes = muc_node_attribute(r->node, MUC_KEY_AXES);
    uint32_t rank = muc_rule_input(r, 0)->rank, mask = 0;

    for (uint32_t i = 0; i < axes->value.integers.count; i++) {
        int64_t axis = axes->value.integers.items[i];

        if (axis < 0 || axis >= rank || mask >> axis)
            return muc_rule_fail(r, "axes hold %lld, expected ascending ones of 0..%d",
                                 (long long)axis, (int)rank - 1);
        mask |= 1u << axis;
    }
    return remove_axes(r, mask);
}

muc_status muc_shape_arg(const muc_rule *r)
{
    uint32_t axis;

    MUC_TRY(muc_rule_axis(r, MUC_KEY_AXIS, muc_rule_input(r, 0)->rank, &axis));
    MUC_TRY(muc_rule_require(r, "elements to choose from", muc_rule_dim(r, 1), false,
                             muc_rule_input(r, 0)->dims[axis]));
    MUC_TRY(remove_axes(r, 1u << axis));
    r->outputs[0].dtype = MUC_I64;
    return MUC_OK;
}
