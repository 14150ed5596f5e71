/* import_gradient.c - the operators of backward passes that ONNX Runtime's training and Deeploy's
 * networks have: derivatives, written as operators of the graph. dy is the gradient of what the
 * operator in the forward pass gave, y, of its x. */
#include <math.h>
#include <string.h>

#include "formats/onnx/operators.h"

static muc_status inputs2(onnx_call *call, uint32_t *dy, uint32_t *x)
{
    MUC_TRY(onnx_input(call, 0, dy));
    return onnx_input(call, 1, x);
}

static muc_status unary(onnx_call *call, muc_op op, uint32_t x, uint32_t *out)
{
    return onnx_step(call, op, &x, 1, NULL, out);
}

/* x with a number */
static muc_status with(onnx_call *call, muc_op op, uint32_t x, double number, uint32_t *out)
{
    uint32_t scalar;

    MUC_TRY(onnx_scalar(call, onnx_tensor(call, x)->dtype, number, &scalar));
    return onnx_step2(call, op, x, scalar, out);
}

static muc_status emit2(onnx_call *call, muc_op op, uint32_t a, uint32_t b)
{
    const uint32_t inputs[] = { a, b };

    return onnx_emit(call, op, inputs, 2, NULL, 1);
}

/* weight - lr * gradient */
muc_status onnx_import_sgd(onnx_call *call)
{
    uint32_t weight, gradient;
    double rate;

    MUC_TRY(inputs2(call, &weight, &gradient));
    MUC_TRY(onnx_real(call, "lr", NAN, &rate));
    if (isnan(rate))
        return onnx_fail(call, MUC_MALFORMED, "attribute 'lr' is missing");
    MUC_TRY(with(call, MUC_OP_MUL, gradient, rate, &gradient));
    return emit2(call, MUC_OP_SUB, weight, gradient);
}

/* dy where x, or y, is above 0 */
muc_status onnx_import_relu_gradient(onnx_call *call)
{
    uint32_t dy, x, inputs[3];

    MUC_TRY(inputs2(call, &dy, &x));
    MUC_TRY(with(call, MUC_OP_GREATER, x, 0, &inputs[0]));
    inputs[1] = dy;
    MUC_TRY(onnx_scalar(call, onnx_tensor(call, dy)->dtype, 0, &inputs[2]));
    return onnx_emit(call, MUC_OP_WHERE, inputs, 3, NULL, 1);
}

/* dy y (1 - y) */
muc_status onnx_import_sigmoid_gradient(onnx_call *call)
{
    uint32_t dy, y, rest;

    MUC_TRY(inputs2(call, &dy, &y));
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, y, y, &rest));
    MUC_TRY(onnx_step2(call, MUC_OP_SUB, y, rest, &rest));
    return emit2(call, MUC_OP_MUL, dy, rest);
}

/* dy (1 - y^2) */
muc_status onnx_import_tanh_gradient(onnx_call *call)
{
    uint32_t dy, y;

    MUC_TRY(inputs2(call, &dy, &y));
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, y, y, &y));
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, y, dy, &y));
    return emit2(call, MUC_OP_SUB, dy, y);
}

/* dy (Phi(x) + x phi(x)) of the normal distribution */
muc_status onnx_import_gelu_gradient(onnx_call *call)
{
    uint32_t dy, x, below, density;
    const char *approximate;

    MUC_TRY(onnx_string(call, "approximate", "none", &approximate));
    if (strcmp(approximate, "none") != 0)
        return onnx_fail(call, MUC_UNSUPPORTED, "approximate is '%.40s'", approximate);
    MUC_TRY(inputs2(call, &dy, &x));
    MUC_TRY(with(call, MUC_OP_MUL, x, sqrt(0.5), &below));
    MUC_TRY(unary(call, MUC_OP_ERF, below, &below));
    MUC_TRY(with(call, MUC_OP_ADD, below, 1, &below));
    MUC_TRY(with(call, MUC_OP_MUL, below, 0.5, &below));
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, x, x, &density));
    MUC_TRY(with(call, MUC_OP_MUL, density, -0.5, &density));
    MUC_TRY(unary(call, MUC_OP_EXP, density, &density));
    MUC_TRY(with(call, MUC_OP_MUL, density, 0.39894228040143267794, &density)); /* 1 / sqrt(2 pi) */
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, density, x, &density));
    MUC_TRY(onnx_step2(call, MUC_OP_ADD, below, density, &below));
    return emit2(call, MUC_OP_MUL, dy, below);
}

/* y (dy - sum of dy y); of the logarithms: dy - e^y times the sum of dy. Before version 13 of the
 * forward operator, dimensions from axis on were one, which only the last is alike in. */
