/* recurrent_int.c - layers with states: SVDF, and LSTM, GRU and RNN of integers. */
#include <inttypes.h>
#include <stdio.h>

#include "graph/scales.h"
#include "ref/integer/recurrent_quantized.h"
#include "targets/mcu/kernels/int8_layer.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/runtime_files.h"

#define FIELD(name) muc_mcu_print_field(text, #name, layer->name)

/* the infix of functions that the instruction set suits best */
static const char *isa_of(const muc_mcu_lowering *l)
{
    return l->isa == MUC_MCU_ISA_MVE                         ? "mve_"
           : muc_mcu_isa_suits(l->isa, MUC_MCU_ISA_DSP) >= 0 ? "dsp_"
                                                             : "";
}

/* ---- svdf ---- */

static bool svdf_of(const muc_mcu_lowering *l, const muc_node *node, mur_svdf *layer)
{
    const size_t dims[] = { muc_mcu_dim(l, muc_mcu_input(l, node, 0), 0) };

    return muc_svdf_layer(l->graph, node, dims, layer);
}

/* a static array of what sums of the rows of input i begin with; bias: of each direction's `rows`
 */
static muc_status print_offsets(muc_mcu_lowering *l, const muc_node *node, uint32_t i,
                                const char *name, int32_t zero, const muc_tensor *bias,
                                uint64_t rows)
{
    const muc_tensor *weights = muc_mcu_input(l, node, i);
    const uint32_t columns = muc_mcu_dim(l, weights, weights->rank - 1);
    const uint64_t count = muc_mcu_elements(l, weights, 0, weights->rank - 1);
    int32_t *words;

    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, (size_t)count, &words));
    muc_recurrent_offsets((const int8_t *)weights->data, count, columns, zero,
                          bias ? bias->data : NULL, rows, i, words);
    muc_mcu_print_table(l, MUC_I32, name, words, count);
    return MUC_OK;
}

static void print_svdf(muc_text *text, const mur_svdf *layer, bool integers)
{
    muc_text_add(text, "    static const mur_svdf layer = {");
    FIELD(batch), FIELD(inputs), FIELD(units), FIELD(rank), FIELD(memory), FIELD(value_mul),
        FIELD(value_shift), FIELD(unit_mul), FIELD(unit_shift), FIELD(state_zero), FIELD(zero);
    muc_text_add(text, integers ? "\n    .offsets = offsets,\n    };\n\n" : "\n    };\n\n");
}

bool muc_mcu_takes_svdf(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *feature = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    mur_svdf layer;

    if (!muc_mcu_is_static(l, x))
        return false;
    return x->quantization ? y->dtype == MUC_I8 && feature->data && svdf_of(l, node, &layer)
                           : x->dtype == MUC_F32;
}

muc_status muc_mcu_write_svdf(muc_mcu_lowering *l, const muc_node *node)
{
    const bool integers = muc_mcu_input(l, node, 0)->quantization != NULL;
    muc_dtype state = muc_mcu_input(l, node, 3)->dtype;
    const char *isa =
        state == MUC_F32 || (state == MUC_I8 && l->isa != MUC_MCU_ISA_MVE) ? "" : isa_of(l);
    char function[32];
    mur_svdf layer;

    (void)svdf_of(l, node, &layer);
    snprintf(function, sizeof(function), "mur_%ssvdf_%s_run", isa,
             state == MUC_F32  ? "f32"
             : state == MUC_I8 ? "s8"
                               : "s16");
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    l->program->uses_recurrent = true;
    MUC_TRY(muc_mcu_begin_function(l, node));
    if (integers)
        MUC_TRY(print_offsets(l, node, 1, "offsets", muc_zero_of(muc_mcu_input(l, node, 0)), NULL,
                              (uint64_t)layer.units * layer.rank));
    print_svdf(&l->text, &layer, integers);
    muc_text_add(&l->text, "    %s(&layer, a, b, c, %s, d, y);\n", function,
                 muc_mcu_input(l, node, 4) ? "e" : "NULL");
    return muc_mcu_end_function(
        l, 0, (uint64_t)layer.batch * layer.units * layer.rank * (layer.inputs + layer.memory));
}

/* ---- lstm, gru and rnn ---- */

