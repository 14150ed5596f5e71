/* stretched_pair.c - sums and products of int8 in which an element of the second stands beside a
 * row of the first, such as [H, W, C] and [H, W, 1]: some rows at a time are filled with it, for
 * the kernels of two tensors of one shape.
 */
#include <inttypes.h>

#include "graph/scales.h"
#include "targets/mcu/kernels/int8_layer.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/loops/sums_int8.h"
#include "targets/mcu/program/runtime_files.h"
#include "targets/mcu/tiles/tiles.h"

enum { FILLED = 256 }; /* elements, and the longest row */

static const char *kernel_of(const muc_node *node)
{
    return node->op == MUC_OP_MUL ? "mul_s8" : "add_s8";
}

static muc_mcu_nest nest_of(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    muc_mcu_nest nest = muc_mcu_nest_of(l, y);

    for (uint32_t i = 0; i < 2; i++)
        muc_mcu_nest_broadcast(&nest, muc_mcu_nest_add(&nest, muc_mcu_input_name(i)),
                               muc_mcu_input(l, node, i), y->rank);
    muc_mcu_nest_broadcast(&nest, muc_mcu_nest_add(&nest, "y"), y, y->rank);
    muc_mcu_nest_simplify(&nest);
    return nest;
}

static uint32_t extent_of(const muc_mcu_nest *nest, uint32_t loop)
{
    return muc_expr_get(nest->l->graph->pool, nest->extents[loop])->immediate;
}

/* sums without vectors are as short as loops of a line */
bool muc_mcu_takes_stretched_pair_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    muc_mcu_nest nest;
    uint32_t last;

    if (!muc_mcu_is_s8(muc_mcu_input(l, node, 0)) || !muc_mcu_is_s8(muc_mcu_input(l, node, 1)) ||
        !muc_mcu_is_s8(y) || !muc_mcu_inputs_are_static(l, node) ||
        muc_mcu_has_tiles(l->program->machine) ||
        muc_mcu_find_kernel(l->isa, kernel_of(node))->isa == MUC_MCU_ISA_NONE ||
        (node->op != MUC_OP_MUL && !muc_mcu_has_vectors(l->isa)))
        return false;
    nest = nest_of((muc_mcu_lowering *)l, node);
    last = nest.loops - 1;
    return nest.loops >= 2 && nest.operands[0].strides[last].factor == 1 &&
           nest.operands[1].strides[last].factor == 0 && extent_of(&nest, last) <= FILLED;
}

static void print_descriptor(muc_mcu_lowering *l, const muc_node *node)
{
    muc_text_add(&l->text, "    mur_%s layer = {", kernel_of(node));
    if (node->op == MUC_OP_MUL) {
        muc_mcu_print_mul(l, node);
    } else {
        const mur_add_s8 add = muc_mcu_add_of(l, node);

        muc_mcu_print_add(&l->text, &add);
    }
    muc_text_add(&l->text, "\n    };\n\n");
}

/* "&a[i0 * 16u]": where a turn of the loop before the last begins */
static void print_place(const muc_mcu_nest *nest, uint32_t operand)
{
    muc_mcu_nest outer = *nest;

    outer.loops--;
    muc_text_add(&nest->l->text, "&");
    muc_mcu_nest_print(&outer, &nest->operands[operand], &nest->l->text);
}

static void print_rows(muc_mcu_nest *nest, const char *function)
{
    const uint32_t loop = nest->loops - 2, width = extent_of(nest, nest->loops - 1);
    const uint32_t all = extent_of(nest, loop), some = FILLED / width;
    muc_text *text = &nest->l->text;
    const unsigned depth = 1 + loop;

    muc_mcu_indent(text, depth);
    muc_text_add(text, "for (uint32_t i%u = 0; i%u < %uu; i%u += %uu) {\n", loop, loop, all, loop,
                 some);
    muc_mcu_indent(text, depth + 1);
    muc_text_add(text, "const uint32_t rows = %uu - i%u < %uu ? %uu - i%u : %uu;\n", all, loop,
                 some, all, loop, some);
    muc_mcu_indent(text, depth + 1);
    muc_text_add(text, "const int8_t *each = ");
    print_place(nest, 1);
    muc_text_add(text, ";\n\n");
    muc_mcu_indent(text, depth + 1);
    muc_text_add(text, "for (uint32_t j = 0; j < rows; j++)\n");
    muc_mcu_indent(text, depth + 2);
    muc_text_add(text, "mur_fill(filled + j * %uu, each[j * %" PRId64 "u], %uu);\n", width,
                 nest->operands[1].strides[loop].factor, width);
    muc_mcu_indent(text, depth + 1);
    muc_text_add(text, "layer.count = layer.b_count = (int32_t)rows * %u;\n", width);
    muc_mcu_indent(text, depth + 1);
    muc_text_add(text, "%s(&layer, ", function);
    print_place(nest, 0);
    muc_text_add(text, ", filled, ");
    print_place(nest, 2);
    muc_text_add(text, ");\n");
    muc_mcu_indent(text, depth);
    muc_text_add(text, "}\n");
}

muc_status muc_mcu_write_stretched_pair_s8(muc_mcu_lowering *l, const muc_node *node)
{
    const char *function = muc_mcu_find_kernel(l->isa, kernel_of(node))->function;
    muc_mcu_nest nest;

    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    MUC_TRY(muc_mcu_begin_function(l, node));
    nest = nest_of(l, node);
    print_descriptor(l, node);
    muc_text_add(&l->text, "    int8_t *filled = (int8_t *)scratch;\n\n");
    muc_mcu_nest_open(&nest, 0, nest.loops - 2, 1);
    print_rows(&nest, function);
    muc_mcu_nest_close(&nest, 0, nest.loops - 2, 1);
    MUC_TRY(muc_mcu_end_function(l, FILLED, 0));
    if (muc_mcu_input(l, node, 0)->kind != MUC_TENSOR_CONST &&
        muc_mcu_most_elements(l, muc_mcu_input(l, node, 0)) ==
            muc_mcu_most_elements(l, muc_mcu_output(l, node, 0)))
        muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}
