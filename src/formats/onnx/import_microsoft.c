/* import_microsoft.c - ONNX Runtime's operators of domain com.microsoft: those that its quantizers
 * write, and those that its optimisations make of several. A quantized one is ONNX's own between
 * dequantized operands and a quantization, which is how it is defined. */
#include <string.h>

#include "formats/onnx/onnx_operators.h"

enum { MOST_OPERANDS = 64 };

/* ---- an operator of ONNX in the place of another ---- */

/* a name that no value has */
static muc_status fresh(onnx_call *call, const char *suffix, uint32_t i, const char **out)
{
    const char *output = onnx_has_output(call, 0) ? call->proto->output[0] : "";

    for (uint32_t n = 0;; n++) {
        MUC_TRY(muc_arena_format(call->im->ctx, &call->im->arena, out, "%s/%s%u.%u", output, suffix,
                                 i, n));
        if (!onnx_scope_find(&call->frame->scope, *out))
            return MUC_OK;
    }
}

/* The result of ONNX's operator `op` of these tensors and the node's attributes: *out, or with out
 * NULL the node's output. */
static muc_status import_inner(onnx_call *call, const char *op, int64_t version,
                               const uint32_t *tensors, uint32_t count, uint32_t *out)
{
    Onnx__NodeProto proto = *call->proto;
    char *names[MOST_OPERANDS], *output = NULL;
    onnx_call inner = *call;
    const char *name;
    const onnx_value *result;

    for (uint32_t i = 0; i < count; i++) {
        onnx_value *value;

        MUC_TRY(fresh(call, "operand", i, &name));
        MUC_TRY(onnx_scope_add(call->im, &call->frame->scope, name, &value));
        value->tensor = tensors[i];
        names[i] = (char *)(uintptr_t)name;
    }
    if (out) {
        MUC_TRY(fresh(call, "result", 0, &name));
        output = (char *)(uintptr_t)name;
        proto.output = &output;
    }
    proto.domain = (char *)(uintptr_t) "";
    proto.op_type = (char *)(uintptr_t)op;
    proto.input = names;
    proto.n_input = count;
    proto.n_output = 1;
    inner.proto = &proto;
    inner.version = version;
    MUC_TRY(onnx_find_row(&inner));
    MUC_TRY(inner.row->import(&inner));
    call->used |= inner.used;
    call->steps = inner.steps > call->steps ? inner.steps : call->steps;
    if (!out)
        return MUC_OK;
    result = onnx_scope_find(&call->frame->scope, output);
    if (!result || result->tensor == MUC_NO_ID)
        return onnx_fail(call, MUC_BUG, "no result of %s", op);
    *out = result->tensor;
    return MUC_OK;
}

/* ---- between steps ---- */

/* "axis=1" where the tensor has more than one element along it; else "" */
static muc_status axis_of(onnx_call *call, uint32_t tensor, uint32_t axis, const char **out)
{
    uint32_t size = 1;

    *out = "";
    if (onnx_tensor(call, tensor)->rank > 0)
        MUC_TRY(onnx_constant_dim(call, tensor, 0, &size));
    return size > 1 ? muc_arena_format(call->im->ctx, &call->im->arena, out, "axis=%u", axis)
                    : MUC_OK;
}

/* input i as real numbers, by the scale and zero point behind it, which may differ along axis */
static muc_status dequantize(onnx_call *call, uint32_t i, uint32_t axis, uint32_t *out)
{
    const char *along;
    uint32_t scale;

    MUC_TRY(onnx_input(call, i + 1, &scale));
    MUC_TRY(axis_of(call, scale, axis, &along));
    return onnx_make(call, NULL, 0, out, "dequantize_linear %u %u %u? %s", i, i + 1, i + 2, along);
}

/* output 0 is x by the scale and zero point at inputs i and i + 1 */
static muc_status quantize(onnx_call *call, uint32_t x, uint32_t i)
{
    uint32_t inputs[3] = { x };

    MUC_TRY(onnx_input(call, i, &inputs[1]));
    MUC_TRY(onnx_input_or_none(call, i + 1, &inputs[2]));
    return onnx_emit(call, MUC_OP_QUANTIZE_LINEAR, inputs, 3, NULL, 1);
}

