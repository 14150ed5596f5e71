/* loop_nest.c - loops as text. */
#include "targets/mcu/loops/loop_nest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { INDENT = 4 };

/* ---- expressions ---- */

/* how C writes an operator: a letter stands for an operand */
static const char *const operators[] = {
    [MUC_EXPR_ADD] = "(a + b)",          [MUC_EXPR_SUB] = "(a > b ? a - b : 0u)",
    [MUC_EXPR_MUL] = "(a * b)",          [MUC_EXPR_CDIV] = "((a + b - 1u) / b)",
    [MUC_EXPR_DIV] = "(a / b)",          [MUC_EXPR_MOD] = "(a % b)",
    [MUC_EXPR_MIN] = "(a < b ? a : b)",  [MUC_EXPR_MAX] = "(a > b ? a : b)",
    [MUC_EXPR_AND] = "(a & b)",          [MUC_EXPR_EQ] = "(a == b ? 1u : 0u)",
    [MUC_EXPR_LT] = "(a < b ? 1u : 0u)", [MUC_EXPR_SHL] = "(a << b)",
    [MUC_EXPR_SHR] = "(a >> b)",         [MUC_EXPR_SEL] = "(a ? b : c)",
};

void muc_mcu_print_dim(const muc_expr_pool *pool, uint32_t input, muc_text *text)
{
    muc_text_add(text, MUC_MCU_DIM "%s", muc_expr_get_input(pool, input)->name);
}

void muc_mcu_print_expr(const muc_expr_pool *pool, muc_expr e, muc_text *text)
{
    const muc_expr_node *node = muc_expr_get(pool, e);
    const char *form = (size_t)node->op < MUC_COUNT(operators) ? operators[node->op] : NULL;

    if (node->op == MUC_EXPR_CONST)
        muc_text_add(text, "%" PRIu32 "u", node->immediate);
    else if (node->op == MUC_EXPR_INPUT)
        muc_mcu_print_dim(pool, node->immediate, text);
    for (const char *at = form ? form : ""; *at; at++) {
        if (*at >= 'a' && *at <= 'c')
            muc_mcu_print_expr(pool, node->operands[*at - 'a'], text);
        else
            muc_text_add(text, "%c", *at);
    }
}

/* ---- building ---- */

bool muc_mcu_is_plain(const muc_tensor *tensor)
{
    return tensor->dtype == MUC_F32 ||
           (muc_dtype_get(tensor->dtype)->kind == MUC_DTYPE_INTEGER && !tensor->quantization);
}

bool muc_mcu_is_quantized(const muc_tensor *tensor)
{
    return tensor->quantization && tensor->quantization->count == 1 &&
           (muc_mcu_is_byte(tensor) || tensor->dtype == MUC_I16);
}

bool muc_mcu_is_s8(const muc_tensor *tensor)
{
    return tensor && muc_mcu_is_quantized(tensor) && tensor->dtype == MUC_I8;
}

bool muc_mcu_is_byte(const muc_tensor *tensor)
{
    return tensor->dtype == MUC_I8 || tensor->dtype == MUC_U8;
}

bool muc_mcu_inputs_are_static(const muc_mcu_lowering *l, const muc_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (muc_mcu_input(l, node, i) && !muc_mcu_is_static(l, muc_mcu_input(l, node, i)))
            return false;
    return true;
}

muc_mcu_nest muc_mcu_nest_of(muc_mcu_lowering *l, const muc_tensor *shape)
{
    muc_mcu_nest nest = { .l = l };

    if (shape) {
        nest.loops = shape->rank;
        memcpy(nest.extents, shape->dims, shape->rank * sizeof(shape->dims[0]));
    }
    return nest;
}

muc_mcu_operand *muc_mcu_nest_add(muc_mcu_nest *nest, const char *name)
{
    muc_mcu_operand *operand = &nest->operands[nest->operand_count++];

    *operand = (muc_mcu_operand){ .name = name };
    return operand;
}

