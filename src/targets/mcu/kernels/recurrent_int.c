/* recurrent_int.c - layers with states: SVDF, and LSTM, GRU and RNN of integers. */
#include <inttypes.h>
#include <stdio.h>

#include "graph/scales.h"
#include "mur_recurrent.h"
#include "targets/mcu/kernels/int8_layer.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/runtime_files.h"

enum { PEEPHOLES = 7 };

static int8_t byte_of(const muc_tensor *tensor, uint64_t i)
{
    return (int8_t)tensor->data[i];
}

/* what a row's sum begins with: its bias less the zero point of what it is multiplied by */
static int32_t offset_of(const muc_tensor *weights, uint64_t row, uint32_t columns, int32_t zero,
                         const muc_tensor *bias, uint64_t at)
{
    uint32_t sum = bias ? muc_load_u32(bias->data + 4 * at) : 0;

    for (uint32_t i = 0; i < columns; i++)
        sum -= (uint32_t)byte_of(weights, row * columns + i) * (uint32_t)zero;
    return (int32_t)sum;
}

/* the infix of functions that the instruction set suits best */
static const char *isa_of(const muc_mcu_lowering *l)
{
    return l->isa == MUC_MCU_ISA_MVE                         ? "mve_"
           : muc_mcu_isa_suits(l->isa, MUC_MCU_ISA_DSP) >= 0 ? "dsp_"
                                                             : "";
}

/* ---- svdf ---- */

static mur_svdf svdf_of(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *time = muc_mcu_input(l, node, 2);
    uint32_t rank = (uint32_t)muc_node_integer(node, MUC_KEY_RANK);

    return (mur_svdf){ .batch = muc_mcu_dim(l, x, 0),
                       .inputs = muc_mcu_dim(l, x, 1),
                       .units = muc_mcu_dim(l, time, 0) / rank,
                       .rank = rank,
                       .memory = muc_mcu_dim(l, time, 1) };
}

static muc_status print_svdf(muc_mcu_lowering *l, const muc_node *node, const mur_svdf *layer)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    uint64_t filters = (uint64_t)layer->units * layer->rank;
    muc_svdf_scales scales;
    int32_t *offsets;

    if (x->quantization) {
        MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, (size_t)filters, &offsets));
        for (uint64_t f = 0; f < filters; f++)
            offsets[f] =
                offset_of(muc_mcu_input(l, node, 1), f, layer->inputs, muc_zero_of(x), NULL, 0);
        muc_mcu_print_words(l, "offsets", offsets, filters);
    }
    muc_text_add(&l->text, "    static const mur_svdf layer = {");
    muc_mcu_print_field(&l->text, "batch", layer->batch);
    muc_mcu_print_field(&l->text, "inputs", layer->inputs);
    muc_mcu_print_field(&l->text, "units", layer->units);
    muc_mcu_print_field(&l->text, "rank", layer->rank);
    muc_mcu_print_field(&l->text, "memory", layer->memory);
    if (x->quantization) {
        (void)muc_scale_svdf(l->graph, node, &scales);
        muc_mcu_print_field(&l->text, "value_mul", scales.feature.mantissa);
        muc_mcu_print_field(&l->text, "value_shift", scales.feature.shift);
        muc_mcu_print_field(&l->text, "unit_mul", scales.time.mantissa);
        muc_mcu_print_field(&l->text, "unit_shift", scales.time.shift);
        muc_mcu_print_field(&l->text, "state_zero", muc_zero_of(muc_mcu_input(l, node, 3)));
        muc_mcu_print_field(&l->text, "zero", muc_zero_of(muc_mcu_output(l, node, 0)));
        muc_text_add(&l->text, "\n    .offsets = offsets,");
    }
    muc_text_add(&l->text, "\n    };\n\n");
    return MUC_OK;
}

bool muc_mcu_takes_svdf(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *feature = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    muc_svdf_scales scales;

    if (!muc_mcu_is_static(l, x) ||
        (muc_mcu_input(l, node, 3)->dtype == MUC_I16 && muc_zero_of(muc_mcu_input(l, node, 3))))
        return false;
    return x->quantization
               ? y->dtype == MUC_I8 && feature->data && muc_scale_svdf(l->graph, node, &scales)
               : x->dtype == MUC_F32;
}

