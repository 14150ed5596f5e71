/* import_math.c - imports dropout, softmax, reductions, batch norms and quantization. */
#include <inttypes.h>
#include <string.h>

#include "formats/onnx/onnx_operators.h"

/* Nothing is dropped where a network is used, or where the ratio is 0. */
muc_status onnx_import_dropout(onnx_call *call)
{
    int64_t seed, training = 0;
    double ratio;

    MUC_TRY(onnx_integer(call, "seed", 0, &seed));
    MUC_TRY(onnx_integer(call, "is_test", 1, &training));
    MUC_TRY(onnx_real(call, "ratio", 0.5, &ratio));
    training = !training;
    if (onnx_has_input(call, 2)) {
        MUC_TRY(onnx_known_integer(call, 2, &training));
        if (training && onnx_has_input(call, 1))
            MUC_TRY(onnx_known_real(call, 1, &ratio));
    }
    if (training && ratio != 0)
        return onnx_fail(call, MUC_UNSUPPORTED, "dropout while training is random");
    return onnx_cook(call, ">1 = expand {1}:%s shape=in0; identity 0",
                     call->version >= 10 ? "bool" : "f32");
}

/* ---- along axes ---- */

/* QuantLib's exports say an old version and mean the last dimension */
static bool is_quantlib(const onnx_call *call)
{
    for (size_t i = 0; i < call->frame->opset_count; i++)
        if (strcmp(call->frame->opsets[i]->domain, "PACTOps") == 0)
            return true;
    return false;
}

/* Before version 13 all dimensions from axis on are one. */
muc_status onnx_import_softmax(onnx_call *call)
{
    bool flat = call->version < 13 && !is_quantlib(call);
    uint32_t x, rank;
    int64_t axis;

    MUC_TRY(onnx_input(call, 0, &x));
    rank = onnx_tensor(call, x)->rank;
    MUC_TRY(onnx_integer(call, "axis", flat ? 1 : -1, &axis));
    MUC_TRY(muc_import_axis(onnx_subject(call), axis, rank, &axis));
    if (!flat || axis == rank - 1)
        return onnx_cook(call, ". 0 axis=%" PRId64, axis);
    return onnx_cook(call,
                     "flat = reshape 0 shape=*in0.0..%" PRId64 ",*in0.%" PRId64
                     "..; y = . flat axis=1; "
                     "reshape y shape=in0",
                     axis, axis);
}

/* without axes all of them, or none */
muc_status onnx_import_reduce(onnx_call *call)
{
    const int64_t *axes;
    int64_t no_op;
    size_t count;

    MUC_TRY(onnx_integer(call, "noop_with_empty_axes", 0, &no_op));
    MUC_TRY(onnx_operand_integers(call, "axes", 1, &axes, &count));
    return onnx_cook(call, ". 0 axes=%s keep_dims=@keepdims:1",
                     count   ? "@axes#1"
                     : no_op ? ""
                             : "0..");
}

/* ---- norms ---- */

/* while training with the moments of x, which running ones follow */
muc_status onnx_import_batch_norm(onnx_call *call)
{
    int64_t training;
    double momentum;

    MUC_TRY(onnx_integer(call, "training_mode", 0, &training));
    MUC_TRY(onnx_real(call, "momentum", (double)0.9f, &momentum));
    if (!training && call->version < 14 && onnx_has_output(call, 1))
        return onnx_fail(call, MUC_UNSUPPORTED, "results of training are asked for");
    if (!training)
        return onnx_cook(call, "batch_norm 0 1 2 3 4 epsilon=@epsilon:1e-5f @spatial==1");
    return onnx_cook(call,
                     "mean = reduce_mean 0 axes=0,2.. keep_dims=0; "
                     "centre = reduce_mean 0 axes=0,2.. keep_dims=1; rest = sub 0 centre; "
                     "rest = mul rest rest; variance = reduce_mean rest axes=0,2.. keep_dims=0; "
                     "old = mul 3 {%.17g}; new = mul mean {%.17g}; >1 = add old new; "
                     "old = mul 4 {%.17g}; new = mul variance {%.17g}; >2 = add old new; "
                     "batch_norm 0 1 2 mean variance epsilon=@epsilon:1e-5f @spatial==1",
                     momentum, 1 - momentum, momentum, 1 - momentum);
}

/* ---- quantized ---- */

/* An axis only where there is more than one scale. */
muc_status onnx_import_quantize_linear(onnx_call *call)
{
    uint32_t scale;

    MUC_TRY(onnx_input(call, 1, &scale));
    return onnx_cook(call, ". * %s to=@output_dtype @axis @block_size==0 @saturate",
                     onnx_tensor(call, scale)->rank > 0 ? "axis=@axis:1" : "");
}
