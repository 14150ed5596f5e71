/* loop_quantlib.c - QuantLib's integer operators as loops that call mur_quantlib.h. */
#include <inttypes.h>
#include <string.h>

#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"

/* operators on the elements of a row */
static const struct {
    muc_op op;
    muc_mcu_row_line lines[10];
} rows[] = {
    { MUC_OP_INTEGER_RMSNORM,
      { { false, "uint64_t squares = 0;" },
        { false, "int32_t root;\n" },
        { true, "squares += (uint64_t)((int64_t)@a * @a);" },
        { false, "root = mur_quantlib_root(squares / @n + 1u);" },
        { true, "@y = mur_quantlib_norm(@a, @b, root, @s);" } } },
    { MUC_OP_INTEGER_LAYER_NORM,
      { { false, "uint64_t squares = 0;" },
        { false, "int64_t sum = 0;" },
        { false, "int32_t mean, root;\n" },
        { true, "sum += @a;" },
        { false, "mean = (int32_t)(sum / (int64_t)@n);" },
        { true, "squares += (uint64_t)((int64_t)(@a - mean) * (@a - mean));" },
        { false, "root = mur_quantlib_root(squares / @n + 1u);" },
        { true, "@y = mur_quantlib_wrap(((int64_t)(@a - mean) * @b / root@c) >> @s);" } } },
    { MUC_OP_INTEGER_SOFTMAX,
      { { false, "const mur_quantlib_curve curve = mur_quantlib_curve_of(b);" },
        { false, "int32_t most = INT32_MIN;" },
        { false, "int64_t sum = 0;\n" },
        { true, "most = @a > most ? @a : most;" },
        { true, "sum += mur_quantlib_term(most - @a, curve);" },
        { true,
          "@y = (uint8_t)(sum ? mur_quantlib_term(most - @a, curve) * (@l - 1) / sum : 0);" } } },
    { MUC_OP_ITA_MAX,
      { { false, "int32_t most = INT32_MIN;" },
        { false, "int32_t sum = 0;\n" },
        { true, "most = @a > most ? @a : most;" },
        { true, "sum += 256 >> mur_quantlib_halvings(most - @a);" },
        { false, "sum = (@l - 1) * 256 / sum;" },
        { true, "@y = (uint8_t)(sum >> mur_quantlib_halvings(most - @a));" } } },
};

bool muc_mcu_takes_integer_rows(const muc_mcu_lowering *l, const muc_node *node)
{
    (void)l;
    return node->op != MUC_OP_ITA_MAX || !muc_node_attribute(node, MUC_KEY_GROUP);
}

muc_status muc_mcu_write_integer_rows(muc_mcu_lowering *l, const muc_node *node)
{
    size_t i = 0;

    while (rows[i].op != node->op)
        i++;
    return muc_mcu_write_row_lines(l, node, rows[i].lines);
}

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
