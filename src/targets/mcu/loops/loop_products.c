/* loop_products.c - matrix products of any type, as loops. */
#include <inttypes.h>
#include <stdio.h>

#include "graph/scales.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"

static bool is_plain_product(const muc_mcu_lowering *l, const muc_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        const muc_tensor *x = muc_mcu_input(l, node, i);

        if (x && (!muc_mcu_is_plain(x) ||
                  (x->dtype == MUC_F32) != (muc_mcu_input(l, node, 0)->dtype == MUC_F32)))
            return false;
    }
    return muc_mcu_is_plain(muc_mcu_output(l, node, 0));
}

/* the result is complete only after the last turn */
static void keep_partial_sum(const muc_mcu_nest *nest, unsigned depth)
{
    muc_text *text = &nest->l->text;

    muc_mcu_indent(text, depth);
    muc_text_add(text, "if (!piece->is_last) {\n");
    muc_mcu_indent(text, depth + 1);
    muc_mcu_nest_print(nest, &nest->operands[2], text);
    muc_text_add(text, " = sum;\n");
    muc_mcu_indent(text, depth + 1);
    muc_text_add(text, "continue;\n");
    muc_mcu_indent(text, depth);
    muc_text_add(text, "}\n");
}

/* ---- of integers: zero points, scales and factors are operands behind a, b and y ---- */

enum { A_SCALE = 1, B_SCALE = 4, Y_SCALE = 6, Y_ZERO }; /* inputs of qlinear_matmul */

/* QuantLib's */
static bool is_requantized(const muc_node *node)
{
    return muc_node_attribute(node, MUC_KEY_SHIFT) != NULL;
}

/* ONNX's, with scales */
static bool has_scales(const muc_node *node)
{
    return muc_op_product(node->op)->weights > 1;
}

/* an input that is one, or NULL */
static const muc_mcu_operand *operand_of(const muc_mcu_nest *nest, uint32_t input)
{
    for (uint32_t i = 3; input && i < nest->operand_count; i++)
        if (nest->operands[i].name == muc_mcu_input_name(input))
            return &nest->operands[i];
    return NULL;
}

/* One element, or one for each turn of a loop. */
static void add_numbers(muc_mcu_nest *nest, const muc_node *node, uint32_t input, uint32_t loop)
{
    const muc_tensor *t = input ? muc_mcu_input(nest->l, node, input) : NULL;

    if (t)
        muc_mcu_nest_add(nest, muc_mcu_input_name(input))->strides[loop].factor =
            muc_mcu_most_elements(nest->l, t) > 1;
}

/* those of a vary along the loop of rows, others along that of columns */
static void add_integers(muc_mcu_nest *nest, const muc_node *node, uint32_t row, uint32_t column)
{
    const muc_product *in = muc_op_product(node->op);

    for (uint32_t i = 2; is_requantized(node) && i < 4; i++)
        add_numbers(nest, node, i, column);
    add_numbers(nest, node, in->zero, row);
    add_numbers(nest, node, in->weights_zero, column);
    if (has_scales(node)) {
        add_numbers(nest, node, A_SCALE, row);
        add_numbers(nest, node, B_SCALE, column);
    }
}

/* operand a or b less its zero point, which a quantization has, or another operand */
static void print_less_zero(const muc_mcu_nest *nest, const muc_node *node, uint32_t side)
{
    const muc_product *in = muc_op_product(node->op);
    const muc_quantization *q = muc_mcu_input(nest->l, node, side ? in->weights : 0)->quantization;
    const muc_mcu_operand *zero = operand_of(nest, side ? in->weights_zero : in->zero);
    muc_text *text = &nest->l->text;

    muc_text_add(text, q || zero ? "(" : "");
    muc_mcu_nest_print(nest, &nest->operands[side], text);
    if (q) {
        muc_text_add(text, " - (%" PRId32 ")", q->zero_points[0]);
    } else if (zero) {
        muc_text_add(text, " - ");
        muc_mcu_nest_print(nest, zero, text);
    }
    muc_text_add(text, q || zero ? ")" : "");
}

