/* import_math.c - operators on elements and along axes. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/onnx/onnx_operators.h"

muc_status onnx_import_clip(onnx_call *call)
{
    double bounds[2];
    uint32_t inputs[3];

    MUC_TRY(onnx_input(call, 0, &inputs[0]));
    if (call->version >= 11) {
        MUC_TRY(onnx_input_or_none(call, 1, &inputs[1]));
        MUC_TRY(onnx_input_or_none(call, 2, &inputs[2]));
        return onnx_emit(call, MUC_OP_CLIP, inputs, 3, NULL, 1);
    }
    MUC_TRY(onnx_real(call, "min", -(double)FLT_MAX, &bounds[0]));
    MUC_TRY(onnx_real(call, "max", (double)FLT_MAX, &bounds[1]));
    for (int i = 0; i < 2; i++) {
        inputs[i + 1] = MUC_NO_ID;
        if (fabs(bounds[i]) < (double)FLT_MAX)
            MUC_TRY(
                onnx_scalar(call, onnx_tensor(call, inputs[0])->dtype, bounds[i], &inputs[i + 1]));
    }
    return onnx_emit(call, MUC_OP_CLIP, inputs, 3, NULL, 1);
}

/* true for every element of a tensor's shape */
static muc_status bind_mask(onnx_call *call, uint32_t like, uint32_t output)
{
    onnx_shape shape = onnx_shape_of(call, like);
    muc_attributes a = { .count = 0 };
    uint32_t one, mask;

    if (!onnx_has_output(call, output))
        return MUC_OK;
    MUC_TRY(onnx_scalar(call, call->version >= 10 ? MUC_BOOL : onnx_tensor(call, like)->dtype, 1,
                        &one));
    muc_attributes_set_exprs(&a, MUC_KEY_SHAPE, shape.dims, shape.rank);
    MUC_TRY(onnx_step(call, MUC_OP_EXPAND, &one, 1, &a, &mask));
    return onnx_bind(call, output, mask);
}

/* Nothing is dropped where a network is used, or where the ratio is 0. */
muc_status onnx_import_dropout(onnx_call *call)
{
    int64_t seed, training = 0;
    double ratio;
    uint32_t x;

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
    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(onnx_emit(call, MUC_OP_IDENTITY, &x, 1, NULL, 1));
    return bind_mask(call, x, 1);
}

muc_status onnx_exchange_last(onnx_call *call, uint32_t *tensor)
{
    uint32_t rank = onnx_tensor(call, *tensor)->rank;
    muc_attributes a = { .count = 0 };
    int64_t perm[MUC_GRAPH_MAX_RANK];

    if (rank < 2)
        return onnx_fail(call, MUC_MALFORMED, "a vector is transposed");
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    muc_attributes_set_integers(&a, MUC_KEY_PERM, perm, rank);
    return onnx_step(call, MUC_OP_TRANSPOSE, tensor, 1, &a, tensor);
}

/* Matrices as they are; of stacks of them, which some exporters give, the product and a sum. */
muc_status onnx_import_gemm(onnx_call *call)
{
    int64_t transposes[2];
    double alpha, beta;
    uint32_t x, *inputs, count;

    MUC_TRY(onnx_input(call, 0, &x));
    if (onnx_tensor(call, x)->rank <= 2)
        return onnx_cook(call,
                         ". * alpha=@alpha beta=@beta transpose_a=@transA transpose_b=@transB");
    MUC_TRY(onnx_all_inputs(call, &inputs, &count));
    MUC_TRY(onnx_integer(call, "transA", 0, &transposes[0]));
    MUC_TRY(onnx_integer(call, "transB", 0, &transposes[1]));
    MUC_TRY(onnx_real(call, "alpha", 1, &alpha));
    MUC_TRY(onnx_real(call, "beta", 1, &beta));
    if (count < 2 || alpha != 1 || beta != 1)
        return onnx_fail(call, MUC_UNSUPPORTED, "a stack of matrices with alpha or beta");
    for (uint32_t i = 0; i < 2; i++)
        if (transposes[i])
            MUC_TRY(onnx_exchange_last(call, &inputs[i]));
    if (count == 2 || inputs[2] == MUC_NO_ID)
        return onnx_emit(call, MUC_OP_MATMUL, inputs, 2, NULL, 1);
    MUC_TRY(onnx_step(call, MUC_OP_MATMUL, inputs, 2, NULL, &inputs[1]));
    return onnx_emit(call, MUC_OP_ADD, &inputs[1], 2, NULL, 1);
}

/* ---- along axes ---- */

