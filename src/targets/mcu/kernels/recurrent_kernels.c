/* recurrent_kernels.c - RNN, GRU and LSTM by the runtime's kernel. */
#include <inttypes.h>

#include "mur_recurrent.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/runtime_files.h"

bool muc_mcu_takes_recurrent(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_input(l, node, 0)->dtype == MUC_F32 &&
           muc_mcu_is_static(l, muc_mcu_input(l, node, 0));
}

mur_recurrent_f32 muc_mcu_recurrent_layer(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *r = muc_mcu_input(l, node, 2);
    bool first = muc_node_integer_or(node, MUC_KEY_BATCH_FIRST, 0) == 1;
    muc_word direction = muc_node_word_or(node, MUC_KEY_DIRECTION, MUC_WORD_FORWARD);

    return (mur_recurrent_f32){
        .steps = muc_mcu_dim(l, x, first ? 1 : 0),
        .batch = muc_mcu_dim(l, x, first ? 0 : 1),
        .inputs = muc_mcu_dim(l, x, 2),
        .hidden = muc_mcu_dim(l, r, 2),
        .gates = (uint8_t)(muc_mcu_dim(l, r, 1) / muc_mcu_dim(l, r, 2)),
        .directions = direction == MUC_WORD_BIDIRECTIONAL ? 2 : 1,
        .backwards = direction == MUC_WORD_REVERSE,
        .batch_first = first,
        .relu = muc_node_word_or(node, MUC_KEY_MODE, MUC_WORD_TANH) == MUC_WORD_RELU,
        .linear_before_reset = (uint8_t)muc_node_integer_or(node, MUC_KEY_LINEAR_BEFORE_RESET, 0),
        .cell_clip = (float)muc_node_real_or(node, MUC_KEY_CELL_CLIP, 0),
    };
}

/* biases of integers are in the layer, peepholes beside it */
void muc_mcu_print_recurrent_operands(muc_mcu_lowering *l, const muc_node *node, const char *type)
{
    static const char *const inputs[] = { "x", "w", "r", "bias", "lengths", "h", "c", "peephole" };
    static const char *const outputs[] = { "y", "last_h", "last_c" };
    /* a gru's state of 16 bits is called as an lstm's */
    const uint32_t by = node->op == MUC_OP_GRU && muc_mcu_input(l, node, 0)->quantization;
    const bool integers = muc_mcu_input(l, node, 0)->quantization != NULL;
    muc_text *text = &l->text;

    muc_text_add(text, "    const %s operands = {\n", type);
    for (uint32_t i = 0; i < node->input_count; i++)
        if (muc_mcu_input(l, node, i) && !((i == 3 || i == 7) && integers))
            muc_text_add(text, "        .%s = %s,\n", inputs[i + (i == 5) * by],
                         muc_mcu_input_name(i));
    for (uint32_t i = 0; i < node->output_count; i++)
        muc_text_add(text, "        .%s = %s,\n", outputs[i + (i == 1) * by],
                     muc_mcu_output_name(i));
    muc_text_add(text, "    };\n\n");
}

muc_status muc_mcu_write_recurrent(muc_mcu_lowering *l, const muc_node *node)
{
    static const char function[] = "mur_recurrent_f32_run";
    const mur_recurrent_f32 layer = muc_mcu_recurrent_layer(l, node);
    muc_text *text = &l->text;

    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    l->program->uses_recurrent = true;
    MUC_TRY(muc_mcu_begin_function(l, node));
    muc_text_add(text,
                 "    static const mur_recurrent_f32 layer = {\n"
                 "        .steps = %" PRIu32 ", .batch = %" PRIu32 ", .inputs = %" PRIu32
                 ", .hidden = %" PRIu32 ",\n"
                 "        .gates = %u, .directions = %u, .backwards = %u, .batch_first = %u,\n"
                 "        .relu = %u, .linear_before_reset = %u,\n",
                 layer.steps, layer.batch, layer.inputs, layer.hidden, layer.gates,
                 layer.directions, layer.backwards, layer.batch_first, layer.relu,
                 layer.linear_before_reset);
    if (layer.cell_clip > 0) {
        muc_text_add(text, "        .cell_clip = ");
        muc_mcu_print_real(text, (double)layer.cell_clip, false);
        muc_text_add(text, ",\n");
    }
    muc_text_add(text, "    };\n");
    muc_mcu_print_recurrent_operands(l, node, "mur_recurrent_operands");
    muc_text_add(text, "    %s(&layer, &operands, scratch);\n", function);
    return muc_mcu_end_function(l, mur_recurrent_f32_scratch_bytes(&layer),
                                (uint64_t)layer.steps * layer.batch * layer.directions *
                                    layer.gates * layer.hidden * (layer.inputs + layer.hidden));
}
