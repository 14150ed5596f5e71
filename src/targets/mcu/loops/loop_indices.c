/* loop_indices.c - operators that make or use positions of elements, as loops. */
#include <inttypes.h>

#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"

static bool is_number(const muc_tensor *tensor)
{
    return tensor->dtype == MUC_F32 || muc_dtype_get(tensor->dtype)->kind == MUC_DTYPE_INTEGER;
}

/* outer, extent and inner elements of a fixed shape around an axis */
typedef struct around {
    uint64_t outer, extent, inner;
} around;

static around around_of(const muc_mcu_lowering *l, const muc_tensor *x, uint32_t axis)
{
    return (around){ muc_mcu_elements(l, x, 0, axis), muc_mcu_dim(l, x, axis),
                     muc_mcu_elements(l, x, axis + 1, x->rank) };
}

/* ---- made of numbers ---- */

bool muc_mcu_takes_one_hot(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_is_static(l, muc_mcu_output(l, node, 0));
}

muc_status muc_mcu_write_one_hot(muc_mcu_lowering *l, const muc_node *node)
{
    around r =
        around_of(l, muc_mcu_output(l, node, 0), (uint32_t)muc_node_integer(node, MUC_KEY_AXIS));

    MUC_TRY(muc_mcu_begin_function(l, node));
    muc_text_add(&l->text,
                 "    for (uint32_t o = 0; o < %" PRIu64 "u; o++)\n"
                 "        for (uint32_t k = 0; k < %" PRIu64 "u; k++)\n"
                 "            for (uint32_t i = 0; i < %" PRIu64 "u; i++) {\n"
                 "                int64_t index = (int64_t)a[o * %" PRIu64 "u + i];\n\n"
                 "                index += index < 0 ? %" PRIu64 " : 0;\n"
                 "                y[(o * %" PRIu64 "u + k) * %" PRIu64
                 "u + i] = b[index == (int64_t)k];\n"
                 "            }\n",
                 r.outer, r.extent, r.inner, r.inner, r.extent, r.extent, r.inner);
    return muc_mcu_end_function(l, 0, 0);
}

bool muc_mcu_takes_range(const muc_mcu_lowering *l, const muc_node *node)
{
    return is_number(muc_mcu_output(l, node, 0));
}

muc_status muc_mcu_write_range(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    const char *type = muc_mcu_c_type(y->dtype);

    MUC_TRY(muc_mcu_begin_function(l, node));
    muc_text_add(&l->text, "    for (uint32_t i = 0; i < ");
    muc_mcu_print_expr(l->graph->pool, y->dims[0], &l->text);
    muc_text_add(&l->text, "; i++)\n        y[i] = (%s)(a[0] + (%s)i * b[0]);\n", type, type);
    return muc_mcu_end_function(l, 0, 0);
}

bool muc_mcu_takes_expressions(const muc_mcu_lowering *l, const muc_node *node)
{
    return is_number(muc_mcu_output(l, node, 0));
}

muc_status muc_mcu_write_expressions(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_attribute *values = muc_node_attribute(node, MUC_KEY_VALUES);

    MUC_TRY(muc_mcu_begin_function(l, node));
    for (uint32_t i = 0; i < values->value.exprs.count; i++) {
        muc_text_add(&l->text, "    y[%" PRIu32 "] = (%s)", i,
                     muc_mcu_c_type(muc_mcu_output(l, node, 0)->dtype));
        muc_mcu_print_expr(l->graph->pool, values->value.exprs.items[i], &l->text);
        muc_text_add(&l->text, ";\n");
    }
    return muc_mcu_end_function(l, 0, 0);
}