muc_status onnx_import_softmax_gradient(onnx_call *call)
{
    bool newest = strstr(call->proto->op_type, "_13") != NULL;
    uint32_t dy, y, sum, rank, normal;
    int64_t axis;

    MUC_TRY(inputs2(call, &dy, &y));
    MUC_TRY(onnx_integer(call, "axis", -1, &axis));
    rank = onnx_tensor(call, y)->rank;
    MUC_TRY(onnx_axis(call, axis, rank, &normal));
    if (!newest && normal + 1 != rank)
        return onnx_fail(call, MUC_UNSUPPORTED, "axis %u of %u is not the last", normal, rank);
    axis = normal;
    if (call->row->op == MUC_OP_LOG_SOFTMAX) {
        MUC_TRY(onnx_reduced(call, MUC_OP_REDUCE_SUM, dy, &axis, 1, true, &sum));
        MUC_TRY(unary(call, MUC_OP_EXP, y, &y));
        MUC_TRY(onnx_step2(call, MUC_OP_MUL, y, sum, &y));
        return emit2(call, MUC_OP_SUB, dy, y);
    }
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, dy, y, &sum));
    MUC_TRY(onnx_reduced(call, MUC_OP_REDUCE_SUM, sum, &axis, 1, true, &sum));
    MUC_TRY(onnx_step2(call, MUC_OP_SUB, dy, sum, &dy));
    return emit2(call, MUC_OP_MUL, y, dy);
}

/* ---- the gradient of a layer norm ---- */

typedef struct norm {
    int64_t axes[MUC_GRAPH_MAX_RANK]; /* the dimensions in front, then those that are normalised */
    uint32_t front, rank;
    uint32_t dy, x, scale, centred, inverse; /* x - mean; 1 / standard deviation */
} norm;

static muc_status mean(onnx_call *call, const norm *n, uint32_t x, uint32_t *out)
{
    return onnx_reduced(call, MUC_OP_REDUCE_MEAN, x, n->axes + n->front, n->rank - n->front, true,
                        out);
}

/* from x itself, or mean and inverse as the forward pass kept them */
static muc_status take_moments(onnx_call *call, norm *n)
{
    uint32_t centre;
    double epsilon;

    MUC_TRY(onnx_real(call, "epsilon", (double)1e-5f, &epsilon));
    if (onnx_has_input(call, 4)) {
        MUC_TRY(onnx_input(call, 3, &centre));
        MUC_TRY(onnx_input(call, 4, &n->inverse));
        return onnx_step2(call, MUC_OP_SUB, n->x, centre, &n->centred);
    }
    MUC_TRY(mean(call, n, n->x, &centre));
    MUC_TRY(onnx_step2(call, MUC_OP_SUB, n->x, centre, &n->centred));
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, n->centred, n->centred, &n->inverse));
    MUC_TRY(mean(call, n, n->inverse, &n->inverse));
    MUC_TRY(with(call, MUC_OP_ADD, n->inverse, epsilon, &n->inverse));
    MUC_TRY(unary(call, MUC_OP_SQRT, n->inverse, &n->inverse));
    return unary(call, MUC_OP_RECIPROCAL, n->inverse, &n->inverse);
}

/* the sum of x over the dimensions in front as the node's output i */
static muc_status bind_sum(onnx_call *call, const norm *n, uint32_t i, uint32_t x)
{
    if (!onnx_has_output(call, i))
        return MUC_OK;
    MUC_TRY(onnx_reduced(call, MUC_OP_REDUCE_SUM, x, n->axes, n->front, false, &x));
    return onnx_bind(call, i, x);
}

/* With h = (x - mean) / deviation and g = dy scale: dx = (g - mean(g) - h mean(g h)) / deviation,
 * dscale = sum of dy h, dbias = sum of dy. Inputs dy, x, scale, and mean and 1 / deviation (ONNX
 * Runtime) or the bias (Deeploy). */
muc_status onnx_import_layer_norm_gradient(onnx_call *call)
{
    norm n = { .front = 0 };
    uint32_t h, g, part;
    int64_t axis, stash;

    MUC_TRY(inputs2(call, &n.dy, &n.x));
    MUC_TRY(onnx_input(call, 2, &n.scale));
    MUC_TRY(onnx_integer(call, "stash_type", 1, &stash)); /* sums are of f32 */
    MUC_TRY(onnx_integer(call, "axis", -1, &axis));
    n.rank = onnx_tensor(call, n.x)->rank;
    MUC_TRY(onnx_axis(call, axis, n.rank, &n.front));
    for (uint32_t i = 0; i < n.rank; i++)
        n.axes[i] = i;
    MUC_TRY(take_moments(call, &n));
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, n.centred, n.inverse, &h));
    MUC_TRY(bind_sum(call, &n, 2, n.dy));
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, n.dy, h, &part));
    MUC_TRY(bind_sum(call, &n, 1, part));
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, n.dy, n.scale, &g));
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, g, h, &part));
    MUC_TRY(mean(call, &n, part, &part));
    MUC_TRY(onnx_step2(call, MUC_OP_MUL, h, part, &part));
    MUC_TRY(onnx_step2(call, MUC_OP_SUB, g, part, &part));
    MUC_TRY(mean(call, &n, g, &g));
    MUC_TRY(onnx_step2(call, MUC_OP_SUB, part, g, &part));
    return emit2(call, MUC_OP_MUL, part, n.inverse);
}
