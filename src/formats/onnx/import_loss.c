/* import_loss.c - losses of classification, as sums of what gathers choose. */
#include <string.h>

#include "formats/onnx/operators.h"

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

muc_status onnx_import_cross_entropy(onnx_call *call)
{
    muc_attributes axis = { .count = 0 };
    loss l;

    if (onnx_wants_log_probabilities(call))
        return onnx_import_log_probabilities(call);
    muc_attributes_set(&axis, MUC_KEY_AXIS, 1);
    MUC_TRY(take_operands(call, &l));
    MUC_TRY(onnx_step(call, MUC_OP_LOG_SOFTMAX, &l.log_prob, 1, &axis, &l.log_prob));
    MUC_TRY(import_loss(call, &l));
    return onnx_bind(call, 1, l.log_prob);
}
