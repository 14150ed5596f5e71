/* import_training.c - losses of classification, as sums of what gathers choose, and gradients that
 * are more than a recipe: operators of backward passes as ONNX Runtime's training and Deeploy's
 * networks have them. */
#include <string.h>

#include "formats/onnx/onnx_operators.h"

/* ---- losses ---- */

/* The loss of log_prob, a word of the recipe, which `before` it may compute. Classes that do not
 * count become class 0, which is there, of weight 0. */
static muc_status cook_loss(onnx_call *call, const char *before, const char *log_prob)
{
    const Onnx__AttributeProto *ignored;
    const char *reduction, *end;
    bool weighs = onnx_has_input(call, 2);

    MUC_TRY(onnx_attribute(call, "ignore_index", &ignored));
    MUC_TRY(onnx_string(call, "reduction", "mean", &reduction));
    if (strcmp(reduction, "none") == 0)
        end = "identity each";
    else if (strcmp(reduction, "sum") == 0)
        end = "reduce_sum each axes=0.. keep_dims=0";
    else if (strcmp(reduction, "mean") != 0)
        return onnx_fail(call, MUC_UNSUPPORTED, "reduction is '%.60s'", reduction);
    else if (weighs || ignored)
        end = "each = reduce_sum each axes=0.. keep_dims=0; "
              "weights = reduce_sum weights axes=0.. keep_dims=0; div each weights";
    else
        end = "reduce_mean each axes=0.. keep_dims=0";
    return onnx_cook(call,
                     "%s %s indices = reshape %s shape=in1.0,1,in1.1..; "
                     "each = gather_elements %s indices axis=1; each = reshape each shape=in1; "
                     "each = neg each; %s %s %s %s",
                     before,
                     ignored ? "same = equal 1 {@ignore_index}; valid = not same; "
                               "target = where valid 1 {0};"
                             : "",
                     ignored ? "target" : "1", log_prob,
                     !weighs   ? ""
                     : ignored ? "weights = gather 2 target axis=0;"
                               : "weights = gather 2 1 axis=0;",
                     !ignored ? ""
                     : weighs ? "weights = where valid weights {0};"
                              : "weights = where valid {1}~0 {0}~0;",
                     weighs || ignored ? "each = mul each weights;" : "", end);
}

muc_status onnx_import_negative_log_likelihood(onnx_call *call)
{
    return cook_loss(call, "", "0");
}

/* the dimensions that the file gives a value; -1 where it says nothing */
static int64_t declared_rank(const onnx_call *call, const char *name)
{
    const Onnx__GraphProto *graph = call->im->model->graph;
    size_t count = graph->n_output + graph->n_value_info;

    for (size_t i = 0; i < count; i++) {
        const Onnx__ValueInfoProto *info =
            i < graph->n_output ? graph->output[i] : graph->value_info[i - graph->n_output];

        if (strcmp(info->name, name) == 0 && info->type &&
            info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
            info->type->tensor_type->shape)
            return (int64_t)info->type->tensor_type->shape->n_dim;
    }
    return -1;
}

/* Whether a loss is in the form of Deeploy's networks: its one output is log(softmax(x)) of x [N,
 * C]. */
static bool wants_log_probabilities(const onnx_call *call)
{
    const onnx_value *logits = onnx_has_input(call, 0)
                                   ? onnx_scope_find(&call->frame->scope, call->proto->input[0])
                                   : NULL;

    return call->proto->n_output == 1 && logits && logits->tensor != MUC_NO_ID &&
           onnx_tensor(call, logits->tensor)->rank == 2 &&
           declared_rank(call, call->proto->output[0]) == 2;
}

muc_status onnx_import_cross_entropy(onnx_call *call)
{
    if (wants_log_probabilities(call))
        return onnx_cook(call, "log_softmax 0 axis=1 @reduction");
    return cook_loss(call, "log_prob>1 = log_softmax 0 axis=1;", "log_prob");
}

/* (e^log_prob - 1 at the label) dy / N, the gradient of the mean over N images; dy is 1 / N where
 * it is not an input, as in Deeploy's networks */
muc_status onnx_import_cross_entropy_gradient(onnx_call *call)
{
    uint32_t log_prob, images, first = onnx_input_count(call) == 3;
    const char *reduction;

    MUC_TRY(onnx_string(call, "reduction", "mean", &reduction));
    if (onnx_input_count(call) != first + 2 || strcmp(reduction, "mean") != 0)
        return onnx_fail(call, MUC_UNSUPPORTED, "only the mean of log_prob and labels is known");
    MUC_TRY(onnx_input(call, first, &log_prob));
    if (onnx_tensor(call, log_prob)->rank != 2)
        return onnx_fail(call, MUC_UNSUPPORTED, "log_prob has %u dimensions, expected 2",
                         onnx_tensor(call, log_prob)->rank);
    MUC_TRY(onnx_constant_dim(call, log_prob, 0, &images));
    return onnx_cook(call,
                     "p = exp %u; label = one_hot %u values{0,1}:f32 axis=1 size=in%u.1; "
                     "d = sub p label; %smul d {%.17g}:f32%s",
                     first, first + 1, first, first ? "d = " : "",
                     1 / (first ? (double)images : (double)images * images),
                     first ? "; mul d 0" : "");
}

/* With h = (x - mean) / deviation and g = dy scale: dx = (g - mean(g) - h mean(g h)) / deviation,
 * dscale = sum of dy h, dbias = sum of dy. Inputs dy, x, scale, and mean and 1 / deviation (ONNX
 * Runtime) or the bias (Deeploy). */
muc_status onnx_import_layer_norm_gradient(onnx_call *call)
{
    bool given = onnx_has_input(call, 4);

    return onnx_cook(
        call,
        "%s h = mul rest %s @stash_type @epsilon; "
        ">2 = reduce_sum 0 axes=0..$axis:-1 keep_dims=0; part = mul 0 h; "
        ">1 = reduce_sum part axes=0..$axis:-1 keep_dims=0; g = mul 0 2; part = mul g h; "
        "part = reduce_mean part axes=$axis:-1.. keep_dims=1; part = mul h part; "
        "part = sub g part; g = reduce_mean g axes=$axis:-1.. keep_dims=1; part = sub part g; "
        "mul part %s",
        given ? "rest = sub 1 3;"
              : "centre = reduce_mean 1 axes=$axis:-1.. keep_dims=1; rest = sub 1 centre; "
                "inverse = mul rest rest; "
                "inverse = reduce_mean inverse axes=$axis:-1.. keep_dims=1; "
                "inverse = add inverse {@epsilon:1e-5f}; inverse = sqrt inverse; "
                "inverse = reciprocal inverse;",
        given ? "4" : "inverse", given ? "4" : "inverse");
}