/* " = (type)rescaled sum;", as TensorFlow Lite does */
static void print_rescaled(const muc_mcu_nest *nest, const muc_node *node, bool is_wide)
{
    const muc_mcu_lowering *l = nest->l;
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    const muc_multiplier m =
        muc_scale_product(node, muc_mcu_input(l, node, 0), muc_mcu_input(l, node, 1), y, 0);
    int32_t least, most, zero = muc_zero_of(y);

    muc_scale_clamp(node, y, &least, &most);
    muc_text_add(&nest->l->text,
                 " = (%s)(mur_clamp(mur_scale_%sq31(sum, %" PRId32 ", %" PRId32 "), %" PRId32
                 ", %" PRId32 ") + (%" PRId32 "));\n",
                 muc_mcu_c_type(y->dtype), is_wide ? "wide_" : "", m.mantissa, m.shift,
                 least - zero, most - zero, zero);
}

/* " = (type)requantized sum;" */
static void print_requantized(const muc_mcu_nest *nest, const muc_node *node)
{
    muc_text *text = &nest->l->text;

    muc_text_add(text, " = (%s)mur_quantlib_requant(sum",
                 muc_mcu_c_type(muc_mcu_output(nest->l, node, 0)->dtype));
    for (uint32_t i = 2; i < 4; i++) {
        muc_text_add(text, ", ");
        muc_mcu_nest_print(nest, operand_of(nest, i), text);
    }
    muc_mcu_print_requant(&nest->l->text, node);
    muc_text_add(text, ");\n");
}

/* " = (type)scaled sum;" */
static void print_scaled(const muc_mcu_nest *nest, const muc_node *node)
{
    muc_dtype to = muc_mcu_output(nest->l, node, 0)->dtype;
    muc_text *text = &nest->l->text;
    int64_t low = 0, high = 0;

    muc_dtype_range(to, &low, &high);
    muc_text_add(text, " = (%s)mur_quantize_sum(sum, (double)", muc_mcu_c_type(to));
    muc_mcu_nest_print(nest, operand_of(nest, A_SCALE), text);
    muc_text_add(text, " * (double)");
    muc_mcu_nest_print(nest, operand_of(nest, B_SCALE), text);
    muc_text_add(text, " / (double)%s[0], %s[0], %" PRId64 ", %" PRId64 ");\n",
                 muc_mcu_input_name(Y_SCALE), muc_mcu_input_name(Y_ZERO), low, high);
}

/* the sum of a * b along the nest's last loop; start and end are expressions of C or NULL */
static muc_status write_product(muc_mcu_nest *nest, const muc_node *node, const char *start,
                                const char *factor)
{
    muc_mcu_lowering *l = nest->l;
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    uint32_t outer = nest->loops - 1;
    muc_text *text = &l->text;
    bool is_real = y->dtype == MUC_F32, is_rescaled = y->quantization != NULL;
    bool is_wide = is_rescaled && muc_mcu_input(l, node, 0)->dtype == MUC_I16;
    bool is_rounded = is_rescaled || is_requantized(node) || has_scales(node);
    const char *type = is_wide ? "int64_t" : is_rounded ? "int32_t" : muc_mcu_c_type(y->dtype);
    uint64_t macs =
        muc_mcu_most_elements(l, y) * muc_expr_get(l->graph->pool, nest->extents[outer])->hi;

    MUC_TRY(
        muc_mcu_nest_tile(nest, node, outer, is_rounded ? MUC_MCU_CUT_CHANNELS : MUC_MCU_CUT_SUMS));
    muc_mcu_nest_open(nest, 0, outer, 1);
    muc_mcu_indent(text, 1 + outer);
    muc_text_add(text, "%s sum = ", type);
    if (nest->depth_loop) { /* partial sums lie in the result */
        muc_text_add(text, "piece->is_first ? 0 : ");
        muc_mcu_nest_print(nest, &nest->operands[2], text);
        muc_text_add(text, ";\n\n");
    } else {
        muc_text_add(text, is_real ? "0.0f;\n\n" : "0;\n\n");
    }
    muc_mcu_nest_open(nest, outer, outer + 1, 1 + outer);
    muc_mcu_indent(text, 2 + outer);
    if (is_real)
        muc_text_add(text, "sum += ");
    else
        muc_text_add(text, "sum = (%s)(sum + ", type);
    muc_text_add(text, is_wide ? "(int64_t)" : "");
    print_less_zero(nest, node, 0);
    muc_text_add(text, " * ");
    print_less_zero(nest, node, 1);
    muc_text_add(text, is_real ? ";\n" : ");\n");
    muc_mcu_nest_close(nest, outer, outer + 1, 1 + outer);
    if (nest->depth_loop)
        keep_partial_sum(nest, 1 + outer);
    muc_mcu_indent(text, 1 + outer);
    muc_mcu_nest_print(nest, &nest->operands[2], text);
    if (is_rounded) {
        if (is_rescaled)
            print_rescaled(nest, node, is_wide);
        else if (is_requantized(node))
            print_requantized(nest, node);
        else
            print_scaled(nest, node);
        muc_mcu_nest_close(nest, 0, outer, 1);
        return muc_mcu_end_function(l, 0, macs);
    }
    muc_text_add(text, is_real ? " = %ssum" : " = (%s)(%ssum",
                 is_real ? factor : muc_mcu_c_type(y->dtype), factor);
    if (start) {
        muc_text_add(text, " + %s", start);
        muc_mcu_nest_print(nest, &nest->operands[3], text);
    }
    muc_text_add(text, is_real ? ";\n" : ");\n");
    muc_mcu_nest_close(nest, 0, outer, 1);
    return muc_mcu_end_function(l, 0, macs);
}

