/* channel_norms.c - norms over channels, as loops over f32, and of int8 rows by the runtime's
 * kernel. */
#include <inttypes.h>

#include "graph/scales.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/kernels/int8_layer.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/runtime_files.h"
#include "targets/mcu/tiles/tiles.h"

static uint32_t channel_of(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) ? muc_mcu_input(l, node, 0)->rank - 1
                                                               : 1;
}

static bool all_real(const muc_mcu_lowering *l, const muc_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (muc_mcu_input(l, node, i)->dtype != MUC_F32)
            return false;
    return muc_mcu_is_static(l, muc_mcu_input(l, node, 0));
}

bool muc_mcu_takes_batch_norm(const muc_mcu_lowering *l, const muc_node *node)
{
    return all_real(l, node);
}

muc_status muc_mcu_write_batch_norm(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    muc_mcu_nest nest = muc_mcu_nest_of(l, x);
    muc_text line = { 0 };

    for (uint32_t i = 0; i < 5; i++) {
        muc_mcu_operand *operand = muc_mcu_nest_add(&nest, muc_mcu_input_name(i));

        if (i == 0)
            muc_mcu_nest_broadcast(&nest, operand, x, x->rank);
        else
            operand->strides[channel_of(l, node)].factor = 1;
    }
    muc_mcu_nest_broadcast(&nest, muc_mcu_nest_add(&nest, "y"), x, x->rank);
    MUC_TRY(muc_mcu_begin_function(l, node));
    muc_mcu_nest_simplify(&nest);
    muc_text_add(&line, "@y = (@a - @d) / mur_sqrt(@e + ");
    muc_mcu_print_real(&line, muc_node_real(node, MUC_KEY_EPSILON), false);
    muc_text_add(&line, ") * @b + @c;");
    MUC_TRY(muc_mcu_end_elements(&nest, &line));
    muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}

bool muc_mcu_takes_lrn(const muc_mcu_lowering *l, const muc_node *node)
{
    return all_real(l, node);
}

/* i0: images, i1 and i3: places before and after the channels, i2: channels */
muc_status muc_mcu_write_lrn(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    uint32_t channel = channel_of(l, node), channels = muc_mcu_dim(l, x, channel);
    uint32_t window = (uint32_t)muc_node_integer(node, MUC_KEY_WINDOW), before = (window - 1) / 2;
    uint64_t inner = muc_mcu_elements(l, x, channel + 1, x->rank);
    muc_text *text = &l->text;

    MUC_TRY(muc_mcu_begin_function(l, node));
    muc_text_add(text,
                 "    for (uint32_t i = 0; i < %" PRIu64 "u; i++) {\n"
                 "        const uint32_t channel = i / %" PRIu64 "u %% %" PRIu32 "u;\n"
                 "        float sum = 0.0f;\n\n"
                 "        for (uint32_t k = 0; k < %" PRIu32 "u; k++)\n"
                 "            if (channel + k - %" PRIu32 "u < %" PRIu32 "u) { /* inside */\n"
                 "                const float x = a[i + k * %" PRIu64 "u - %" PRIu64 "u];\n\n"
                 "                sum += x * x;\n"
                 "            }\n"
                 "        y[i] = a[i] / mur_real_pow(",
                 muc_mcu_most_elements(l, x), inner, channels, window, before, channels, inner,
                 before * inner);
    muc_mcu_print_real(text, muc_node_real(node, MUC_KEY_BIAS), false);
    muc_text_add(text, " + ");
    muc_mcu_print_real(text, muc_node_real(node, MUC_KEY_ALPHA) / window, false);
    muc_text_add(text, " * sum, ");
    muc_mcu_print_real(text, muc_node_real(node, MUC_KEY_BETA), false);
    muc_text_add(text, ");\n    }\n");
    return muc_mcu_end_function(l, 0, 0);
}

/* ---- int8 ---- */

static muc_norm_rows rows_of(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    uint64_t dims[MUC_GRAPH_MAX_RANK];

    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = muc_mcu_dim(l, x, i);
    return muc_norm_rows_of(node, x->rank, dims);
}