/* QuantLib's exports say an old version and mean the last dimension */
static bool is_quantlib(const onnx_call *call)
{
    for (size_t i = 0; i < call->frame->opset_count; i++)
        if (strcmp(call->frame->opsets[i].domain, "PACTOps") == 0)
            return true;
    return false;
}

/* Before version 13 all dimensions from axis on are one. */
muc_status onnx_import_softmax(onnx_call *call)
{
    bool flat = call->version < 13 && !is_quantlib(call);
    muc_attributes a = { .count = 0 }, back = { .count = 0 };
    muc_expr_pool *pool = call->im->graph->pool;
    muc_expr matrix[2];
    onnx_shape shape;
    int64_t wanted;
    uint32_t x, axis;

    MUC_TRY(onnx_input(call, 0, &x));
    shape = onnx_shape_of(call, x);
    MUC_TRY(onnx_integer(call, "axis", flat ? 1 : -1, &wanted));
    MUC_TRY(onnx_axis(call, wanted, shape.rank, &axis));
    if (!flat || axis == shape.rank - 1) {
        muc_attributes_set(&a, MUC_KEY_AXIS, axis);
        return onnx_emit(call, call->row->op, &x, 1, &a, 1);
    }
    matrix[0] = matrix[1] = muc_expr_const(pool, 1);
    for (uint32_t i = 0; i < shape.rank; i++)
        matrix[i >= axis] = muc_expr_mul(pool, matrix[i >= axis], shape.dims[i]);
    muc_attributes_set_exprs(&a, MUC_KEY_SHAPE, matrix, 2);
    MUC_TRY(onnx_step(call, MUC_OP_RESHAPE, &x, 1, &a, &x));
    a.count = 0;
    muc_attributes_set(&a, MUC_KEY_AXIS, 1);
    MUC_TRY(onnx_step(call, call->row->op, &x, 1, &a, &x));
    muc_attributes_set_exprs(&back, MUC_KEY_SHAPE, shape.dims, shape.rank);
    return onnx_emit(call, MUC_OP_RESHAPE, &x, 1, &back, 1);
}

/* Axes as the graph counts them, ascending; items has room for MUC_GRAPH_MAX_RANK. */
static muc_status normal_axes(onnx_call *call, const int64_t *axes, size_t count, uint32_t rank,
                              int64_t *items, uint32_t *used)
{
    bool set[MUC_GRAPH_MAX_RANK];

    MUC_TRY(onnx_mark_axes(call, axes, count, rank, set));
    *used = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (set[i] || count == 0)
            items[(*used)++] = i;
    return MUC_OK;
}

muc_status onnx_import_reduce(onnx_call *call)
{
    int64_t keep, no_op, items[MUC_GRAPH_MAX_RANK];
    muc_attributes a = { .count = 0 };
    const int64_t *axes;
    uint32_t x, used;
    size_t count;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(onnx_integer(call, "keepdims", 1, &keep));
    MUC_TRY(onnx_integer(call, "noop_with_empty_axes", 0, &no_op));
    MUC_TRY(onnx_operand_integers(call, "axes", 1, &axes, &count));
    MUC_TRY(normal_axes(call, axes, count, onnx_tensor(call, x)->rank, items, &used));
    muc_attributes_set_integers(&a, MUC_KEY_AXES, items, count == 0 && no_op ? 0 : used);
    muc_attributes_set(&a, MUC_KEY_KEEP_DIMS, keep);
    return onnx_emit(call, call->row->op, &x, 1, &a, 1);
}

/* k as an attribute in old versions, as an operand in newer ones */
static muc_status find_k(onnx_call *call, muc_expr *out)
{
    const onnx_numbers *numbers;
    int64_t k;

    MUC_TRY(onnx_integer(call, "k", 0, &k));
    if (call->version < 10) {
        *out = muc_expr_const(call->im->graph->pool, k < 0 || k > UINT32_MAX ? 0 : (uint32_t)k);
        return MUC_OK;
    }
    MUC_TRY(onnx_known(call, 1, &numbers));
    if (numbers->count != 1 || !onnx_number_expr(call->im, numbers, 0, out))
        return onnx_fail(call, MUC_MALFORMED, "k is no number of elements");
    return MUC_OK;
}

muc_status onnx_import_top_k(onnx_call *call)
{
    int64_t axis, largest, sorted;
    muc_attributes a = { .count = 0 };
    uint32_t x, normal;
    muc_expr k;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(find_k(call, &k));
    MUC_TRY(onnx_integer(call, "axis", -1, &axis));
    MUC_TRY(onnx_integer(call, "largest", 1, &largest));
    MUC_TRY(onnx_integer(call, "sorted", 1, &sorted)); /* in order is one of any orders */
    MUC_TRY(onnx_axis(call, axis, onnx_tensor(call, x)->rank, &normal));
    muc_attributes_set(&a, MUC_KEY_AXIS, normal);
    muc_attributes_set_expr(&a, MUC_KEY_K, k);
    muc_attributes_set(&a, MUC_KEY_LARGEST, largest);
    return onnx_emit(call, MUC_OP_TOP_K, &x, 1, &a, 2);
}

