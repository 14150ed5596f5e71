/* loop_quantlib.c - QuantLib's integer operators as loops that call mur_quantlib.h. */
#include <inttypes.h>
#include <string.h>

#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"

/* the smallest i32 has no literal of its type */
static void add_literal(muc_text *text, int64_t value)
{
    if (value == INT32_MIN)
        muc_text_add(text, ", INT32_MIN");
    else
        muc_text_add(text, ", %" PRId64, value);
}

void muc_mcu_print_requant(muc_text *text, const muc_node *node)
{
    muc_text_add(text, ", %" PRId64, muc_node_integer(node, MUC_KEY_SHIFT));
    add_literal(text, muc_node_integer(node, MUC_KEY_CLAMP_MIN));
    add_literal(text, muc_node_integer(node, MUC_KEY_CLAMP_MAX));
}

muc_status muc_mcu_write_integer_elements(muc_mcu_lowering *l, const muc_node *node)
{
    const int64_t eta = muc_node_integer_or(node, MUC_KEY_ETA, 0);
    bool divides = muc_node_attribute(node, MUC_KEY_ETA) != NULL;
    bool shifts = muc_node_attribute(node, MUC_KEY_SHIFT) != NULL;
    muc_text line = { 0 };
    muc_mcu_nest nest;

    MUC_TRY(muc_mcu_begin_elements(l, node,
                                   divides  ? 2
                                   : shifts ? 3
                                            : 1,
                                   node->input_count, true, &nest));
    muc_text_add(&line, "@y = (%s)mur_quantlib_",
                 muc_mcu_c_type(muc_mcu_output(l, node, 0)->dtype));
    if (divides) {
        muc_text_add(&line, "div(@a, @b, %" PRId64 "u, %" PRId64 ", %" PRId64,
                     muc_node_integer(node, MUC_KEY_DELTA) * eta, eta,
                     muc_node_integer(node, MUC_KEY_EPS));
    } else if (shifts) {
        muc_text_add(&line, "requant(@a, @b, @c");
        muc_mcu_print_requant(&line, node);
    } else {
        muc_text_add(&line, "%s(@a, b", muc_op_get(node->op)->name + strlen("integer_"));
    }
    muc_text_add(&line, ");");
    MUC_TRY(muc_mcu_end_elements(&nest, &line));
    muc_mcu_share_pointwise(l, node);
    return MUC_OK;
}
