/* loop_quantize_linear.c - ONNX's linear quantization: plain integers whose scales and zero points
 * are tensors.
 */
#include <inttypes.h>

#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"

/* ", low, high" of a type of at most 16 bits */
static void print_bounds(muc_mcu_lowering *l, muc_dtype dtype)
{
    int64_t low = 0, high = 0;

    muc_dtype_range(dtype, &low, &high);
    muc_text_add(&l->text, ", %" PRId64 ", %" PRId64, low, high);
}

/* element `at` of a scale or zero point, or its only one; "0" where it is absent */
static void print_pick(muc_mcu_lowering *l, const muc_node *node, uint32_t input, const char *at)
{
    const muc_tensor *tensor = muc_mcu_input(l, node, input);
    uint64_t count = tensor ? muc_mcu_most_elements(l, tensor) : 0;

    if (!tensor)
        muc_text_add(&l->text, "0");
    else if (count > 1)
        muc_text_add(&l->text, "%s[%s %% %" PRIu64 "u]", muc_mcu_input_name(input), at, count);
    else
        muc_text_add(&l->text, "%s[0]", muc_mcu_input_name(input));
}

/* ---- to integers and back ---- */

static bool takes_change(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_inputs_are_static(l, node) && muc_mcu_input(l, node, 1)->dtype == MUC_F32;
}

/* a loop over elements i, whose scale is number k along axis */
static void open_elements(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    uint64_t inner = 1;

    if (muc_mcu_most_elements(l, muc_mcu_input(l, node, 1)) > 1)
        inner = muc_mcu_elements(l, x, (uint32_t)muc_node_integer(node, MUC_KEY_AXIS) + 1, x->rank);
    muc_text_add(&l->text, "    for (uint32_t i = 0; i < %" PRIu64 "u; i++) {\n",
                 muc_mcu_most_elements(l, x));
    if (muc_mcu_most_elements(l, muc_mcu_input(l, node, 1)) > 1)
        muc_text_add(&l->text, "        const uint32_t k = i / %" PRIu64 "u;\n\n", inner);
}

bool muc_mcu_takes_quantize_linear(const muc_mcu_lowering *l, const muc_node *node)
{
    muc_dtype to = muc_mcu_output(l, node, 0)->dtype, from = muc_mcu_input(l, node, 0)->dtype;

    return takes_change(l, node) && (from == MUC_F32 || from == MUC_I32) &&
           muc_dtype_get(to)->kind == MUC_DTYPE_INTEGER && muc_dtype_get(to)->block_bytes <= 2;
}

muc_status muc_mcu_write_quantize_linear(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);

    MUC_TRY(muc_mcu_begin_function(l, node));
    open_elements(l, node);
    muc_text_add(&l->text, "        y[i] = (%s)mur_quantize_real((float)a[i] / ",
                 muc_mcu_c_type(y->dtype));
    print_pick(l, node, 1, "k");
    muc_text_add(&l->text, ", ");
    print_pick(l, node, 2, "k");
    print_bounds(l, y->dtype);
    muc_text_add(&l->text, ");\n    }\n");
    return muc_mcu_end_function(l, 0, 0);
}

bool muc_mcu_takes_dequantize_linear(const muc_mcu_lowering *l, const muc_node *node)
{
    return takes_change(l, node) && muc_mcu_output(l, node, 0)->dtype == MUC_F32;
}

muc_status muc_mcu_write_dequantize_linear(muc_mcu_lowering *l, const muc_node *node)
{
    bool is_wide = muc_mcu_input(l, node, 0)->dtype == MUC_I32;
    const char *type = is_wide ? "double" : "float"; /* what holds the difference exactly */

    MUC_TRY(muc_mcu_begin_function(l, node));
    open_elements(l, node);
    muc_text_add(&l->text, "        y[i] = (float)((%s)((int64_t)a[i] - ", type);
    print_pick(l, node, 2, "k");
    muc_text_add(&l->text, ") * (%s)", type);
    print_pick(l, node, 1, "k");
    muc_text_add(&l->text, ");\n    }\n");
    return muc_mcu_end_function(l, 0, 0);
}

bool muc_mcu_takes_dynamic_quantize(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_inputs_are_static(l, node) && muc_mcu_input(l, node, 0)->dtype == MUC_F32;
}

muc_status muc_mcu_write_dynamic_quantize(muc_mcu_lowering *l, const muc_node *node)
{
    uint64_t count = muc_mcu_most_elements(l, muc_mcu_input(l, node, 0));

    MUC_TRY(muc_mcu_begin_function(l, node));
    muc_text_add(
        &l->text,
        "    float least = 0.0f, most = 0.0f, scale;\n"
        "    int32_t zero;\n\n"
        "    for (uint32_t i = 0; i < %" PRIu64 "u; i++) {\n"
        "        least = a[i] < least ? a[i] : least;\n"
        "        most = a[i] > most ? a[i] : most;\n"
        "    }\n"
        "    scale = (most - least) / 255.0f;\n"
        "    zero = scale > 0.0f ? mur_quantize_real((0.0f - least) / scale, 0, 0, 255) : 0;\n"
        "    y1[0] = scale;\n"
        "    y2[0] = (uint8_t)zero;\n"
        "    for (uint32_t i = 0; i < %" PRIu64 "u; i++)\n"
        "        y[i] = (uint8_t)(scale > 0.0f ? mur_quantize_real(a[i] / scale, zero, 0, 255)"
        " : zero);\n",
        count, count);
    return muc_mcu_end_function(l, 0, 0);
}
