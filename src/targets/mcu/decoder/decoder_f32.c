/* decoder_f32.c - a decoder's operators on binary32, between its products. */
#include <inttypes.h>

#include "graph/graph_check.h"
#include "targets/mcu/decoder/decoder.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"

/* columns that are normalised together, or 0 */
static uint32_t norm_width(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    const muc_attribute *group = muc_node_attribute(node, MUC_KEY_GROUP);

    if (x->rank != 2 || muc_node_integer_or(node, MUC_KEY_AXIS, 1) != 1)
        return 0;
    return group ? (uint32_t)group->value.integer : muc_mcu_dim(l, x, 1);
}

bool muc_mcu_takes_rms_norm_f32(const muc_mcu_lowering *l, const muc_node *node)
{
    uint32_t width = norm_width(l, node);

    return muc_mcu_is_f32(muc_mcu_input(l, node, 0)) && width &&
           muc_mcu_is_vector_of(l, muc_mcu_input(l, node, 1), width);
}

/* in tiles, if the machine has any and every run the same rows */
static muc_status write_tiled_norm(muc_mcu_lowering *l, const muc_node *node, const char *function,
                                   bool *done)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    uint32_t width = norm_width(l, node), bytes = width * (uint32_t)sizeof(float);
    muc_mcu_tile_layer layer =
        muc_mcu_rows_layer(node, 1, muc_mcu_most_elements(l, x) / width, bytes, false);
    const muc_mcu_tile_operand y = layer.operands[1];

    for (uint32_t i = 1; i < node->input_count; i++)
        layer.operands[i] = (muc_mcu_tile_operand){ .name = muc_mcu_input_name(i),
                                                    .rows = 1,
                                                    .stride = 1,
                                                    .pixels = 1,
                                                    .pixel_bytes = bytes,
                                                    .is_constant = true };
    layer.operands[node->input_count] = y;
    layer.operand_count = node->input_count + 1;
    *done = muc_mcu_is_static(l, x);
    if (*done)
        MUC_TRY(muc_mcu_begin_tiled_function(l, node, &layer, done));
    if (!*done)
        return MUC_OK;
    muc_text_add(&l->text, "    %s(", function);
    for (uint32_t i = 1; i < node->input_count; i++)
        muc_text_add(&l->text, "%s, ", muc_mcu_input_name(i));
    muc_mcu_print_real(&l->text, (double)(float)muc_node_real(node, MUC_KEY_EPSILON), false);
    muc_text_add(&l->text, ", rows, %" PRIu32 ", a, y);\n", width);
    MUC_TRY(muc_mcu_end_function(l, 0, 0));
    muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}

static muc_status write_norm(muc_mcu_lowering *l, const muc_node *node, const char *name)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    muc_expr_pool *pool = l->graph->pool;
    uint32_t width = norm_width(l, node);
    const char *function;
    muc_text epsilon = { 0 };
    muc_status status;
    bool done;

    MUC_TRY(muc_mcu_decoder_function(l, "", name, &function));
    MUC_TRY(write_tiled_norm(l, node, function, &done));
    if (done)
        return MUC_OK;
    MUC_TRY(muc_mcu_begin_step(l, node, function));
    for (uint32_t i = 1; i < node->input_count; i++)
        MUC_TRY(muc_mcu_pass_input(l, i));
    muc_mcu_print_real(&epsilon, (double)(float)muc_node_real(node, MUC_KEY_EPSILON), false);
    status = muc_text_status(l->ctx, &epsilon);
    if (status == MUC_OK)
        status = muc_mcu_pass_text(l, "%s", epsilon.data);
    muc_text_free(&epsilon);
    MUC_TRY(status);
    MUC_TRY(muc_mcu_pass_expr(
        l, muc_expr_mul(pool, x->dims[0], muc_expr_const(pool, muc_mcu_dim(l, x, 1) / width))));
    MUC_TRY(muc_mcu_pass_text(l, "%" PRIu32 "u", width));
    MUC_TRY(muc_mcu_pass_input(l, 0));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    muc_mcu_may_overlap(l, 0, 0);
    return muc_mcu_end_step(l, 0);
}

muc_status muc_mcu_write_rms_norm_f32(muc_mcu_lowering *l, const muc_node *node)
{
    return write_norm(l, node, "rms_norm_f32");
}

bool muc_mcu_takes_layer_norm_f32(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *bias = muc_mcu_input(l, node, 2);
    uint32_t width = x->rank == 2 ? muc_mcu_dim(l, x, 1) : 0;

    return muc_mcu_is_f32(x) && x->rank == 2 && muc_node_integer(node, MUC_KEY_AXIS) == 1 && bias &&
           node->output_count == 1 && muc_mcu_is_vector_of(l, muc_mcu_input(l, node, 1), width) &&
           muc_mcu_is_vector_of(l, bias, width);
}

