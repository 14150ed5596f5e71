/* loop_quantized.c - nodes that carry quantization and have no kernel of the runtime: loops in
 * TensorFlow Lite's arithmetic, for int8, uint8 and int16.
 */
#include <inttypes.h>
#include <stdio.h>

#include "graph/scales.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"

static uint32_t width_of(const muc_tensor *tensor)
{
    return muc_dtype_get(tensor->dtype)->block_bytes;
}

static void print_multiplier(muc_text *text, muc_multiplier m)
{
    muc_text_add(text, "%" PRId32 ", %" PRId32, m.mantissa, m.shift);
}

/* "mur_scale_q31(X, mantissa, shift)" */
static void print_scaled(muc_text *text, const char *x, muc_multiplier m)
{
    muc_text_add(text, "mur_scale_q31(%s, ", x);
    print_multiplier(text, m);
    muc_text_add(text, ")");
}

/* the same of an integer of 17 bits at most, which times 1 is itself */
static void print_changed(muc_text *text, const char *x, muc_multiplier m)
{
    if (m.mantissa == 1 << 30 && m.shift == 1)
        muc_text_add(text, "%s", x);
    else
        print_scaled(text, x, m);
}

/* p and q, the inputs' integers without their zero points, and "x = ", the output's without its */
static muc_status begin_integers(muc_mcu_lowering *l, const muc_node *node, uint32_t inputs,
                                 muc_mcu_nest *nest, muc_text *line)
{
    static const char names[] = "pq";

    MUC_TRY(muc_mcu_begin_elements(l, node, inputs, inputs, true, nest));
    for (uint32_t i = 0; i < inputs; i++)
        muc_text_add(line, "const int32_t %c = @%s - (%" PRId32 ");\n", names[i],
                     muc_mcu_input_name(i), muc_zero_of(muc_mcu_input(l, node, i)));
    muc_text_add(line, "const int32_t x = ");
    return MUC_OK;
}

/* after the value of x */
static muc_status end_integers(muc_mcu_nest *nest, muc_text *line, const muc_node *node,
                               int32_t least, int32_t most)
{
    muc_mcu_lowering *l = nest->l;
    const muc_tensor *y = muc_mcu_output(l, node, 0);

    muc_text_add(line, ";\n\n@y = (%s)(mur_clamp(x, %" PRId32 ", %" PRId32 ") + (%" PRId32 "));",
                 muc_mcu_c_type(y->dtype), least - muc_zero_of(y), most - muc_zero_of(y),
                 muc_zero_of(y));
    MUC_TRY(muc_mcu_end_elements(nest, line));
    for (uint32_t i = 0; i + 1 < nest->operand_count; i++) {
        const muc_tensor *x = muc_mcu_input(l, node, i);

        if (x->kind != MUC_TENSOR_CONST && width_of(x) == width_of(y) &&
            muc_mcu_most_elements(l, x) == muc_mcu_most_elements(l, y))
            muc_mcu_may_overlap(l, i, 0);
    }
    return MUC_OK;
}

/* ---- two inputs ---- */

bool muc_mcu_takes_pair_quantized(const muc_mcu_lowering *l, const muc_node *node)
{
    if (node->op == MUC_OP_DIV && (muc_mcu_input(l, node, 0)->dtype == MUC_I16 ||
                                   muc_mcu_input(l, node, 1)->dtype == MUC_I16))
        return false;
    return node->input_count == 2 && muc_mcu_is_quantized(muc_mcu_input(l, node, 0)) &&
           muc_mcu_is_quantized(muc_mcu_input(l, node, 1)) &&
           muc_mcu_is_quantized(muc_mcu_output(l, node, 0));
}

