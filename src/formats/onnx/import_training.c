/* import_training.c - losses of classification, as sums of what gathers choose, and gradients that
 * are more than a recipe: operators of backward passes as ONNX Runtime's training and Deeploy's
 * networks have them. */
#include <string.h>

#include "formats/onnx/onnx_operators.h"

/* ---- losses ---- */

/* What a loss is made of, in the graph. target has x's dimensions without that of the classes. */
typedef struct loss {
    uint32_t log_prob, target, weight; /* weight: MUC_NO_ID where all classes count the same */
    onnx_shape shape;                  /* of target */
    bool ignores;
    int64_t ignored; /* a class that does not count */
    uint32_t valid;  /* whether an element of target counts, if ignores */
    const char *reduction;
} loss;

/* a read at the indices, along an axis */
static muc_status gather(onnx_call *call, muc_op op, uint32_t a, uint32_t indices, int64_t axis,
                         uint32_t *out)
{
    const uint32_t inputs[] = { a, indices };
    muc_attributes attributes = { .count = 0 };

    muc_attributes_set(&attributes, MUC_KEY_AXIS, axis);
    return onnx_step(call, op, inputs, 2, &attributes, out);
}

static muc_status choose(onnx_call *call, uint32_t condition, uint32_t a, uint32_t b, uint32_t *out)
{
    const uint32_t inputs[] = { condition, a, b };

    return onnx_step(call, MUC_OP_WHERE, inputs, 3, NULL, out);
}

static muc_status take_operands(onnx_call *call, loss *l)
{
    const Onnx__AttributeProto *ignored;

    MUC_TRY(onnx_input(call, 0, &l->log_prob));
    MUC_TRY(onnx_input(call, 1, &l->target));
    MUC_TRY(onnx_input_or_none(call, 2, &l->weight));
    MUC_TRY(onnx_string(call, "reduction", "mean", &l->reduction));
    MUC_TRY(onnx_attribute(call, "ignore_index", &ignored));
    l->ignores = ignored != NULL;
    MUC_TRY(onnx_integer(call, "ignore_index", 0, &l->ignored));
    l->shape = onnx_shape_of(call, l->target);
    if (onnx_tensor(call, l->log_prob)->rank != l->shape.rank + 1 || l->shape.rank == 0)
        return onnx_fail(call, MUC_MALFORMED, "x has %u dimensions, the classes %u",
                         onnx_tensor(call, l->log_prob)->rank, l->shape.rank);
    return MUC_OK;
}

/* classes that do not count become class 0, which is there */
static muc_status mask_target(onnx_call *call, loss *l)
{
    muc_dtype dtype = onnx_tensor(call, l->target)->dtype;
    uint32_t constant, same;

    if (!l->ignores)
        return MUC_OK;
    MUC_TRY(onnx_scalar(call, dtype, (double)l->ignored, &constant));
    MUC_TRY(onnx_step2(call, MUC_OP_EQUAL, l->target, constant, &same));
    MUC_TRY(onnx_step(call, MUC_OP_NOT, &same, 1, NULL, &l->valid));
    MUC_TRY(onnx_scalar(call, dtype, 0, &constant));
    return choose(call, l->valid, l->target, constant, &l->target);
}

/* -log_prob of each target, in target's shape */
static muc_status pick(onnx_call *call, const loss *l, uint32_t *out)
{
    muc_attributes spread = { .count = 0 }, back = { .count = 0 };
    muc_expr dims[MUC_GRAPH_MAX_RANK];
    uint32_t indices;

    dims[0] = l->shape.dims[0];
    dims[1] = muc_expr_const(call->im->graph->pool, 1);
    memcpy(dims + 2, l->shape.dims + 1, (l->shape.rank - 1) * sizeof(*dims));
    muc_attributes_set_exprs(&spread, MUC_KEY_SHAPE, dims, l->shape.rank + 1);
    muc_attributes_set_exprs(&back, MUC_KEY_SHAPE, l->shape.dims, l->shape.rank);
    MUC_TRY(onnx_step(call, MUC_OP_RESHAPE, &l->target, 1, &spread, &indices));
    MUC_TRY(gather(call, MUC_OP_GATHER_ELEMENTS, l->log_prob, indices, 1, out));
    MUC_TRY(onnx_step(call, MUC_OP_RESHAPE, out, 1, &back, out));
    return onnx_step(call, MUC_OP_NEG, out, 1, NULL, out);
}