muc_status muc_mcu_write_svdf(muc_mcu_lowering *l, const muc_node *node)
{
    const mur_svdf layer = svdf_of(l, node);
    muc_dtype state = muc_mcu_input(l, node, 3)->dtype;
    const char *isa =
        state == MUC_F32 || (state == MUC_I8 && l->isa != MUC_MCU_ISA_MVE) ? "" : isa_of(l);
    char function[32];

    snprintf(function, sizeof(function), "mur_%ssvdf_%s_run", isa,
             state == MUC_F32  ? "f32"
             : state == MUC_I8 ? "s8"
                               : "s16");
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    l->program->uses_recurrent = true;
    MUC_TRY(muc_mcu_begin_function(l, node));
    MUC_TRY(print_svdf(l, node, &layer));
    muc_text_add(&l->text, "    %s(&layer, a, b, c, %s, d, y);\n", function,
                 muc_mcu_input(l, node, 4) ? "e" : "NULL");
    return muc_mcu_end_function(
        l, 0, (uint64_t)layer.batch * layer.units * layer.rank * (layer.inputs + layer.memory));
}

/* ---- lstm, gru and rnn ---- */

/* the fields that floats have, too */
static mur_recurrent_s8 layer_of(const muc_mcu_lowering *l, const muc_node *node)
{
    const mur_recurrent_f32 like = muc_mcu_recurrent_layer(l, node);

    return (mur_recurrent_s8){ .steps = like.steps,
                               .batch = like.batch,
                               .inputs = like.inputs,
                               .hidden = like.hidden,
                               .directions = like.directions,
                               .backwards = like.backwards,
                               .batch_first = like.batch_first,
                               .linear_before_reset = like.linear_before_reset };
}

bool muc_mcu_takes_recurrent_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *bias = muc_mcu_input(l, node, 3);
    muc_recurrent_scales scales;

    return x->quantization && muc_mcu_is_static(l, x) && muc_mcu_input(l, node, 1)->data &&
           muc_mcu_input(l, node, 2)->data && (!bias || bias->data) &&
           muc_scale_recurrent(l->graph, node, &scales);
}

static bool has_table(const muc_node *node)
{
    return muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_TANH) != MUC_WORD_RELU;
}

static void print_gates(muc_text *text, const char *mul, const char *shift,
                        const muc_multiplier *factors, int gates)
{
    muc_text_add(text, "\n    .%s = {", mul);
    for (int i = 0; i < gates; i++)
        muc_text_add(text, "%s %" PRId32, i ? "," : "", factors[i].mantissa);
    muc_text_add(text, " },\n    .%s = {", shift);
    for (int i = 0; i < gates; i++)
        muc_text_add(text, "%s %" PRId32, i ? "," : "", factors[i].shift);
    muc_text_add(text, " },");
}

static void print_layer(muc_mcu_lowering *l, const muc_node *node, const mur_recurrent_s8 *layer)
{
    const int gates = muc_op_gates(node->op)->count;
    muc_text *text = &l->text;
    muc_recurrent_scales scales;

    (void)muc_scale_recurrent(l->graph, node, &scales);
    muc_text_add(text, "    static const mur_recurrent_s8 layer = {");
    muc_mcu_print_field(text, "steps", layer->steps);
    muc_mcu_print_field(text, "batch", layer->batch);
    muc_mcu_print_field(text, "inputs", layer->inputs);
    muc_mcu_print_field(text, "hidden", layer->hidden);
    muc_mcu_print_field(text, "directions", layer->directions);
    muc_mcu_print_field(text, "backwards", layer->backwards);
    muc_mcu_print_field(text, "batch_first", layer->batch_first);
    muc_mcu_print_field(text, "linear_before_reset", layer->linear_before_reset);
    print_gates(text, "x_mul", "x_shift", scales.in, gates);
    print_gates(text, "h_mul", "h_shift", scales.again, gates);
    muc_mcu_print_field(text, "in_mul", scales.input.mantissa);
    muc_mcu_print_field(text, "in_shift", scales.input.shift);
    muc_mcu_print_field(text, "out_mul", scales.output.mantissa);
    muc_mcu_print_field(text, "out_shift", scales.output.shift);
    muc_mcu_print_field(text, "cell_shift", scales.cell_shift);
    muc_mcu_print_field(text, "clip", scales.clip == INT32_MAX ? INT16_MAX + 1 : scales.clip);
    muc_mcu_print_field(text, "zero", muc_zero_of(muc_mcu_output(l, node, 0)));
    muc_text_add(text, "\n    .x_bias = x_bias,\n    .h_bias = h_bias,%s\n    };\n",
                 has_table(node) ? "\n    .sigmoid = sigmoid," : "");
}