static void print_pair(const muc_mcu_lowering *l, const muc_node *node, muc_text *text)
{
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    const muc_add_scales add = muc_scale_add(a, b, y);

    if (node->op == MUC_OP_ADD || node->op == MUC_OP_SUB) {
        char side[2][48];

        snprintf(side[0], sizeof(side[0]), "mur_shift_left(p, %d)", add.left_shift);
        snprintf(side[1], sizeof(side[1]), "mur_shift_left(q, %d)", add.left_shift);
        muc_text_add(text, "mur_scale_q31(");
        print_scaled(text, side[0], add.a);
        muc_text_add(text, node->op == MUC_OP_ADD ? " + " : " - ");
        print_scaled(text, side[1], add.b);
        muc_text_add(text, ", ");
        print_multiplier(text, add.out);
        muc_text_add(text, ")");
    } else if (node->op == MUC_OP_MUL) {
        print_scaled(text, "p * q", muc_scale_mul(a, b, y));
    } else if (node->op == MUC_OP_DIV) {
        char quotient[64];

        snprintf(quotient, sizeof(quotient), "p * (1 << %d) / (q == 0 ? 1 : q)", MUC_DIV_SHIFT);
        print_scaled(text, quotient, muc_scale_div(a, b, y));
    } else if (node->op == MUC_OP_PRELU) {
        muc_text_add(text, "p >= 0 ? ");
        print_scaled(text, "p", muc_scale_ratio(a, y));
        muc_text_add(text, " : ");
        print_scaled(text, "p * q", muc_scale_mul(a, b, y));
    } else {
        const muc_multiplier p = muc_scale_ratio(a, y);
        const muc_multiplier q = muc_scale_ratio(b, y);

        print_changed(text, "p", p);
        muc_text_add(text, node->op == MUC_OP_MAX ? " > " : " < ");
        print_changed(text, "q", q);
        muc_text_add(text, " ? ");
        print_changed(text, "p", p);
        muc_text_add(text, " : ");
        print_changed(text, "q", q);
    }
}

muc_status muc_mcu_write_pair_quantized(muc_mcu_lowering *l, const muc_node *node)
{
    muc_text line = { 0 };
    int32_t least, most;
    muc_mcu_nest nest;

    muc_scale_clamp(node, muc_mcu_output(l, node, 0), &least, &most);
    MUC_TRY(begin_integers(l, node, 2, &nest, &line));
    print_pair(l, node, &line);
    return end_integers(&nest, &line, node, least, most);
}

/* ---- one input ---- */

bool muc_mcu_takes_change_quantized(const muc_mcu_lowering *l, const muc_node *node)
{
    for (uint32_t i = 1; i < node->input_count; i++) {
        const muc_tensor *bound = muc_mcu_input(l, node, i);

        if (bound &&
            (!muc_mcu_is_quantized(bound) || bound->kind != MUC_TENSOR_CONST || !bound->data))
            return false;
    }
    return muc_mcu_is_quantized(muc_mcu_input(l, node, 0)) &&
           muc_mcu_is_quantized(muc_mcu_output(l, node, 0));
}

/* the same bytes with a sign or without: 128 less, or more */
static bool is_shift(const muc_node *node, const muc_tensor *x, const muc_tensor *y)
{
    return node->op == MUC_OP_QUANTIZE && width_of(x) == 1 && width_of(y) == 1 &&
           x->dtype != y->dtype && muc_scale_of(x) == muc_scale_of(y) &&
           muc_zero_of(x) - muc_zero_of(y) == (x->dtype == MUC_U8 ? 128 : -128);
}

static muc_status write_shift(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    muc_text line = { 0 };
    muc_mcu_nest nest;

    MUC_TRY(muc_mcu_begin_elements(l, node, 1, 1, false, &nest));
    muc_text_add(&line, "@y = (%s)(@a %c 128);", muc_mcu_c_type(y->dtype),
                 x->dtype == MUC_U8 ? '-' : '+');
    MUC_TRY(muc_mcu_end_elements(&nest, &line));
    muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}

muc_status muc_mcu_write_change_quantized(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    bool leaks = node->op == MUC_OP_LEAKY_RELU;
    muc_text line = { 0 };
    int32_t least, most;
    muc_mcu_nest nest;

    if (is_shift(node, x, y))
        return write_shift(l, node);
    muc_scale_clamp(node, y, &least, &most);
    muc_scale_bounds(node->op, y, muc_mcu_input(l, node, 1), muc_mcu_input(l, node, 2), &least,
                     &most);
    muc_scale_uncross(&least, most);
    MUC_TRY(begin_integers(l, node, 1, &nest, &line));
    if (leaks)
        muc_text_add(&line, "p >= 0 ? ");
    print_scaled(&line, "p", leaks ? muc_scale_ratio(x, y) : muc_scale_change(node->op, x, y));
    if (leaks) {
        muc_text_add(&line, " : ");
        print_scaled(&line, "p", muc_scale_leak(x, muc_node_real(node, MUC_KEY_ALPHA), y));
    }
    return end_integers(&nest, &line, node, least, most);
}