muc_mcu_stride muc_mcu_packed(const muc_mcu_lowering *l, const muc_tensor *tensor, uint32_t i)
{
    muc_expr_pool *pool = l->graph->pool;
    muc_mcu_stride stride = { .factor = 1, .expr = MUC_EXPR_NONE };

    for (uint32_t d = i + 1; d < tensor->rank; d++) {
        uint32_t extent = muc_mcu_dim(l, tensor, d);

        if (muc_expr_is_const(pool, tensor->dims[d]))
            stride.factor *= extent;
        else
            stride.expr = stride.expr == MUC_EXPR_NONE
                              ? tensor->dims[d]
                              : muc_expr_mul(pool, stride.expr, tensor->dims[d]);
    }
    return stride;
}

muc_mcu_stride muc_mcu_dense(const muc_mcu_lowering *l, const muc_tensor *tensor, uint32_t i)
{
    uint32_t value = l->program->value_of[tensor - l->graph->tensors];
    const muc_tensor *layout = value == MUC_NO_ID ? NULL : l->program->values[value].layout;

    return muc_mcu_packed(l, layout ? layout : tensor, i);
}

void muc_mcu_nest_shift(muc_mcu_nest *nest, muc_mcu_operand *operand, muc_mcu_stride stride,
                        muc_expr index)
{
    muc_expr_pool *pool = nest->l->graph->pool;
    const muc_expr_node *node = muc_expr_get(pool, index);

    if (node->op == MUC_EXPR_CONST)
        stride.factor *= node->immediate;
    else
        stride.expr = stride.expr == MUC_EXPR_NONE ? index : muc_expr_mul(pool, stride.expr, index);
    if (stride.factor)
        operand->offsets[operand->offset_count++] = stride;
}

void muc_mcu_nest_broadcast(muc_mcu_nest *nest, muc_mcu_operand *operand, const muc_tensor *tensor,
                            uint32_t rank)
{
    uint32_t ahead = rank - tensor->rank;

    for (uint32_t i = 0; i < tensor->rank; i++)
        if (muc_mcu_dim(nest->l, tensor, i) != 1)
            operand->strides[ahead + i] = muc_mcu_dense(nest->l, tensor, i);
}

/* ---- merging ---- */

static void remove_loop(muc_mcu_nest *nest, uint32_t loop)
{
    uint32_t after = --nest->loops - loop;

    memmove(&nest->extents[loop], &nest->extents[loop + 1], after * sizeof(nest->extents[0]));
    for (uint32_t i = 0; i < nest->operand_count; i++) {
        muc_mcu_stride *strides = nest->operands[i].strides;

        memmove(&strides[loop], &strides[loop + 1], after * sizeof(strides[0]));
    }
    if (loop < nest->outer)
        nest->outer--;
}

/* every operand goes from turn to turn of the loop as from the end of a turn of the one inside */
static bool can_merge(const muc_mcu_nest *nest, uint32_t loop)
{
    const muc_expr_node *inner = muc_expr_get(nest->l->graph->pool, nest->extents[loop + 1]);

    if (inner->op != MUC_EXPR_CONST || loop + 1 == nest->outer)
        return false;
    for (uint32_t i = 0; i < nest->operand_count; i++) {
        const muc_mcu_stride *strides = &nest->operands[i].strides[loop];

        if (strides[0].factor != strides[1].factor * inner->immediate ||
            (strides[0].expr != strides[1].expr && strides[0].factor != 0))
            return false;
    }
    return true;
}

void muc_mcu_nest_simplify(muc_mcu_nest *nest)
{
    muc_expr_pool *pool = nest->l->graph->pool;

    for (uint32_t i = nest->loops; i-- > 0;) {
        const muc_expr_node *extent = muc_expr_get(pool, nest->extents[i]);

        if (extent->op == MUC_EXPR_CONST && extent->immediate == 1)
            remove_loop(nest, i);
    }
    for (uint32_t i = nest->loops; i-- > 1;) {
        if (!can_merge(nest, i - 1))
            continue;
        nest->extents[i] = muc_expr_mul(pool, nest->extents[i - 1], nest->extents[i]);
        remove_loop(nest, i - 1);
    }
}

/* ---- text ---- */