/* channels last is the layout of ONNX Runtime's own transformations */
static muc_status refuse_channels_last(onnx_call *call)
{
    int64_t last;

    MUC_TRY(onnx_integer(call, "channels_last", 0, &last));
    return last ? onnx_fail(call, MUC_UNSUPPORTED, "channels_last is 1, expected 0") : MUC_OK;
}

/* QLinearAdd, QLinearMul, pools and functions: operands of three inputs each, then the output's
 * scale and zero point */
muc_status onnx_import_qlinear(onnx_call *call)
{
    const char *op = call->proto->op_type + strlen("QLinear");
    uint32_t operands = strcmp(op, "Add") == 0 || strcmp(op, "Mul") == 0 ? 2 : 1;
    uint32_t tensors[2], x;
    int64_t version = NEWEST;

    if (onnx_input_count(call) < 3 * operands + 1)
        return onnx_fail(call, MUC_MALFORMED, "%u inputs, expected %u", onnx_input_count(call),
                         3 * operands + 2);
    if (strstr(op, "Pool"))
        MUC_TRY(refuse_channels_last(call));
    if (strcmp(op, "Softmax") == 0)
        MUC_TRY(onnx_integer(call, "opset", 13, &version));
    for (uint32_t i = 0; i < operands; i++)
        MUC_TRY(dequantize(call, 3 * i, 0, &tensors[i]));
    if (strcmp(op, "ReduceMean") == 0)
        version = 13; /* axes are an attribute */
    MUC_TRY(import_inner(call, op, version, tensors, operands, &x));
    return quantize(call, x, 3 * operands);
}

/* the output's scale and zero point, then three inputs an operand */
muc_status onnx_import_qlinear_concat(onnx_call *call)
{
    uint32_t count = (onnx_input_count(call) - 2) / 3, tensors[MOST_OPERANDS], x;

    if (onnx_input_count(call) < 5 || onnx_input_count(call) != 2 + 3 * count ||
        count > MOST_OPERANDS)
        return onnx_fail(call, MUC_UNSUPPORTED, "%u inputs", onnx_input_count(call));
    for (uint32_t i = 0; i < count; i++)
        MUC_TRY(dequantize(call, 2 + 3 * i, 0, &tensors[i]));
    MUC_TRY(import_inner(call, "Concat", NEWEST, tensors, count, &x));
    return quantize(call, x, 0);
}

/* a, b, i32 sums c in the product's scale, the output's scale and zero point or real numbers */
muc_status onnx_import_qgemm(onnx_call *call)
{
    uint32_t tensors[3], ids[2], bias, scale, x, count = 2;
    int64_t transposed;
    const char *along;
    double alpha;

    if (onnx_input_count(call) < 6)
        return onnx_fail(call, MUC_MALFORMED, "%u inputs, expected 9", onnx_input_count(call));
    MUC_TRY(onnx_integer(call, "transB", 0, &transposed));
    MUC_TRY(onnx_real(call, "alpha", 1, &alpha));
    if (alpha != 1)
        return onnx_fail(call, MUC_UNSUPPORTED, "alpha is %g", alpha);
    MUC_TRY(dequantize(call, 0, 0, &tensors[0]));
    MUC_TRY(dequantize(call, 3, transposed ? 0 : 1, &tensors[1]));
    if (onnx_has_input(call, 6)) {
        MUC_TRY(onnx_input(call, 6, &bias));
        MUC_TRY(onnx_make(call, NULL, 0, &scale, "mul 1 4"));
        MUC_TRY(axis_of(call, scale, onnx_tensor(call, bias)->rank - 1, &along));
        ids[0] = bias;
        ids[1] = scale;
        MUC_TRY(onnx_make(call, ids, 2, &tensors[2], "dequantize_linear 0 1 %s", along));
        count = 3;
    }
    if (!onnx_has_input(call, 7))
        return import_inner(call, "Gemm", NEWEST, tensors, count, NULL);
    MUC_TRY(import_inner(call, "Gemm", NEWEST, tensors, count, &x));
    return quantize(call, x, 7);
}

/* ---- products of integers as real numbers ---- */

