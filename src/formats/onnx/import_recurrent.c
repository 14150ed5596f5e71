/* import_recurrent.c - RNN, GRU and LSTM with the functions that they have where none is named. */
#include <string.h>

#include "formats/onnx/onnx_operators.h"

/* The functions of one direction: a layer of 1, 3 or 4 gates has 1, 2 or 3. That of the one gate
 * may be Relu, *relu tells. */
static muc_status expect_functions(onnx_call *call, bool *relu)
{
    static const char *const defaults[][3] = { { "Tanh", NULL, NULL },
                                               { "Sigmoid", "Tanh", NULL },
                                               { "Sigmoid", "Tanh", "Tanh" } };
    size_t kind = muc_op_gates(call->row->op)->count / 2, each = kind + 1;
    const Onnx__AttributeProto *attribute;

    *relu = false;
    MUC_TRY(onnx_attribute(call, "activations", &attribute));
    for (size_t i = 0; attribute && i < attribute->n_strings; i++) {
        const ProtobufCBinaryData *s = &attribute->strings[i];
        const char *expected = defaults[kind][i % each];
        bool is_relu = kind == 0 && s->len == 4 && muc_are_alike((const char *)s->data, "Relu", 4);

        if ((i > 0 && is_relu != *relu) ||
            (!is_relu && (s->len != strlen(expected) ||
                          !muc_are_alike((const char *)s->data, expected, s->len))))
            return onnx_fail(call, MUC_UNSUPPORTED, "activation %zu is '%.*s', expected %s", i,
                             (int)(s->len < 60 ? s->len : 60), (const char *)s->data, expected);
        *relu = is_relu;
    }
    return MUC_OK;
}

/* r's shape has the hidden size */
muc_status onnx_import_recurrent(onnx_call *call)
{
    bool relu;

    MUC_TRY(expect_functions(call, &relu));
    return onnx_cook(call,
                     ". * direction=@direction:forward batch_first=@layout/0 @hidden_size "
                     "@input_forget==0 linear_before_reset=@linear_before_reset/0 %s",
                     relu ? "mode=relu" : "");
}