/* y [.., M, N] = a [.., M, K] b [.., K, N], either side broadcast over the batches */
muc_status muc_mcu_write_matmul_loops(muc_mcu_lowering *l, const muc_node *node)
{
    const uint32_t weights = muc_op_product(node->op)->weights;
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, weights);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    uint32_t a_rows = a->rank > 1, b_columns = b->rank > 1;
    uint32_t batch = y->rank - a_rows - b_columns, loops = 0;
    muc_mcu_nest nest = muc_mcu_nest_of(l, y);
    muc_mcu_operand *of_a = muc_mcu_nest_add(&nest, "a");
    muc_mcu_operand *of_b = muc_mcu_nest_add(&nest, muc_mcu_input_name(weights));
    muc_mcu_operand *of_y = muc_mcu_nest_add(&nest, "y");

    add_integers(&nest, node, batch, y->rank - 1);
    MUC_TRY(muc_mcu_begin_function(l, node));
    for (; loops < batch; loops++) {
        uint32_t ia = loops + a->rank - 2 - batch, ib = loops + b->rank - 2 - batch;

        if (loops + a->rank >= 2 + batch && a->rank > 1 && muc_mcu_dim(l, a, ia) != 1)
            of_a->strides[loops] = muc_mcu_dense(l, a, ia);
        if (loops + b->rank >= 2 + batch && b->rank > 1 && muc_mcu_dim(l, b, ib) != 1)
            of_b->strides[loops] = muc_mcu_dense(l, b, ib);
    }
    for (uint32_t i = 0; i < y->rank; i++)
        of_y->strides[i] = muc_mcu_dense(l, y, i);
    if (a_rows)
        of_a->strides[loops++] = muc_mcu_dense(l, a, a->rank - 2);
    if (b_columns)
        of_b->strides[loops++] = muc_mcu_dense(l, b, b->rank - 1);
    nest.extents[loops] = a->dims[a->rank - 1];
    of_a->strides[loops] = muc_mcu_dense(l, a, a->rank - 1);
    of_b->strides[loops] = muc_mcu_dense(l, b, b_columns ? b->rank - 2 : 0);
    nest.loops = loops + 1;
    return write_product(&nest, node, NULL, "");
}

/* with zero points bytes */
bool muc_mcu_takes_matmul_loops(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_product *in = muc_op_product(node->op);
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, in->weights);

    if (a->quantization)
        return muc_mcu_is_quantized(a) && muc_mcu_is_quantized(b) &&
               muc_mcu_is_quantized(muc_mcu_output(l, node, 0)) && a->rank >= 2 && b->rank >= 2;
    if (in->zero && node->input_count > 2 && !is_requantized(node))
        return muc_mcu_is_byte(a) && muc_mcu_is_byte(b);
    return is_plain_product(l, node);
}