/* ---- norms ---- */

/* mean and variance of x over axes, with and without the dimensions */
static muc_status moments(onnx_call *call, uint32_t x, const int64_t *axes, uint32_t count,
                          bool keep, uint32_t *mean, uint32_t *variance)
{
    uint32_t centre, rest;

    MUC_TRY(onnx_reduced(call, MUC_OP_REDUCE_MEAN, x, axes, count, keep, mean));
    MUC_TRY(onnx_reduced(call, MUC_OP_REDUCE_MEAN, x, axes, count, true, &centre));
    MUC_TRY(onnx_step2(call, MUC_OP_SUB, x, centre, &rest));
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, rest, rest, &rest));
    return onnx_reduced(call, MUC_OP_REDUCE_MEAN, rest, axes, count, keep, variance);
}

/* running * momentum + current * (1 - momentum) */
static muc_status bind_running(onnx_call *call, uint32_t output, uint32_t running, uint32_t current,
                               double momentum)
{
    muc_dtype dtype = onnx_tensor(call, running)->dtype;
    uint32_t old, new, factor;

    if (!onnx_has_output(call, output))
        return MUC_OK;
    MUC_TRY(onnx_scalar(call, dtype, momentum, &factor));
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, running, factor, &old));
    MUC_TRY(onnx_scalar(call, dtype, 1 - momentum, &factor));
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, current, factor, &new));
    MUC_TRY(onnx_step2(call, MUC_OP_ADD, old, new, &old));
    return onnx_bind(call, output, old);
}

muc_status onnx_import_batch_norm(onnx_call *call)
{
    muc_attributes a = { .count = 0 };
    int64_t spatial, training, axes[MUC_GRAPH_MAX_RANK];
    uint32_t *inputs, count, used = 0, running[2];
    double epsilon, momentum;

    MUC_TRY(onnx_integer(call, "spatial", 1, &spatial));
    MUC_TRY(onnx_integer(call, "training_mode", 0, &training));
    MUC_TRY(onnx_real(call, "epsilon", (double)1e-5f, &epsilon));
    MUC_TRY(onnx_real(call, "momentum", (double)0.9f, &momentum));
    MUC_TRY(onnx_all_inputs(call, &inputs, &count));
    if (spatial != 1 || count != 5)
        return onnx_fail(call, MUC_UNSUPPORTED, "%u inputs, spatial %" PRId64, count, spatial);
    if (!training && call->version < 14 && onnx_has_output(call, 1))
        return onnx_fail(call, MUC_UNSUPPORTED, "results of training are asked for");
    muc_attributes_set_real(&a, MUC_KEY_EPSILON, epsilon);
    if (!training)
        return onnx_emit(call, MUC_OP_BATCH_NORM, inputs, 5, &a, 1);
    for (uint32_t i = 0; i < onnx_tensor(call, inputs[0])->rank; i++)
        if (i != 1)
            axes[used++] = i;
    running[0] = inputs[3];
    running[1] = inputs[4];
    MUC_TRY(moments(call, inputs[0], axes, used, false, &inputs[3], &inputs[4]));
    MUC_TRY(onnx_emit(call, MUC_OP_BATCH_NORM, inputs, 5, &a, 1));
    MUC_TRY(bind_running(call, 1, running[0], inputs[3], momentum));
    return bind_running(call, 2, running[1], inputs[4], momentum);
}

/* [groups] to [C], as newer versions have scale and bias */
static muc_status spread(onnx_call *call, uint32_t channels, int64_t groups, uint32_t *tensor)
{
    muc_expr_pool *pool = call->im->graph->pool;
    muc_expr dims[2];
    muc_attributes a = { .count = 0 };

    dims[0] = muc_expr_const(pool, (uint32_t)groups);
    dims[1] = muc_expr_const(pool, 1);
    muc_attributes_set_exprs(&a, MUC_KEY_SHAPE, dims, 2);
    MUC_TRY(onnx_step(call, MUC_OP_RESHAPE, tensor, 1, &a, tensor));
    dims[1] = muc_expr_const(pool, channels / (uint32_t)groups);
    a.count = 0;
    muc_attributes_set_exprs(&a, MUC_KEY_SHAPE, dims, 2);
    MUC_TRY(onnx_step(call, MUC_OP_EXPAND, tensor, 1, &a, tensor));
    dims[0] = muc_expr_const(pool, channels);
    a.count = 0;
    muc_attributes_set_exprs(&a, MUC_KEY_SHAPE, dims, 1);
    return onnx_step(call, MUC_OP_RESHAPE, tensor, 1, &a, tensor);
}

