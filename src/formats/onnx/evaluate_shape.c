/* evaluate_shape.c - computes shapes as numbers, and the numbers that follow from shapes. */
#include <inttypes.h>

#include "formats/onnx/evaluate.h"

muc_status onnx_evaluate_none(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    (void)call;
    (void)x;
    (void)out;
    return MUC_OK;
}

/* The first and last + 1 of `rank` dimensions that Shape gives. */
static muc_status shape_bounds(onnx_call *call, uint32_t rank, uint32_t *first, uint32_t *end)
{
    int64_t bounds[2];

    MUC_TRY(onnx_integer(call, "start", 0, &bounds[0]));
    MUC_TRY(onnx_integer(call, "end", rank, &bounds[1]));
    for (int i = 0; i < 2; i++) {
        if (bounds[i] < 0)
            bounds[i] = bounds[i] < -(int64_t)rank ? 0 : bounds[i] + rank;
        if (bounds[i] > rank)
            bounds[i] = rank;
    }
    *first = (uint32_t)bounds[0];
    *end = (uint32_t)(bounds[1] < bounds[0] ? bounds[0] : bounds[1]);
    return MUC_OK;
}

/* of input 0: numbers that no tensor may hold have a shape, too */
static muc_status find_shape(onnx_call *call, const onnx_numbers *x, onnx_shape *out)
{
    uint32_t tensor;

    if (!x) {
        MUC_TRY(onnx_input(call, 0, &tensor));
        *out = onnx_shape_of(call, tensor);
        return MUC_OK;
    }
    out->rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++)
        out->dims[i] = muc_expr_const(call->im->graph->pool, x->dims[i]);
    return MUC_OK;
}

muc_status onnx_evaluate_shape(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    uint32_t first, end, count;
    onnx_shape shape;

    MUC_TRY(find_shape(call, x[0], &shape));
    MUC_TRY(shape_bounds(call, shape.rank, &first, &end));
    count = end - first;
    MUC_TRY(onnx_numbers_new(call->im, MUC_I64, 1, &count, out));
    for (uint32_t i = first; i < end; i++)
        (*out)->items[i - first] = onnx_number_of(call->im->graph->pool, shape.dims[i]);
    call->shape_only = true;
    return MUC_OK;
}

muc_status onnx_evaluate_size(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    muc_expr product = muc_expr_const(call->im->graph->pool, 1);
    onnx_shape shape;

    MUC_TRY(find_shape(call, x[0], &shape));
    for (uint32_t i = 0; i < shape.rank; i++)
        product = muc_expr_mul(call->im->graph->pool, product, shape.dims[i]);
    MUC_TRY(muc_expr_status(call->im->graph->pool));
    MUC_TRY(onnx_numbers_new(call->im, MUC_I64, 0, NULL, out));
    (*out)->items[0] = onnx_number_of(call->im->graph->pool, product);
    call->shape_only = true;
    return MUC_OK;
}

/* ---- shapes of numbers ---- */

/* dimensions that a vector of numbers asks for; false if they are not known */
static bool constant_dims(const onnx_numbers *x, uint32_t *rank, uint32_t *dims)
{
    if (x->rank > 1 || x->count > MUC_MAX_RANK || !onnx_all_const(x))
        return false;
    *rank = x->count;
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->items[i].integer < 0 || x->items[i].integer > UINT32_MAX)
            return false;
        dims[i] = (uint32_t)x->items[i].integer;
    }
    return true;
}

muc_status onnx_fill_value(onnx_call *call, muc_dtype *dtype, onnx_number *out)
{
    const Onnx__AttributeProto *value;
    onnx_numbers *numbers;
    muc_tensor_view view;

    MUC_TRY(onnx_attribute(call, "value", &value));
    *dtype = MUC_F32;
    *out = (onnx_number){ 0 };
    if (!value)
        return MUC_OK;
    if (!value->t)
        return onnx_fail(call, MUC_MALFORMED, "attribute 'value' is not a tensor");
    MUC_TRY(muc_onnx_tensor(call->im->ctx, &call->im->store, value->t, &view));
    if (view.elements != 1)
        return onnx_fail(call, MUC_MALFORMED, "attribute 'value' has %" PRIu64 " elements",
                         view.elements);
    MUC_TRY(onnx_numbers_of_view(call->im, &view, &numbers));
    *dtype = view.dtype;
    *out = numbers->items[0];
    return MUC_OK;
}

muc_status onnx_evaluate_constant_of_shape(onnx_call *call, const onnx_numbers *const *x,
                                           onnx_numbers **out)
{
    uint32_t rank, dims[MUC_MAX_RANK];
    onnx_number value;
    muc_dtype dtype;

    MUC_TRY(onnx_fill_value(call, &dtype, &value));
    if (!x[0] || !constant_dims(x[0], &rank, dims))
        return MUC_OK;
    MUC_TRY(onnx_numbers_new(call->im, dtype, rank, dims, out));
    for (uint32_t i = 0; *out && i < (*out)->count; i++)
        (*out)->items[i] = value;
    return MUC_OK;
}

/* of all elements of a vector */
muc_status onnx_evaluate_reduce_prod(onnx_call *call, const onnx_numbers *const *x,
                                     onnx_numbers **out)
{
    static const uint32_t one[] = { 1 };
    muc_expr_pool *pool = call->im->graph->pool;
    muc_expr product = muc_expr_const(pool, 1), factor;
    int64_t keep;

    MUC_TRY(onnx_integer(call, "keepdims", 1, &keep));
    if (!x[0] || x[0]->rank != 1 || onnx_is_real(x[0]->dtype))
        return MUC_OK;
    for (uint32_t i = 0; i < x[0]->count; i++) {
        if (!onnx_number_expr(call->im, x[0], i, &factor))
            return MUC_OK;
        product = muc_expr_mul(pool, product, factor);
    }
    MUC_TRY(muc_expr_status(pool));
    MUC_TRY(onnx_numbers_new(call->im, x[0]->dtype, keep != 0, one, out));
    (*out)->items[0] = onnx_number_of(call->im->graph->pool, product);
    return MUC_OK;
}