/* How much each target counts, or MUC_NO_ID where all count 1. */
static muc_status weigh(onnx_call *call, const loss *l, uint32_t *out)
{
    muc_dtype dtype = onnx_tensor(call, l->log_prob)->dtype;
    uint32_t zero;

    *out = MUC_NO_ID;
    if (l->weight != MUC_NO_ID)
        MUC_TRY(gather(call, MUC_OP_GATHER, l->weight, l->target, 0, out));
    else if (l->ignores)
        MUC_TRY(onnx_scalar(call, dtype, 1, out));
    if (!l->ignores)
        return MUC_OK;
    MUC_TRY(onnx_scalar(call, dtype, 0, &zero));
    return choose(call, l->valid, *out, zero, out);
}

static void set_all_axes(const loss *l, int64_t *axes, muc_attributes *out)
{
    for (uint32_t i = 0; i < l->shape.rank; i++)
        axes[i] = i;
    muc_attributes_set_integers(out, MUC_KEY_AXES, axes, l->shape.rank);
    muc_attributes_set(out, MUC_KEY_KEEP_DIMS, 0);
}

static muc_status emit_reduced(onnx_call *call, const loss *l, uint32_t each, uint32_t weights)
{
    int64_t axes[MUC_GRAPH_MAX_RANK];
    muc_attributes all = { .count = 0 };
    uint32_t pair[2];

    set_all_axes(l, axes, &all);
    if (strcmp(l->reduction, "none") == 0)
        return onnx_emit(call, MUC_OP_IDENTITY, &each, 1, NULL, 1);
    if (strcmp(l->reduction, "sum") == 0)
        return onnx_emit(call, MUC_OP_REDUCE_SUM, &each, 1, &all, 1);
    if (strcmp(l->reduction, "mean") != 0)
        return onnx_fail(call, MUC_UNSUPPORTED, "reduction is '%.60s'", l->reduction);
    if (weights == MUC_NO_ID)
        return onnx_emit(call, MUC_OP_REDUCE_MEAN, &each, 1, &all, 1);
    MUC_TRY(onnx_step(call, MUC_OP_REDUCE_SUM, &each, 1, &all, &pair[0]));
    MUC_TRY(onnx_step(call, MUC_OP_REDUCE_SUM, &weights, 1, &all, &pair[1]));
    return onnx_emit(call, MUC_OP_DIV, pair, 2, NULL, 1);
}

static muc_status import_loss(onnx_call *call, loss *l)
{
    uint32_t each, weights;

    MUC_TRY(mask_target(call, l));
    MUC_TRY(pick(call, l, &each));
    MUC_TRY(weigh(call, l, &weights));
    if (weights != MUC_NO_ID)
        MUC_TRY(onnx_step2(call, MUC_OP_MUL, each, weights, &each));
    return emit_reduced(call, l, each, weights);
}

muc_status onnx_import_negative_log_likelihood(onnx_call *call)
{
    loss l;

    MUC_TRY(take_operands(call, &l));
    return import_loss(call, &l);
}

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
    muc_attributes axis = { .count = 0 };
    loss l;

    if (wants_log_probabilities(call))
        return onnx_cook(call, "log_softmax 0 axis=1 @reduction");
    muc_attributes_set(&axis, MUC_KEY_AXIS, 1);
    MUC_TRY(take_operands(call, &l));
    MUC_TRY(onnx_step(call, MUC_OP_LOG_SOFTMAX, &l.log_prob, 1, &axis, &l.log_prob));
    MUC_TRY(import_loss(call, &l));
    return onnx_bind(call, 1, l.log_prob);
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

/* ---- the gradient of a layer norm ---- */

/* dy is the gradient of what the norm gave of x in the forward pass */
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
    uint32_t centre, tiny;
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
    MUC_TRY(onnx_scalar(call, onnx_tensor(call, n->inverse)->dtype, epsilon, &tiny));
    MUC_TRY(onnx_step2(call, MUC_OP_ADD, n->inverse, tiny, &n->inverse));
    MUC_TRY(onnx_step(call, MUC_OP_SQRT, &n->inverse, 1, NULL, &n->inverse));
    return onnx_step(call, MUC_OP_RECIPROCAL, &n->inverse, 1, NULL, &n->inverse);
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

    MUC_TRY(onnx_input(call, 0, &n.dy));
    MUC_TRY(onnx_input(call, 1, &n.x));
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
    return onnx_emit(call, MUC_OP_MUL, (const uint32_t[]){ part, n.inverse }, 2, NULL, 1);
}
