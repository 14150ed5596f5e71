/* shape_elementwise.c - rules of operators that work element by element, broadcasting or not. */
#include "graph/graph_check.h"
#include "graph/shape.h"

#include <string.h>

muc_status muc_shape_same(const muc_rule *r)
{
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    if (r->node->op == MUC_OP_CELU && muc_node_real(r->node, MUC_KEY_ALPHA) == 0)
        return muc_rule_fail(r, "alpha is 0");
    return MUC_OK;
}

muc_status muc_shape_test(const muc_rule *r)
{
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    r->outputs[0].dtype = MUC_BOOL;
    return MUC_OK;
}

muc_status muc_shape_cast(const muc_rule *r)
{
    muc_dtype to = (muc_dtype)muc_node_integer(r->node, MUC_KEY_TO);

    if (muc_dtype_get(to)->block_elements > 1)
        return muc_rule_fail(r, "to is %s, expected a type of single elements",
                             muc_dtype_get(to)->name);
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    r->outputs[0].dtype = to;
    return MUC_OK;
}

muc_status muc_shape_dequantize(const muc_rule *r)
{
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    r->outputs[0].dtype = MUC_F32;
    return MUC_OK;
}

muc_status muc_shape_clip(const muc_rule *r)
{
    for (uint32_t i = 1; i <= 2; i++) {
        if (!muc_rule_input(r, i))
            continue;
        MUC_TRY(muc_rule_expect_type(r, i));
        MUC_TRY(muc_rule_expect_scalar(r, i));
    }
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    return MUC_OK;
}

/* all inputs from first on are of one type; the output has their common shape and the type */
static muc_status broadcast(const muc_rule *r, uint32_t first, bool same_type)
{
    const muc_tensor *x = muc_rule_input(r, first);
    muc_tensor *out = &r->outputs[0];

    out->rank = 0;
    for (uint32_t i = 0; i < r->node->input_count; i++) {
        const muc_tensor *t = muc_rule_input(r, i);

        if (!t)
            return muc_rule_fail(r, "input %u is absent", i);
        if (same_type && i >= first && t->dtype != x->dtype)
            return muc_rule_unexpected(r, i, "%s", muc_dtype_get(x->dtype)->name);
        if (t->quantization == NULL && muc_rule_input(r, 0)->quantization)
            return muc_rule_unexpected(r, i, "quantization as input 0 has");
        MUC_TRY(muc_rule_broadcast(r, i, &out->rank, out->dims));
    }
    out->dtype = x->dtype;
    return MUC_OK;
}

muc_status muc_shape_broadcast(const muc_rule *r)
{
    return broadcast(r, 0, true);
}

muc_status muc_shape_compare(const muc_rule *r)
{
    MUC_TRY(broadcast(r, 0, true));
    r->outputs[0].dtype = MUC_BOOL;
    return MUC_OK;
}

muc_status muc_shape_pow(const muc_rule *r)
{
    if (!muc_rule_is_float(r, 1) && !muc_rule_is_integer(r, 1))
        return muc_rule_unexpected(r, 1, "numbers");
    return broadcast(r, 0, false);
}

muc_status muc_shape_where(const muc_rule *r)
{
    return broadcast(r, 1, true);
}

muc_status muc_shape_prelu(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0);

    MUC_TRY(broadcast(r, 0, true));
    if (!muc_tensor_same_shape(&r->outputs[0], x))
        return muc_rule_unexpected(r, 1, "a shape that broadcasts to input 0's");
    return MUC_OK;
}