muc_status muc_mcu_write_layer_norm_f32(muc_mcu_lowering *l, const muc_node *node)
{
    return write_norm(l, node, "layer_norm_f32");
}

bool muc_mcu_takes_rope_f32(const muc_mcu_lowering *l, const muc_node *node)
{
    for (uint32_t i = 1; i < 3; i++) {
        const muc_tensor *table = muc_mcu_input(l, node, i);

        if (!muc_mcu_is_f32(table) || !muc_mcu_is_known(l, table))
            return false;
    }
    return true;
}

muc_status muc_mcu_write_rope_f32(muc_mcu_lowering *l, const muc_node *node)
{
    const char *function;

    MUC_TRY(muc_mcu_decoder_function(l, "", "rope_f32", &function));
    MUC_TRY(muc_mcu_begin_step(l, node, function));
    MUC_TRY(muc_mcu_pass_input(l, 1));
    MUC_TRY(muc_mcu_pass_input(l, 2));
    MUC_TRY(muc_mcu_pass_expr(l, muc_node_expr(node, MUC_KEY_POSITION)));
    MUC_TRY(muc_mcu_pass_expr(l, muc_mcu_input(l, node, 0)->dims[0]));
    MUC_TRY(muc_mcu_pass_text(l, "%" PRId64 "u", muc_node_integer(node, MUC_KEY_HEADS)));
    MUC_TRY(muc_mcu_pass_text(l, "%" PRId64 "u", muc_node_integer(node, MUC_KEY_HEAD_DIM)));
    MUC_TRY(muc_mcu_pass_text(l, "%" PRIu32 "u", 2 * muc_mcu_dim(l, muc_mcu_input(l, node, 1), 1)));
    MUC_TRY(muc_mcu_pass_input(l, 0));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    muc_mcu_may_overlap(l, 0, 0);
    return muc_mcu_end_step(l, 0);
}

bool muc_mcu_takes_silu_f32(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_is_f32(muc_mcu_input(l, node, 0)) &&
           muc_node_real_or(node, MUC_KEY_ALPHA, 1) == 1;
}

/* A step that computes element by element, in tiles if the machine has any. */
static muc_status write_elements(muc_mcu_lowering *l, const muc_node *node, const char *name,
                                 uint32_t inputs)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    const char *const runner = inputs > 1 ? "mur_tiles_binary_f32" : "mur_tiles_unary_f32";
    const muc_mcu_tile_layer layer =
        muc_mcu_rows_layer(node, inputs, muc_mcu_most_elements(l, x), sizeof(float), false);
    muc_mcu_tiling tiling;
    const char *kernel;
    bool fits = muc_mcu_has_tiles(l->program->machine) && x->rank &&
                muc_expr_get(l->graph->pool, x->dims[0])->lo > 0;

    MUC_TRY(muc_mcu_decoder_function(l, "", name, &kernel));
    if (fits)
        MUC_TRY(muc_mcu_find_tiles(l, &layer, &tiling, &fits));
    MUC_TRY(muc_mcu_begin_either(l, node, kernel, runner, fits ? &layer : NULL, &tiling));
    if (fits)
        MUC_TRY(muc_mcu_pass_text(l, "%s", kernel));
    MUC_TRY(muc_mcu_pass_count(l, x));
    for (uint32_t i = 0; i < inputs; i++)
        MUC_TRY(muc_mcu_pass_input(l, i));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    if (fits)
        MUC_TRY(muc_mcu_pass_text(l, "tile_memory"));
    for (uint32_t i = 0; i < inputs; i++)
        muc_mcu_may_overlap(l, i, 0);
    return muc_mcu_end_step(l, 0);
}

muc_status muc_mcu_write_silu_f32(muc_mcu_lowering *l, const muc_node *node)
{
    bool is_mve = muc_mcu_isa_suits(l->isa, MUC_MCU_ISA_MVE) >= 0;

    return write_elements(l, node, is_mve ? "mve_silu_f32" : "silu_f32", 1);
}

/* a and b of one shape, each computed at run time */
bool muc_mcu_takes_pair_f32(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);

    return muc_mcu_is_f32(a) && a->kind != MUC_TENSOR_CONST && b->kind != MUC_TENSOR_CONST &&
           /* loops of others work in tiles, and in chains, where a run has as many rows as another
            */
           !(muc_mcu_has_tiles(l->program->machine) && muc_mcu_is_static(l, a)) &&
           muc_tensor_same_dims(a, b);
}

muc_status muc_mcu_write_pair_f32(muc_mcu_lowering *l, const muc_node *node)
{
    return write_elements(l, node, node->op == MUC_OP_ADD ? "add_f32" : "mul_f32", 2);
}