/* x, which is quantized when it comes, b, its scale and zero point, bias */
muc_status onnx_import_dynamic_matmul(onnx_call *call)
{
    uint32_t ids[7], x, bias = onnx_has_input(call, 4);
    muc_new_node node = {
        .op = MUC_OP_DYNAMIC_QUANTIZE_LINEAR, .input_count = 1, .inputs = &x, .output_count = 3
    };

    MUC_TRY(onnx_input(call, 0, &x));
    for (uint32_t i = 1; i < 5; i++)
        MUC_TRY(onnx_input_or_none(call, i, &ids[2 + i]));
    MUC_TRY(fresh(call, "bytes", 0, &node.name));
    MUC_TRY(muc_graph_add(call->im->ctx, call->im->graph, &node, ids)); /* bytes, scale, zero */
    return onnx_make(call, ids, MUC_COUNT(ids), NULL,
                     "sums = matmul_integer 0 3 2 5?; sums = cast sums to=f32; scale = mul 1 4; %s",
                     bias ? "sums = mul sums scale; add sums 6" : "mul sums scale");
}

/* ---- what optimisations make ---- */

/* vectors have nothing to transpose */
muc_status onnx_import_fused_matmul(onnx_call *call)
{
    uint32_t ids[2], is_matrix[2];
    double alpha;

    for (uint32_t i = 0; i < 2; i++) {
        MUC_TRY(onnx_input(call, i, &ids[i]));
        is_matrix[i] = onnx_tensor(call, ids[i])->rank > 1;
    }
    MUC_TRY(onnx_real(call, "alpha", 1, &alpha));
    return onnx_cook(call, "%s %s %s %s %s @transA @transB @transBatchA==0 @transBatchB==0 %s",
                     is_matrix[0] ? "?transA a = transpose 0 perm=0..-2,-1,-2;" : "",
                     is_matrix[1] ? "?transB b = transpose 1 perm=0..-2,-1,-2;" : "",
                     alpha == 1 ? "matmul" : "product = matmul", is_matrix[0] ? "a" : "0",
                     is_matrix[1] ? "b" : "1", alpha == 1 ? "" : "; mul product {@alpha}");
}

/* a convolution and a function of its result */
muc_status onnx_import_fused_conv(onnx_call *call)
{
    static const char *const functions[] = { "Relu", "Sigmoid", "Tanh" };
    uint32_t tensors[3], x, count = onnx_has_input(call, 2) ? 3 : 2;
    const char *activation;

    if (onnx_has_input(call, 3))
        return onnx_fail(call, MUC_UNSUPPORTED, "it adds input 3, which muc does not read");
    for (uint32_t i = 0; i < count; i++)
        MUC_TRY(onnx_input(call, i, &tensors[i]));
    MUC_TRY(onnx_string(call, "activation", "", &activation));
    if (!activation[0])
        return import_inner(call, "Conv", NEWEST, tensors, count, NULL);
    MUC_TRY(import_inner(call, "Conv", NEWEST, tensors, count, &x));
    for (size_t i = 0; i < MUC_COUNT(functions); i++)
        if (strcmp(activation, functions[i]) == 0)
            return import_inner(call, activation, NEWEST, &x, 1, NULL);
    return onnx_fail(call, MUC_UNSUPPORTED, "activation '%.40s'", activation);
}

/* x + skip (+ bias), normalised; output 3 is the sum. Simplified: by the root of squares. */
muc_status onnx_import_skip_norm(onnx_call *call)
{
    bool simple = strstr(call->proto->op_type, "Simplified") != NULL;

    if (onnx_has_output(call, 1) || onnx_has_output(call, 2))
        return onnx_fail(call, MUC_UNSUPPORTED,
                         "its outputs 1 and 2, mean and deviation, are not computed");
    return onnx_cook(call, "%s . sum 2 %s axis=-1 epsilon=@epsilon:1e-12",
                     !onnx_has_input(call, simple ? 3 : 4) ? "sum>3 = add 0 1;"
                     : simple                              ? "sum = add 0 1; sum>3 = add sum 3;"
                                                           : "sum = add 0 1; sum>3 = add sum 4;",
                     !simple && onnx_has_input(call, 3) ? "3" : "");
}
