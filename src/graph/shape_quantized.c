/* shape_quantized.c - rules of ONNX's steps between real numbers and integers. */
#include "graph/shape.h"

#include <string.h>

/* scale and zero point, inputs 1 and 2, are scalars or vectors along axis of input 0, or of blocks
 * along it */
static muc_status check_scale(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0), *scale = muc_rule_input(r, 1);
    const muc_tensor *zero = muc_rule_input(r, 2);
    uint32_t axis;

    if (zero && (zero->rank != scale->rank ||
                 memcmp(zero->dims, scale->dims, zero->rank * sizeof(*zero->dims)) != 0))
        return muc_rule_unexpected(r, 2, "the scale's shape");
    if (!muc_node_attribute(r->node, MUC_KEY_AXIS) || scale->rank == 0)
        return muc_rule_expect_scalar(r, 1);
    MUC_TRY(muc_rule_axis(r, MUC_KEY_AXIS, x->rank, &axis));
    if (scale->rank != 1 || scale->dims[0] != x->dims[axis])
        return muc_rule_unexpected(r, 1, "a scale for each element of dimension %u", axis);
    return MUC_OK;
}

static bool is_quantized_type(muc_dtype dtype)
{
    return dtype == MUC_I8 || dtype == MUC_U8 || dtype == MUC_I16 || dtype == MUC_U16;
}

muc_status muc_shape_quantize_linear(const muc_rule *r)
{
    const muc_tensor *zero = muc_rule_input(r, 2);
    muc_dtype to =
        (muc_dtype)muc_node_integer_or(r->node, MUC_KEY_TO, zero ? (int64_t)zero->dtype : MUC_U8);

    if (!muc_rule_is_float(r, 0) && muc_rule_input(r, 0)->dtype != MUC_I32)
        return muc_rule_unexpected(r, 0, "real numbers or i32");
    if (!muc_rule_is_float(r, 1))
        return muc_rule_unexpected(r, 1, "real numbers");
    MUC_TRY(check_scale(r));
    if (!is_quantized_type(to) || (zero && zero->dtype != to))
        return muc_rule_fail(r, "to and zero point are %s and %s, expected one of i8, u8, i16, u16",
                             muc_dtype_get(to)->name, muc_dtype_get(zero ? zero->dtype : to)->name);
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    r->outputs[0].dtype = to;
    return MUC_OK;
}

muc_status muc_shape_dequantize_linear(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0);

    if (!is_quantized_type(x->dtype) && x->dtype != MUC_I32)
        return muc_rule_unexpected(r, 0, "i8, u8, i16, u16 or i32");
    if (!muc_rule_is_float(r, 1))
        return muc_rule_unexpected(r, 1, "real numbers");
    if (muc_rule_input(r, 2))
        MUC_TRY(muc_rule_expect_type(r, 2));
    MUC_TRY(check_scale(r));
    muc_rule_like(r, 0, x);
    r->outputs[0].dtype = muc_rule_input(r, 1)->dtype;
    return MUC_OK;
}

muc_status muc_shape_dynamic_quantize(const muc_rule *r)
{
    if (muc_rule_input(r, 0)->dtype != MUC_F32)
        return muc_rule_unexpected(r, 0, "f32");
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    r->outputs[0].dtype = MUC_U8;
    r->outputs[1].dtype = MUC_F32;
    r->outputs[1].rank = 0;
    r->outputs[2].dtype = MUC_U8;
    r->outputs[2].rank = 0;
    return MUC_OK;
}