void muc_mcu_indent(muc_text *text, unsigned depth)
{
    muc_text_add(text, "%*s", (int)depth * INDENT, "");
}

void muc_mcu_nest_print_extent(const muc_mcu_nest *nest, uint32_t loop, muc_text *text)
{
    if (loop + 1 == nest->row_loop)
        muc_text_add(text, "rows");
    else if (loop + 1 == nest->channel_loop)
        muc_text_add(text, "channels");
    else if (loop + 1 == nest->depth_loop)
        muc_text_add(text, "depths");
    else
        muc_mcu_print_expr(nest->l->graph->pool, nest->extents[loop], text);
}

static bool is_unrolled(const muc_mcu_nest *nest, uint32_t loop)
{
    const muc_expr_node *extent = muc_expr_get(nest->l->graph->pool, nest->extents[loop]);
    const bool is_cut = loop + 1 == nest->row_loop || loop + 1 == nest->channel_loop ||
                        loop + 1 == nest->depth_loop;

    return nest->is_unrolled && loop + 1 == nest->loops && !is_cut &&
           extent->op == MUC_EXPR_CONST && extent->immediate >= 8;
}

void muc_mcu_nest_open(const muc_mcu_nest *nest, uint32_t first, uint32_t end, unsigned depth)
{
    muc_text *text = &nest->l->text;

    for (uint32_t i = first; i < end; i++) {
        if (is_unrolled(nest, i))
            muc_text_add(text, "#pragma GCC unroll 8\n");
        muc_mcu_indent(text, depth++);
        muc_text_add(text, "for (uint32_t i%" PRIu32 " = 0; i%" PRIu32 " < ", i, i);
        muc_mcu_nest_print_extent(nest, i, text);
        muc_text_add(text, "; i%" PRIu32 "++) {\n", i);
    }
}

void muc_mcu_nest_close(const muc_mcu_nest *nest, uint32_t first, uint32_t end, unsigned depth)
{
    for (uint32_t i = end; i > first; i--) {
        muc_mcu_indent(&nest->l->text, depth + (i - first) - 1);
        muc_text_add(&nest->l->text, "}\n");
    }
}

/* " + i0 * 64u": sign, counter (or none), factor, expression */
static bool print_term(const muc_mcu_nest *nest, const muc_mcu_stride *stride, const char *counter,
                       bool first, muc_text *text)
{
    uint64_t factor = (uint64_t)(stride->factor < 0 ? -stride->factor : stride->factor);
    const char *times = "";

    if (factor == 0)
        return first;
    if (stride->factor < 0)
        muc_text_add(text, first ? "0u - " : " - ");
    else
        muc_text_add(text, first ? "" : " + ");
    if (counter) {
        muc_text_add(text, "%s", counter);
        times = " * ";
    }
    if (stride->expr != MUC_EXPR_NONE) {
        muc_text_add(text, "%s", times);
        muc_mcu_print_expr(nest->l->graph->pool, stride->expr, text);
        times = " * ";
    }
    if (stride->of_channels || stride->of_depths) {
        muc_text_add(text, "%s%s", times, stride->of_channels ? "channels" : "depths");
        times = " * ";
    }
    if (factor != 1 || !*times)
        muc_text_add(text, "%s%" PRIu64 "u", times, factor);
    return false;
}

void muc_mcu_nest_print(const muc_mcu_nest *nest, const muc_mcu_operand *operand, muc_text *text)
{
    bool first = true;

    muc_text_add(text, "%s[", operand->name);
    for (uint32_t i = 0; i < operand->offset_count; i++)
        first = print_term(nest, &operand->offsets[i], NULL, first, text);
    for (uint32_t i = 0; i < nest->loops; i++) {
        char counter[32];

        snprintf(counter, sizeof(counter),
                 operand->from_row && i + 1 == nest->row_loop ? "(piece->row + i%" PRIu32 ")"
                                                              : "i%" PRIu32,
                 i);
        first = print_term(nest, &operand->strides[i], counter, first, text);
    }
    muc_text_add(text, first ? "0]" : "]");
}