/* the biases of a matrix, `after` rows behind the others in each direction's */
static muc_status print_biases(muc_mcu_lowering *l, const muc_node *node, uint32_t input,
                               const mur_recurrent_s8 *layer, uint64_t rows, int32_t zero)
{
    const muc_tensor *weights = muc_mcu_input(l, node, input), *bias = muc_mcu_input(l, node, 3);
    const uint64_t count = layer->directions * rows;
    int32_t *words;

    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, (size_t)count, &words));
    for (uint64_t row = 0; row < count; row++)
        words[row] = offset_of(weights, row, input == 1 ? layer->inputs : layer->hidden, zero, bias,
                               row + (row / rows + input - 1) * rows);
    muc_mcu_print_words(l, input == 1 ? "x_bias" : "h_bias", words, count);
    return MUC_OK;
}

/* the call, with the peepholes that the function reads */
static void print_call(muc_mcu_lowering *l, const muc_node *node, const char *function)
{
    muc_recurrent_scales scales;

    if (!muc_mcu_input(l, node, PEEPHOLES)) {
        muc_text_add(&l->text, "    %s(&layer, &operands, scratch);\n", function);
        return;
    }
    (void)muc_scale_recurrent(l->graph, node, &scales);
    muc_text_add(&l->text,
                 "    const mur_peepholes_s8 peepholes = { %s, %" PRId32 ", %" PRId32 " };\n\n"
                 "    %s(&layer, &peepholes, &operands, scratch);\n",
                 muc_mcu_input_name(PEEPHOLES), scales.peephole.mantissa, scales.peephole.shift,
                 function);
}

muc_status muc_mcu_write_recurrent_s8(muc_mcu_lowering *l, const muc_node *node)
{
    const mur_recurrent_s8 layer = layer_of(l, node);
    const uint64_t rows = (uint64_t)muc_op_gates(node->op)->count * layer.hidden;
    char function[40];

    snprintf(function, sizeof(function), "mur_%s%s%s_s8_run", isa_of(l), muc_op_get(node->op)->name,
             muc_mcu_input(l, node, PEEPHOLES) ? "_peephole" : "");
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    l->program->uses_recurrent = true;
    MUC_TRY(muc_mcu_begin_function(l, node));
    MUC_TRY(print_biases(l, node, 1, &layer, rows, muc_zero_of(muc_mcu_input(l, node, 0))));
    MUC_TRY(print_biases(l, node, 2, &layer, rows, muc_zero_of(muc_mcu_output(l, node, 0))));
    if (has_table(node))
        muc_mcu_print_sigmoid_table(l);
    print_layer(l, node, &layer);
    muc_mcu_print_recurrent_operands(l, node, "mur_recurrent_s8_operands");
    print_call(l, node, function);
    return muc_mcu_end_function(l,
                                node->op == MUC_OP_GRU    ? mur_gru_s8_scratch_bytes(&layer)
                                : node->op == MUC_OP_LSTM ? mur_lstm_s8_scratch_bytes(&layer)
                                                          : mur_rnn_s8_scratch_bytes(&layer),
                                (uint64_t)layer.steps * layer.batch * layer.directions * rows *
                                    (layer.inputs + layer.hidden));
}