bool muc_mcu_takes_linear_loops(const muc_mcu_lowering *l, const muc_node *node)
{
    return is_plain_product(l, node);
}

/* y [.., N] = x [.., K] w [N, K] + bias [N] */
muc_status muc_mcu_write_linear_loops(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *w = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    uint32_t column = y->rank - 1;
    muc_mcu_nest nest = muc_mcu_nest_of(l, y);
    muc_mcu_operand *a = muc_mcu_nest_add(&nest, "a"), *b = muc_mcu_nest_add(&nest, "b");
    muc_mcu_operand *of_y = muc_mcu_nest_add(&nest, "y");
    muc_mcu_operand *bias = is_requantized(node) ? NULL : muc_mcu_nest_add(&nest, "c");

    add_integers(&nest, node, 0, column);
    MUC_TRY(muc_mcu_begin_function(l, node));
    for (uint32_t i = 0; i < y->rank; i++)
        of_y->strides[i] = muc_mcu_dense(l, y, i);
    for (uint32_t i = 0; i < column; i++)
        a->strides[i] = muc_mcu_dense(l, x, i);
    b->strides[column] = muc_mcu_dense(l, w, 0);
    if (bias)
        bias->strides[column].factor = 1;
    nest.extents[nest.loops] = w->dims[1];
    a->strides[nest.loops].factor = 1;
    b->strides[nest.loops++].factor = 1;
    return write_product(&nest, node, bias && muc_mcu_input(l, node, 2) ? "" : NULL, "");
}

bool muc_mcu_takes_gemm_loops(const muc_mcu_lowering *l, const muc_node *node)
{
    return is_plain_product(l, node);
}

static void print_factor(char *text, size_t size, double factor, bool is_real)
{
    muc_text number = { 0 };

    *text = '\0';
    if (factor == 1)
        return;
    if (is_real)
        muc_mcu_print_real(&number, factor, false);
    else
        muc_text_add(&number, "%" PRId64, (int64_t)factor);
    snprintf(text, size, "%s * ", number.data ? number.data : "");
    muc_text_free(&number);
}

muc_status muc_mcu_write_gemm_loops(muc_mcu_lowering *l, const muc_node *node)
{
    bool a_turned = muc_node_integer_or(node, MUC_KEY_TRANSPOSE_A, 0) != 0;
    bool b_turned = muc_node_integer_or(node, MUC_KEY_TRANSPOSE_B, 0) != 0;
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    muc_mcu_nest nest = muc_mcu_nest_of(l, y);
    muc_mcu_operand *of_a = muc_mcu_nest_add(&nest, "a"), *of_b = muc_mcu_nest_add(&nest, "b");
    muc_mcu_operand *of_y = muc_mcu_nest_add(&nest, "y"), *of_c = muc_mcu_nest_add(&nest, "c");
    char alpha[48], beta[48];

    MUC_TRY(muc_mcu_begin_function(l, node));
    for (uint32_t i = 0; i < 2; i++)
        of_y->strides[i] = muc_mcu_dense(l, y, i);
    of_a->strides[0] = muc_mcu_dense(l, a, a_turned ? 1 : 0);
    of_a->strides[2] = muc_mcu_dense(l, a, a_turned ? 0 : 1);
    of_b->strides[1] = muc_mcu_dense(l, b, b_turned ? 0 : 1);
    of_b->strides[2] = muc_mcu_dense(l, b, b_turned ? 1 : 0);
    if (muc_mcu_input(l, node, 2))
        muc_mcu_nest_broadcast(&nest, of_c, muc_mcu_input(l, node, 2), 2);
    nest.extents[2] = a->dims[a_turned ? 0 : 1];
    nest.loops = 3;
    print_factor(alpha, sizeof(alpha), muc_node_real_or(node, MUC_KEY_ALPHA, 1),
                 y->dtype == MUC_F32);
    print_factor(beta, sizeof(beta), muc_node_real_or(node, MUC_KEY_BETA, 1), y->dtype == MUC_F32);
    return write_product(&nest, node, muc_mcu_input(l, node, 2) ? beta : NULL, alpha);
}