static bool layer_of(const muc_mcu_lowering *l, const muc_node *node, mur_recurrent_s8 *layer,
                     mur_peepholes_s8 *peepholes)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    const size_t dims[] = { muc_mcu_dim(l, x, 0), muc_mcu_dim(l, x, 1), muc_mcu_dim(l, x, 2) };

    return muc_recurrent_layer(l->graph, node, dims, layer, peepholes);
}

bool muc_mcu_takes_recurrent_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *bias = muc_mcu_input(l, node, 3);
    mur_peepholes_s8 peepholes;
    mur_recurrent_s8 layer;

    return x->quantization && muc_mcu_is_static(l, x) && muc_mcu_input(l, node, 1)->data &&
           muc_mcu_input(l, node, 2)->data && (!bias || bias->data) &&
           layer_of(l, node, &layer, &peepholes);
}

static void print_gates(muc_text *text, const char *name, const int32_t *values, int gates)
{
    muc_text_add(text, "\n    .%s = {", name);
    for (int i = 0; i < gates; i++)
        muc_text_add(text, "%s %" PRId32, i ? "," : "", values[i]);
    muc_text_add(text, " },");
}

static void print_layer(muc_text *text, const mur_recurrent_s8 *layer, int gates, bool has_table)
{
    muc_text_add(text, "    static const mur_recurrent_s8 layer = {");
    FIELD(steps), FIELD(batch), FIELD(inputs), FIELD(hidden), FIELD(directions), FIELD(backwards),
        FIELD(batch_first), FIELD(linear_before_reset);
    print_gates(text, "x_mul", layer->x_mul, gates);
    print_gates(text, "x_shift", layer->x_shift, gates);
    print_gates(text, "h_mul", layer->h_mul, gates);
    print_gates(text, "h_shift", layer->h_shift, gates);
    FIELD(in_mul), FIELD(in_shift), FIELD(out_mul), FIELD(out_shift), FIELD(cell_shift),
        FIELD(clip), FIELD(zero);
    muc_text_add(text, "\n    .x_bias = x_bias,\n    .h_bias = h_bias,%s\n    };\n",
                 has_table ? "\n    .sigmoid = sigmoid," : "");
}

muc_status muc_mcu_write_recurrent_s8(muc_mcu_lowering *l, const muc_node *node)
{
    const int gates = muc_op_gates(node->op)->count, wide = muc_op_gates(node->op)->wide;
    const bool peeps = muc_mcu_input(l, node, MUC_INPUT_PEEPHOLES) != NULL;
    const bool has_table = !muc_recurrent_has_relu(node);
    const muc_tensor *bias = muc_mcu_input(l, node, 3);
    mur_peepholes_s8 peepholes;
    mur_recurrent_s8 layer;
    char function[40];
    uint64_t rows;

    (void)layer_of(l, node, &layer, &peepholes);
    rows = (uint64_t)gates * layer.hidden;
    snprintf(function, sizeof(function), "mur_%s%s%s_s8_run", isa_of(l), muc_op_get(node->op)->name,
             peeps ? "_peephole" : "");
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    l->program->uses_recurrent = true;
    MUC_TRY(muc_mcu_begin_function(l, node));
    MUC_TRY(
        print_offsets(l, node, 1, "x_bias", muc_zero_of(muc_mcu_input(l, node, 0)), bias, rows));
    MUC_TRY(print_offsets(l, node, 2, "h_bias", layer.zero, bias, rows));
    if (has_table)
        muc_mcu_print_sigmoid_table(l);
    print_layer(&l->text, &layer, gates, has_table);
    muc_mcu_print_recurrent_operands(l, node, "mur_recurrent_s8_operands");
    if (peeps)
        muc_text_add(&l->text,
                     "    const mur_peepholes_s8 peepholes = { %s, %" PRId32 ", %" PRId32 " };\n\n",
                     muc_mcu_input_name(MUC_INPUT_PEEPHOLES), peepholes.mul, peepholes.shift);
    muc_text_add(&l->text, "    %s(&layer, %s&operands, scratch);\n", function,
                 peeps ? "&peepholes, " : "");
    return muc_mcu_end_function(l,
                                wide == MUC_INPUT_STATE  ? mur_gru_s8_scratch_bytes(&layer)
                                : wide == MUC_INPUT_CELL ? mur_lstm_s8_scratch_bytes(&layer)
                                                         : mur_rnn_s8_scratch_bytes(&layer),
                                (uint64_t)layer.steps * layer.batch * layer.directions * rows *
                                    (layer.inputs + layer.hidden));
}
