/* halves.c - operators on f16 element by element, by the runtime's kernels for Helium: flat, so
 * their inputs have one shape. */
#include "targets/mcu/loops/halves.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/half.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/runtime_files.h"

bool muc_mcu_has_halves(const muc_mcu_lowering *l)
{
    return muc_mcu_isa_suits(l->isa, MUC_MCU_ISA_MVE) >= 0;
}

/* NULL: none */
static const char *kernel_of(const muc_mcu_lowering *l, const muc_node *node)
{
    static const struct {
        muc_op op;
        const char *function;
    } kernels[] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    { .op = MUC_OP_##id, MUC_FACTS facts },
#define HALVES(kernel) .function = "mur_mve_" #kernel "_f16"
#include "graph/ops.def"
    };

    if (!muc_op_has(node->op, MUC_OP_CONVERTS))
        return kernels[node->op].function;
    return muc_mcu_output(l, node, 0)->dtype == MUC_F16 ? "mur_mve_halves_of" : "mur_mve_floats_of";
}

/* has its bounds as inputs */
static bool is_limited(const muc_node *node)
{
    bool at_zero;

    return muc_op_bounds(node->op, &at_zero) && !at_zero;
}

static bool is_number(const muc_tensor *bound)
{
    return !bound || (bound->kind == MUC_TENSOR_CONST && bound->data);
}

static bool has_shape_of(const muc_tensor *x, const muc_tensor *y)
{
    return x->rank == y->rank && memcmp(x->dims, y->dims, y->rank * sizeof(*y->dims)) == 0;
}

bool muc_mcu_fits_halves(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);

    if (!muc_mcu_has_halves(l) || !kernel_of(l, node) || !muc_mcu_is_static(l, y) ||
        muc_mcu_most_elements(l, y) > INT32_MAX)
        return false;
    if (is_limited(node))
        return is_number(muc_mcu_input(l, node, 1)) && is_number(muc_mcu_input(l, node, 2));
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!has_shape_of(muc_mcu_input(l, node, i), y))
            return false;
    return node->input_count <= 2;
}

bool muc_mcu_takes_halves(const muc_mcu_lowering *l, const muc_node *node)
{
    muc_dtype x = muc_mcu_input(l, node, 0)->dtype, y = muc_mcu_output(l, node, 0)->dtype;

    if (muc_op_has(node->op, MUC_OP_CONVERTS) && !(x == MUC_F16 && y == MUC_F32) &&
        !(x == MUC_F32 && y == MUC_F16))
        return false;
    return (x == MUC_F16 || y == MUC_F16) && muc_mcu_fits_halves(l, node);
}

static void print_limit(muc_mcu_lowering *l, const muc_tensor *bound, const char *none)
{
    if (bound)
        muc_text_add(&l->text, "%af", (double)muc_f32_of_f16(muc_load_u16(bound->data)));
    else
        muc_text_add(&l->text, "%s", none);
}

muc_status muc_mcu_write_halves(muc_mcu_lowering *l, const muc_node *node)
{
    const char *function = kernel_of(l, node);

    l->program->uses_f16 = true;
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    MUC_TRY(muc_mcu_begin_step(l, node, function));
    MUC_TRY(muc_mcu_pass_text(l, "%" PRIu64, muc_mcu_most_elements(l, muc_mcu_output(l, node, 0))));
    if (is_limited(node)) {
        muc_text_add(&l->text, "static const float %s_limits[2] = { ", l->step->name);
        print_limit(l, muc_mcu_input(l, node, 1), "-1.0f / 0.0f");
        muc_text_add(&l->text, ", ");
        print_limit(l, muc_mcu_input(l, node, 2), "1.0f / 0.0f");
        muc_text_add(&l->text, " };\n\n");
        MUC_TRY(muc_mcu_pass_text(l, "%s_limits", l->step->name));
    }
    for (uint32_t i = 0; i < node->input_count && (i == 0 || !is_limited(node)); i++)
        MUC_TRY(muc_mcu_pass_input(l, i));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    muc_mcu_share_pointwise(l, node);
    return muc_mcu_end_step(l, 0);
}
