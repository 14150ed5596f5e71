/* import_training.c - steps of training that Deeploy's networks have, in the form that they have:
 * a loss gives the logarithms of the probabilities alone, and its gradient starts at 1 / N. */
#include <string.h>

#include "formats/onnx/operators.h"

/* the dimensions that the file gives a value; -1 where it says nothing */
static int64_t declared_rank(const onnx_call *call, const char *name)
{
    const Onnx__GraphProto *graph = call->im->model->graph;
    size_t count = graph->n_output + graph->n_value_info;

    for (size_t i = 0; i < count; i++) {
        const Onnx__ValueInfoProto *info =
            i < graph->n_output ? graph->output[i] : graph->value_info[i - graph->n_output];

        if (info->name && strcmp(info->name, name) == 0 && info->type &&
            info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
            info->type->tensor_type->shape)
            return (int64_t)info->type->tensor_type->shape->n_dim;
    }
    return -1;
}

bool onnx_wants_log_probabilities(const onnx_call *call)
{
    const onnx_value *logits = onnx_has_input(call, 0)
                                   ? onnx_scope_find(&call->frame->scope, call->proto->input[0])
                                   : NULL;

    return call->proto->n_output == 1 && logits && logits->tensor != MUC_NO_ID &&
           onnx_tensor(call, logits->tensor)->rank == 2 &&
           declared_rank(call, call->proto->output[0]) == 2;
}

muc_status onnx_import_log_probabilities(onnx_call *call)
{
    muc_attributes attributes = { .count = 0 };
    const char *reduction;
    uint32_t logits;

    MUC_TRY(onnx_input(call, 0, &logits));
    MUC_TRY(onnx_string(call, "reduction", "mean", &reduction));
    muc_attributes_set(&attributes, MUC_KEY_AXIS, 1);
    return onnx_emit(call, MUC_OP_LOG_SOFTMAX, &logits, 1, &attributes, 1);
}

/* (e^log_prob - 1 at the label) dy / N, the gradient of the mean over N images; dy is 1 / N where
 * it is no input, as in Deeploy's networks */
muc_status onnx_import_cross_entropy_gradient(onnx_call *call)
{
    muc_attributes attributes = { .count = 0 };
    uint32_t operands[2], one_hot[2], images, classes, two = 2, first = onnx_input_count(call) == 3;
    const char *reduction;
    double factor;
    float *off_on;

    MUC_TRY(onnx_string(call, "reduction", "mean", &reduction));
    if (onnx_input_count(call) != first + 2 || strcmp(reduction, "mean") != 0)
        return onnx_fail(call, MUC_UNSUPPORTED, "only the mean of log_prob and labels is known");
    MUC_TRY(onnx_input(call, first, &operands[0]));
    MUC_TRY(onnx_input(call, first + 1, &one_hot[0]));
    if (onnx_tensor(call, operands[0])->rank != 2)
        return onnx_fail(call, MUC_UNSUPPORTED, "log_prob has %u dimensions, expected 2",
                         onnx_tensor(call, operands[0])->rank);
    MUC_TRY(onnx_constant_dim(call, operands[0], 0, &images));
    MUC_TRY(onnx_constant_dim(call, operands[0], 1, &classes));
    factor = 1 / (first ? (double)images : (double)images * images);
    MUC_TRY(MUC_ARENA_NEW(call->im->ctx, &call->im->network->arena, two, &off_on));
    off_on[1] = 1;
    MUC_TRY(onnx_constant(call, NULL, MUC_F32, 1, &two, (const uint8_t *)off_on,
                          two * sizeof(*off_on), &one_hot[1]));
    muc_attributes_set(&attributes, MUC_KEY_AXIS, 1);
    muc_attributes_set_expr(&attributes, MUC_KEY_SIZE,
                            muc_expr_const(call->im->graph->pool, classes));
    MUC_TRY(onnx_step(call, MUC_OP_EXP, operands, 1, NULL, &operands[0]));
    MUC_TRY(onnx_step(call, MUC_OP_ONE_HOT, one_hot, 2, &attributes, &operands[1]));
    MUC_TRY(onnx_step(call, MUC_OP_SUB, operands, 2, NULL, &operands[0]));
    MUC_TRY(onnx_scalar(call, MUC_F32, factor, &operands[1]));
    if (first) {
        MUC_TRY(onnx_step2(call, MUC_OP_MUL, operands[0], operands[1], &operands[0]));
        MUC_TRY(onnx_input(call, 0, &operands[1]));
    }
    return onnx_emit(call, MUC_OP_MUL, operands, 2, NULL, 1);
}