bool muc_mcu_takes_norm_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    for (uint32_t i = 1; i < node->input_count; i++) {
        const muc_tensor *row = muc_mcu_input(l, node, i);

        if (row && (row->kind != MUC_TENSOR_CONST || row->dtype != MUC_F32 || !row->data))
            return false;
    }
    return node->output_count == 1 && muc_mcu_is_s8(muc_mcu_input(l, node, 0)) &&
           muc_mcu_is_s8(muc_mcu_output(l, node, 0)) &&
           muc_mcu_is_static(l, muc_mcu_input(l, node, 0)) &&
           muc_mcu_most_elements(l, muc_mcu_input(l, node, 0)) > 0 &&
           !muc_node_attribute(node, MUC_KEY_GROUP);
}

/* the end of a layer of rows, whose last fields are y's bounds, and its call; in tiles the rows are
 * the piece's */
static muc_status end_rows_layer(muc_mcu_lowering *l, const muc_node *node, const muc_tensor *y,
                                 const char *function, bool in_tiles)
{
    int32_t least, most;

    muc_scale_clamp(node, y, &least, &most);
    muc_mcu_print_field(&l->text, "min", least);
    muc_mcu_print_field(&l->text, "max", most);
    muc_text_add(&l->text, "\n    };\n\n%s    %s(&layer, a, y);\n",
                 in_tiles ? "    layer.rows = (int32_t)rows;\n" : "", function);
    MUC_TRY(muc_mcu_end_function(l, 0, 0));
    muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}

static void print_norm(muc_text *text, const muc_norm_rows *rows, uint64_t count,
                       const muc_norm_scales *scales)
{
    muc_mcu_print_field(text, "rows", (int64_t)count);
    muc_mcu_print_field(text, "columns", scales->columns);
    muc_mcu_print_field(text, "groups", (int64_t)rows->groups);
    muc_mcu_print_field(text, "runs", (int64_t)rows->runs);
    muc_mcu_print_field(text, "width", (int64_t)rows->width);
    muc_mcu_print_field(text, "step", (int64_t)rows->step);
    muc_mcu_print_field(text, "next", (int64_t)rows->next);
    muc_mcu_print_field(text, "of_runs", rows->of_runs);
    muc_mcu_print_field(text, "head", scales->head);
    muc_mcu_print_field(text, "shift", scales->shift);
    muc_text_add(
        text, "\n    .epsilon = INT64_C(%" PRId64 "),\n    .gains = gains,\n    .biases = biases,",
        scales->epsilon);
}

muc_status muc_mcu_write_norm_s8(muc_mcu_lowering *l, const muc_node *node)
{
    const char *function = muc_mcu_find_kernel(l->isa, "norm_s8")->function;
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    const muc_norm_rows rows = rows_of(l, node);
    const uint64_t columns = muc_norm_columns(&rows), width = muc_norm_gains(&rows);
    const uint64_t count = muc_mcu_most_elements(l, x) / columns;
    const muc_mcu_tile_layer cut = muc_mcu_rows_layer(node, 1, count, columns, false);
    muc_norm_scales scales;
    bool fits = false;
    int32_t *gains;

    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, (size_t)(2 * width), &gains));
    if (!muc_scale_norm(x, muc_mcu_input(l, node, 1), muc_mcu_input(l, node, 2),
                        muc_node_real(node, MUC_KEY_EPSILON), &rows, y, gains, gains + width,
                        &scales))
        return muc_fail_on(muc_node_subject(l->ctx, l->graph, node), MUC_UNSUPPORTED,
                           "an int8 norm of %" PRIu64 " columns whose numbers 32 bits do "
                           "not hold",
                           columns);
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    if (rows.groups == 1 && rows.runs == 1) /* others' rows are not one after another */
        MUC_TRY(muc_mcu_begin_tiled_function(l, node, &cut, &fits));
    if (!fits)
        MUC_TRY(muc_mcu_begin_function(l, node));
    muc_mcu_print_table(l, MUC_I32, "gains", gains, width);
    muc_mcu_print_table(l, MUC_I32, "biases", gains + width, width);
    muc_text_add(&l->text, "    %smur_norm_s8 layer = {", fits ? "" : "static const ");
    print_norm(&l->text, &rows, count, &scales);
    muc_mcu_print_field(&l->text, "is_centred", muc_op_has(node->op, MUC_OP_CENTRES));
    muc_mcu_print_field(&l->text, "in_zero", muc_zero_of(x));
    return end_rows_layer(l, node, y, function, fits);
}

