/* float16_pools.c - pools on f16 and means over all pixels by Helium's kernels. */
#include "mur_nn_f16.h"
#include "targets/mcu/kernels/int8_layer.h"
#include "targets/mcu/loops/halves.h"
#include "targets/mcu/program/runtime_files.h"

/* NULL: none */
static const char *kernel_of(const muc_node *node)
{
    static const struct {
        muc_op op;
        const char *function;
    } kernels[] = {
#define MUC_OP(id, name, least, most, least_out, most_out, rule, flags, facts, meaning) \
    { .op = MUC_OP_##id, MUC_FACTS facts },
#define HALF_POOL(kernel) .function = "mur_mve_" #kernel "_f16"
#include "graph/ops.def"
    };

    return kernels[node->op].function;
}

/* over all pixels, without windows? */
static bool is_mean(const muc_node *node)
{
    return !muc_node_attribute(node, MUC_KEY_KERNEL);
}

bool muc_mcu_fits_pool_f16(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);

    if (!muc_mcu_has_halves(l) || !kernel_of(node))
        return false;
    return is_mean(node) ? muc_mcu_is_over_pixels(l, node) && muc_mcu_dim(l, x, 1) <= UINT16_MAX &&
                               muc_mcu_dim(l, x, 2) <= UINT16_MAX
                         : muc_mcu_is_dense_pool(l, node) && muc_mcu_dim(l, x, 0) == 1;
}

bool muc_mcu_takes_pool_f16(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_input(l, node, 0)->dtype == MUC_F16 && muc_mcu_fits_pool_f16(l, node);
}

/* a mean over all pixels, as the average of one window */
static mur_pool_f16 mean_of(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    const int32_t h = (int32_t)muc_mcu_dim(l, x, 1), w = (int32_t)muc_mcu_dim(l, x, 2);
    const int32_t c = (int32_t)muc_mcu_dim(l, x, 3);

    return (mur_pool_f16){
        .in_h = h,
        .in_w = w,
        .c = c,
        .out_h = 1,
        .out_w = 1,
        .in_pitch = w * c,
        .out_pitch = c,
        .kernel_h = (uint16_t)h,
        .kernel_w = (uint16_t)w,
        .stride_h = 1,
        .stride_w = 1,
    };
}

muc_status muc_mcu_write_pool_f16(muc_mcu_lowering *l, const muc_node *node)
{
    const char *function = kernel_of(node);
    const mur_pool_f16 layer = is_mean(node) ? mean_of(l, node) : muc_mcu_pool_of(l, node);

    l->program->uses_f16 = true;
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    MUC_TRY(muc_mcu_begin_step(l, node, function));
    muc_text_add(&l->text, "static const mur_pool_f16 %s = {", l->step->name);
    muc_mcu_print_pool(&l->text, &layer);
    muc_text_add(&l->text, "\n};\n\n");
    MUC_TRY(muc_mcu_pass_text(l, "&%s", l->step->name));
    MUC_TRY(muc_mcu_pass_input(l, 0));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    return muc_mcu_end_step(l, 0);
}