bool muc_mcu_takes_quantize_loops(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_input(l, node, 0)->dtype == MUC_F32 &&
           muc_mcu_is_quantized(muc_mcu_output(l, node, 0));
}

muc_status muc_mcu_write_quantize_loops(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    muc_text line = { 0 };
    int32_t least, most;
    muc_mcu_nest nest;

    muc_scale_clamp(node, y, &least, &most);
    MUC_TRY(muc_mcu_begin_elements(l, node, 1, 1, false, &nest));
    muc_text_add(&line, "@y = (%s)mur_stored_real(@a, ", muc_mcu_c_type(y->dtype));
    muc_mcu_print_real(&line, (double)muc_scale_of(y), false);
    muc_text_add(&line, ", %" PRId32 ", %" PRId32 ", %" PRId32 ");", muc_zero_of(y), least, most);
    return muc_mcu_end_elements(&nest, &line);
}

/* ---- tables of uint8 ---- */

bool muc_mcu_takes_table_quantized(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_is_quantized(muc_mcu_input(l, node, 0)) &&
           muc_mcu_is_quantized(muc_mcu_output(l, node, 0)) &&
           muc_mcu_input(l, node, 0)->dtype == MUC_U8 &&
           muc_mcu_output(l, node, 0)->dtype == MUC_U8;
}

muc_status muc_mcu_write_table_quantized(muc_mcu_lowering *l, const muc_node *node)
{
    muc_text line = { 0 };
    int8_t table[256];
    muc_mcu_nest nest;

    MUC_TRY(muc_scale_table(l->ctx, l->graph, node, table));
    MUC_TRY(muc_mcu_begin_elements(l, node, 1, 1, false, &nest));
    muc_text_add(&l->text, "    static const uint8_t table[256] = {");
    for (unsigned i = 0; i < 256; i++)
        muc_text_add(&l->text, "%s%u,", i % 16 ? " " : "\n        ", (uint8_t)table[i]);
    muc_text_add(&l->text, "\n    };\n\n");
    muc_text_add(&line, "@y = table[@a];");
    MUC_TRY(muc_mcu_end_elements(&nest, &line));
    muc_mcu_share_pointwise(l, node);
    return MUC_OK;
}

/* ---- tables of int16 ---- */

bool muc_mcu_takes_sigmoid_s16(const muc_mcu_lowering *l, const muc_node *node)
{
    muc_table_scale scale;

    return muc_scale_of_i16(l->graph, node, &scale);
}

muc_status muc_mcu_write_sigmoid_s16(muc_mcu_lowering *l, const muc_node *node)
{
    muc_table_scale scale;
    muc_text line = { 0 };
    muc_mcu_nest nest;

    (void)muc_scale_of_i16(l->graph, node, &scale);
    MUC_TRY(muc_mcu_begin_elements(l, node, 1, 1, false, &nest));
    muc_mcu_print_sigmoid_table(l);
    muc_text_add(&line,
                 "@y = (int16_t)mur_%s_q15(sigmoid, mur_asr(@a * %" PRId32 " + %" PRId32
                 ", %" PRId32 "));",
                 node->op == MUC_OP_TANH ? "tanh" : "sigmoid", scale.mul, scale.round, scale.shift);
    MUC_TRY(muc_mcu_end_elements(&nest, &line));
    muc_mcu_share_pointwise(l, node);
    return MUC_OK;
}

bool muc_mcu_takes_dequantize_loops(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_is_quantized(muc_mcu_input(l, node, 0)) &&
           muc_mcu_output(l, node, 0)->dtype == MUC_F32;
}

muc_status muc_mcu_write_dequantize_loops(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    muc_text line = { 0 };
    muc_mcu_nest nest;

    MUC_TRY(muc_mcu_begin_elements(l, node, 1, 1, true, &nest));
    muc_text_add(&line, "@y = ");
    muc_mcu_print_real(&line, (double)muc_scale_of(x), false);
    muc_text_add(&line, " * (float)(@a - (%" PRId32 "));", muc_zero_of(x));
    return muc_mcu_end_elements(&nest, &line);
}
