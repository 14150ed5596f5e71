/* byte_tables.c - functions of one byte, by a table of what they make of each. */
#include <inttypes.h>

#include "graph/scales.h"
#include "targets/mcu/kernels/int8_layer.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/runtime_files.h"
#include "targets/mcu/tiles/tiles.h"

enum { TABLE = 256 };

/* the other inputs, if any, are constants of one element */
static bool is_of_one_tensor(const muc_mcu_lowering *l, const muc_node *node)
{
    for (uint32_t i = 1; i < node->input_count; i++) {
        const muc_tensor *t = muc_mcu_input(l, node, i);

        if (t && (!t->data || !muc_mcu_is_quantized(t) || muc_mcu_most_elements(l, t) != 1))
            return false;
    }
    return muc_integer_operands(node) <= 2;
}

/* What integers alone make of few elements is shorter as a loop. */
static bool is_worth_a_table(const muc_mcu_lowering *l, const muc_node *node)
{
    return !muc_scale_has_formula(node->op) ||
           muc_mcu_most_elements(l, muc_mcu_input(l, node, 0)) >= TABLE / 4;
}

bool muc_mcu_takes_table_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);

    return muc_mcu_is_quantized(x) && muc_mcu_is_byte(x) && !x->data && muc_mcu_is_quantized(y) &&
           y->dtype == x->dtype && muc_mcu_is_static(l, x) && muc_mcu_is_static(l, y) &&
           muc_mcu_most_elements(l, x) == muc_mcu_most_elements(l, y) &&
           is_of_one_tensor(l, node) && is_worth_a_table(l, node);
}

muc_status muc_mcu_write_table(muc_mcu_lowering *l, const muc_node *node,
                               const muc_mcu_tile_layer *cut, const uint8_t *table)
{
    static const char function[] = "mur_ref_table_s8";
    const uint64_t count = muc_mcu_most_elements(l, muc_mcu_input(l, node, 0));
    uint32_t constant, value;
    bool fits;

    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    MUC_TRY(muc_mcu_begin_tiled_function(l, node, cut, &fits));
    if (!fits)
        MUC_TRY(muc_mcu_begin_step(l, node, function));
    MUC_TRY(muc_mcu_new_constant(l, "table", table, TABLE, &constant));
    if (fits) {
        l->program->values[constant].used = true;
        l->step->packed_bytes = TABLE;
        muc_text_add(&l->text,
                     "    %s((const int8_t *)%s, rows, (const int8_t *)a, (int8_t *)y);\n",
                     function, l->program->values[constant].name);
        MUC_TRY(muc_mcu_end_function(l, 0, 0));
    } else {
        MUC_TRY(muc_mcu_pass_constant(l, constant, MUC_I8));
        MUC_TRY(muc_mcu_pass_text(l, "%" PRIu64, count));
        MUC_TRY(muc_mcu_input_value(l, node, 0, &value));
        MUC_TRY(muc_mcu_pass_constant(l, value, MUC_I8));
        MUC_TRY(muc_mcu_pass_output(l, 0));
        l->step->arguments[l->step->argument_count - 1].dtype = MUC_I8;
        MUC_TRY(muc_mcu_end_step(l, 0));
    }
    muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}

/* of uint8, too, of which those are first whose top bit is set */
muc_status muc_mcu_write_table_s8(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    const muc_mcu_tile_layer cut =
        muc_mcu_rows_layer(node, 1, muc_mcu_most_elements(l, x), 1, false);
    unsigned turn = x->dtype == MUC_U8 ? 128 : 0;
    int8_t table[TABLE];
    uint8_t *turned;

    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, TABLE, &turned));
    MUC_TRY(muc_scale_table(l->ctx, l->graph, node, table));
    for (unsigned i = 0; i < TABLE; i++)
        turned[i] = (uint8_t)table[i ^ turn];
    return muc_mcu_write_table(l, node, &cut, turned);
}