bool muc_mcu_takes_log_softmax_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    muc_log_softmax_scales scales;

    return muc_mcu_is_s8(x) && muc_mcu_is_s8(y) && muc_mcu_is_static(l, x) &&
           muc_node_integer(node, MUC_KEY_AXIS) + 1 == x->rank &&
           muc_scale_log_softmax(x, muc_mcu_dim(l, x, x->rank - 1), y, &scales);
}

muc_status muc_mcu_write_log_softmax_s8(muc_mcu_lowering *l, const muc_node *node)
{
    const char *function = muc_mcu_find_kernel(l->isa, "log_softmax_s8")->function;
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    const uint32_t columns = muc_mcu_dim(l, x, x->rank - 1);
    const uint64_t rows = muc_mcu_most_elements(l, x) / columns;
    const muc_mcu_tile_layer cut = muc_mcu_rows_layer(node, 1, rows, columns, false);
    muc_log_softmax_scales scales;
    bool fits;

    (void)muc_scale_log_softmax(x, columns, y, &scales);
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    MUC_TRY(muc_mcu_begin_tiled_function(l, node, &cut, &fits));
    if (!fits)
        MUC_TRY(muc_mcu_begin_function(l, node));
    muc_text_add(&l->text, "    static const uint32_t exps[256] = {");
    for (unsigned k = 0; k < 256; k++)
        muc_text_add(&l->text, "%s%" PRIu32 ",", k % 10 ? " " : "\n        ", scales.exps[k]);
    muc_text_add(&l->text, "\n    };\n    %smur_log_softmax_s8 layer = {",
                 fits ? "" : "static const ");
    l->program->table_bytes += sizeof(scales.exps);
    muc_mcu_print_field(&l->text, "rows", (int64_t)rows);
    muc_mcu_print_field(&l->text, "columns", columns);
    muc_text_add(&l->text, "\n    .exps = exps,");
    muc_mcu_print_field(&l->text, "step", scales.step);
    muc_mcu_print_field(&l->text, "log_step", scales.log_step);
    muc_mcu_print_field(&l->text, "zero", muc_zero_of(y));
    return end_rows_layer(l, node, y, function, fits);
}

/* ---- softmax to int16 ---- */

bool muc_mcu_takes_softmax_s16(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);

    return muc_mcu_is_s8(x) && y->dtype == MUC_I16 && y->quantization && muc_mcu_is_static(l, x) &&
           muc_node_integer(node, MUC_KEY_AXIS) + 1 == x->rank;
}

muc_status muc_mcu_write_softmax_s16(muc_mcu_lowering *l, const muc_node *node)
{
    static const char function[] = "mur_ref_softmax_s16";
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    const muc_softmax_scales scales = muc_scale_softmax(x, muc_node_real_or(node, MUC_KEY_BETA, 1));

    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    MUC_TRY(muc_mcu_begin_function(l, node));
    muc_text_add(&l->text, "    static const mur_softmax_s8 layer = {");
    muc_mcu_print_field(&l->text, "rows", (int64_t)muc_mcu_elements(l, x, 0, x->rank - 1));
    muc_mcu_print_field(&l->text, "columns", muc_mcu_dim(l, x, x->rank - 1));
    muc_mcu_print_field(&l->text, "mul", scales.difference.mantissa);
    muc_mcu_print_field(&l->text, "shift", scales.difference.shift);
    muc_mcu_print_field(&l->text, "diff_min", scales.least);
    muc_text_add(&l->text, "\n    };\n\n    %s(&layer, a, y);\n", function);
    return muc_mcu_end_function(l, 0, 0);
}