muc_status onnx_import_group_norm(onnx_call *call)
{
    muc_attributes a = { .count = 0 };
    uint32_t *inputs, count, channels;
    int64_t groups, stash;
    double epsilon;

    MUC_TRY(onnx_integer(call, "num_groups", 0, &groups));
    MUC_TRY(onnx_integer(call, "stash_type", 1, &stash));
    MUC_TRY(onnx_real(call, "epsilon", (double)1e-5f, &epsilon));
    MUC_TRY(onnx_all_inputs(call, &inputs, &count));
    if (count != 3 || stash != 1)
        return onnx_fail(call, MUC_UNSUPPORTED, "%u inputs, stash_type %" PRId64, count, stash);
    MUC_TRY(onnx_constant_dim(call, inputs[0], 1, &channels));
    if (groups < 1 || groups > channels || channels % groups != 0)
        return onnx_fail(call, MUC_MALFORMED, "%" PRId64 " groups of %u channels", groups,
                         channels);
    for (uint32_t i = 1; i < 3 && call->version < 21; i++)
        MUC_TRY(spread(call, channels, groups, &inputs[i]));
    muc_attributes_set_real(&a, MUC_KEY_EPSILON, epsilon);
    muc_attributes_set(&a, MUC_KEY_GROUPS, groups);
    return onnx_emit(call, MUC_OP_GROUP_NORM, inputs, 3, &a, 1);
}

/* (x - mean) / (deviation + 1e-9), as ONNX writes it out */
muc_status onnx_import_mean_variance_norm(onnx_call *call)
{
    int64_t items[MUC_GRAPH_MAX_RANK];
    const int64_t usual[] = { 0, 2, 3 }, *axes;
    uint32_t x, used, mean, variance, tiny, pair[2];
    size_t count;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(onnx_integers(call, "axes", &axes, &count));
    MUC_TRY(normal_axes(call, axes ? axes : usual, axes ? count : MUC_COUNT(usual),
                        onnx_tensor(call, x)->rank, items, &used));
    MUC_TRY(moments(call, x, items, used, true, &mean, &variance));
    MUC_TRY(onnx_step(call, MUC_OP_SQRT, &variance, 1, NULL, &variance));
    MUC_TRY(onnx_scalar(call, onnx_tensor(call, x)->dtype, 1e-9, &tiny));
    MUC_TRY(onnx_step2(call, MUC_OP_ADD, variance, tiny, &pair[1]));
    MUC_TRY(onnx_step2(call, MUC_OP_SUB, x, mean, &pair[0]));
    return onnx_emit(call, MUC_OP_DIV, pair, 2, NULL, 1);
}

/* ---- quantized ---- */

/* An axis only where there is more than one scale. */
muc_status onnx_import_quantize_linear(onnx_call *call)
{
    int64_t axis, block, number, saturate;
    muc_attributes a = { .count = 0 };
    uint32_t *inputs, count, normal;
    muc_dtype to;

    MUC_TRY(onnx_all_inputs(call, &inputs, &count));
    if (count < 2 || inputs[0] == MUC_NO_ID || inputs[1] == MUC_NO_ID)
        return onnx_fail(call, MUC_MALFORMED, "%u inputs, expected 2 or 3", count);
    MUC_TRY(onnx_integer(call, "axis", 1, &axis));
    MUC_TRY(onnx_integer(call, "block_size", 0, &block));
    MUC_TRY(onnx_integer(call, "saturate", 1, &saturate));
    MUC_TRY(onnx_integer(call, "output_dtype", 0, &number));
    if (block != 0)
        return onnx_fail(call, MUC_UNSUPPORTED, "scales of blocks of %" PRId64 " elements", block);
    if (onnx_tensor(call, inputs[1])->rank > 0) {
        MUC_TRY(onnx_axis(call, axis, onnx_tensor(call, inputs[0])->rank, &normal));
        muc_attributes_set(&a, MUC_KEY_AXIS, normal);
    }
    if (number != 0) {
        MUC_TRY(muc_onnx_dtype(call->im->ctx, call->im->source->path, call->name, (int32_t)number,
                               &to));
        muc_attributes_set(&a, MUC_KEY_TO, to);
    }
    return onnx_emit(call, call->row->op, inputs, count, &a, 1);
}
