/* import_recurrent.c - RNN, GRU and LSTM with the functions that they have where none is named. */
#include <string.h>

#include "formats/onnx/onnx_operators.h"

/* the functions of one direction; a plain RNN's may be Relu, *relu tells */
static muc_status expect_functions(onnx_call *call, bool *relu)
{
    static const char *const defaults[][3] = { { "Tanh", NULL, NULL },
                                               { "Sigmoid", "Tanh", NULL },
                                               { "Sigmoid", "Tanh", "Tanh" } };
    muc_op op = call->row->op;
    size_t kind = op == MUC_OP_RNN ? 0 : op == MUC_OP_GRU ? 1 : 2, each = kind + 1;
    const Onnx__AttributeProto *attribute;

    *relu = false;
    MUC_TRY(onnx_attribute(call, "activations", &attribute));
    for (size_t i = 0; attribute && i < attribute->n_strings; i++) {
        const ProtobufCBinaryData *s = &attribute->strings[i];
        const char *expected = defaults[kind][i % each];
        bool is_relu =
            op == MUC_OP_RNN && s->len == 4 && muc_are_alike((const char *)s->data, "Relu", 4);

        if ((i > 0 && is_relu != *relu) ||
            (!is_relu && (s->len != strlen(expected) ||
                          !muc_are_alike((const char *)s->data, expected, s->len))))
            return onnx_fail(call, MUC_UNSUPPORTED, "activation %zu is '%.*s', expected %s", i,
                             (int)(s->len < 60 ? s->len : 60), (const char *)s->data, expected);
        *relu = is_relu;
    }
    return MUC_OK;
}

/* attributes of which one value alone is read */
static muc_status expect_plain(onnx_call *call)
{
    static const char *const absent[] = { "clip", "activation_alpha", "activation_beta" };
    const Onnx__AttributeProto *attribute;
    int64_t value;

    for (size_t i = 0; i < MUC_COUNT(absent); i++) {
        MUC_TRY(onnx_attribute(call, absent[i], &attribute));
        if (attribute)
            return onnx_fail(call, MUC_UNSUPPORTED, "attribute '%s' is not read", absent[i]);
    }
    MUC_TRY(onnx_integer(call, "hidden_size", 0, &value)); /* r's shape has it */
    if (call->row->op != MUC_OP_LSTM)
        return MUC_OK;
    MUC_TRY(onnx_integer(call, "input_forget", 0, &value));
    return value ? onnx_fail(call, MUC_UNSUPPORTED, "coupled gates (input_forget) are not read")
                 : MUC_OK;
}

muc_status onnx_import_recurrent(onnx_call *call)
{
    bool relu;

    MUC_TRY(expect_plain(call));
    MUC_TRY(expect_functions(call, &relu));
    return onnx_cook(call, ". * direction=@direction:forward batch_first=@layout/0 %s%s",
                     relu ? "mode=relu" : "",
                     call->row->op == MUC_OP_GRU ? "linear_before_reset=@linear_before_reset/0"
                                                 : "");
}
