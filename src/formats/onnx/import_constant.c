/* import_constant.c - makes tensors of attributes, shapes and numbers. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "formats/onnx/evaluate.h"
#include "formats/onnx/onnx_operators.h"

/* ---- Constant ---- */

static muc_status bind_list(onnx_call *call, muc_dtype dtype, bool scalar, size_t count,
                            const float *reals, const int64_t *integers)
{
    onnx_numbers *numbers;
    uint32_t dims[1] = { (uint32_t)count };

    MUC_TRY(onnx_numbers_new(call->im, dtype, scalar ? 0 : 1, dims, &numbers));
    if (!numbers)
        return onnx_fail(call, MUC_UNSUPPORTED, "the list of %zu numbers is too long", count);
    for (uint32_t i = 0; i < numbers->count; i++) {
        if (reals)
            numbers->items[i].real = (double)reals[i];
        else
            numbers->items[i].integer = integers[i];
    }
    return onnx_bind_numbers(call, 0, numbers);
}

muc_status onnx_import_constant(onnx_call *call)
{
    const Onnx__AttributeProto *a;
    onnx_value *value;

    MUC_TRY(onnx_attribute(call, "value", &a));
    if (a && a->t && onnx_has_output(call, 0)) {
        MUC_TRY(onnx_scope_add(call->im, &call->frame->scope, call->proto->output[0], &value));
        value->initializer = a->t;
        return MUC_OK;
    }
    MUC_TRY(onnx_attribute(call, "value_int", &a));
    if (a)
        return bind_list(call, MUC_I64, true, 1, NULL, &a->i);
    MUC_TRY(onnx_attribute(call, "value_ints", &a));
    if (a)
        return bind_list(call, MUC_I64, false, a->n_ints, NULL, a->ints);
    MUC_TRY(onnx_attribute(call, "value_float", &a));
    if (a)
        return bind_list(call, MUC_F32, true, 1, &a->f, NULL);
    MUC_TRY(onnx_attribute(call, "value_floats", &a));
    if (a)
        return bind_list(call, MUC_F32, false, a->n_floats, a->floats, NULL);
    return onnx_fail(call, MUC_UNSUPPORTED, "the constant is neither a tensor nor numbers");
}

/* ---- filled and patterned ---- */

/* A constant of a shape that is known, each element the value, or where `diagonal` is not NULL,
 * that on the diagonal of a matrix and 0 elsewhere. */
static muc_status bind_filled(onnx_call *call, muc_dtype dtype, uint32_t rank, const uint32_t *dims,
                              const onnx_number *value, const int64_t *diagonal)
{
    uint32_t size = muc_dtype_get(dtype)->block_bytes, tensor;
    uint64_t wide[MUC_GRAPH_MAX_RANK], count, bytes;
    uint8_t *data;

    for (uint32_t i = 0; i < rank; i++)
        wide[i] = dims[i];
    if (!muc_dtype_measure(dtype, rank, wide, &count, &bytes) || bytes > call->im->filled_left)
        return onnx_fail(call, MUC_UNSUPPORTED,
                         "constants that are filled with one value grow out of proportion to the "
                         "model's size");
    call->im->filled_left -= bytes;
    MUC_TRY(MUC_ARENA_NEW(call->im->ctx, &call->im->network->arena, (size_t)bytes + 1, &data));
    for (uint64_t i = 0; i < count; i++)
        if (!diagonal || (int64_t)(i % dims[1]) == (int64_t)(i / dims[1]) + *diagonal)
            onnx_store_number(dtype, value, data + i * size);
    MUC_TRY(onnx_constant(call, call->proto->output[0], dtype, rank, dims, data, bytes, &tensor));
    return onnx_bind(call, 0, tensor);
}

/* numbers that are sizes; *known false where one depends on dimensions */
static muc_status sizes_of(onnx_call *call, const onnx_numbers *numbers, onnx_shape *shape,
                           uint32_t *dims, bool *known)
{
    muc_expr_pool *pool = call->im->graph->pool;

    if (numbers->rank > 1 || numbers->count > MUC_GRAPH_MAX_RANK)
        return onnx_fail(call, MUC_UNSUPPORTED, "the shape has %u dimensions, which is too many",
                         numbers->count);
    *known = true;
    shape->rank = numbers->count;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (!onnx_number_expr(call->im, numbers, i, &shape->dims[i]))
            return onnx_fail(call, MUC_MALFORMED, "dimension %u is %" PRId64, i,
                             numbers->items[i].integer);
        dims[i] = muc_expr_get(pool, shape->dims[i])->immediate;
        *known = *known && muc_expr_is_const(pool, shape->dims[i]);
    }
    return MUC_OK;
}

enum { MOST_FILLED_BYTES = 1 << 20 };

/* large ones are filled where they are used */
static bool is_small(muc_dtype dtype, uint32_t rank, const uint32_t *dims)
{
    uint64_t wide[MUC_GRAPH_MAX_RANK], count, bytes;

    for (uint32_t i = 0; i < rank; i++)
        wide[i] = dims[i];
    return muc_dtype_measure(dtype, rank, wide, &count, &bytes) && bytes <= MOST_FILLED_BYTES;
}

/* too many elements to be numbers, or as many as dimensions say */
muc_status onnx_import_constant_of_shape(onnx_call *call)
{
    uint32_t dims[MUC_GRAPH_MAX_RANK], scalar;
    const onnx_numbers *wanted;
    muc_attributes a = { .count = 0 };
    onnx_number value;
    onnx_shape shape;
    muc_dtype dtype;
    uint8_t *data;
    bool known = false;

    MUC_TRY(onnx_fill_value(call, &dtype, &value));
    MUC_TRY(onnx_known(call, 0, &wanted));
    MUC_TRY(sizes_of(call, wanted, &shape, dims, &known));
    if (known && is_small(dtype, shape.rank, dims))
        return bind_filled(call, dtype, shape.rank, dims, &value, NULL);
    MUC_TRY(MUC_ARENA_NEW(call->im->ctx, &call->im->network->arena, 8, &data));
    onnx_store_number(dtype, &value, data);
    MUC_TRY(onnx_constant(call, NULL, dtype, 0, NULL, data, muc_dtype_get(dtype)->block_bytes,
                          &scalar));
    muc_attributes_set_exprs(&a, MUC_KEY_SHAPE, shape.dims, shape.rank);
    return onnx_emit(call, call->row->op, &scalar, 1, &a, 1);
}

muc_status onnx_import_eye_like(onnx_call *call)
{
    const onnx_number one = { .integer = 1, .real = 1 };
    int64_t number, diagonal;
    uint32_t x, dims[2];
    muc_dtype dtype;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(onnx_integer(call, "dtype", 0, &number));
    MUC_TRY(onnx_integer(call, "k", 0, &diagonal));
    dtype = onnx_tensor(call, x)->dtype;
    if (number != 0)
        MUC_TRY(muc_onnx_dtype(call->im->ctx, call->im->source->path, call->name, (int32_t)number,
                               &dtype));
    if (onnx_tensor(call, x)->rank != 2)
        return onnx_fail(call, MUC_MALFORMED, "%u dimensions, expected 2",
                         onnx_tensor(call, x)->rank);
    for (uint32_t i = 0; i < 2; i++)
        MUC_TRY(onnx_constant_dim(call, x, i, &dims[i]));
    if (diagonal < -(INT64_C(1) << 32) || diagonal > INT64_C(1) << 32)
        return onnx_fail(call, MUC_MALFORMED, "diagonal %" PRId64, diagonal);
    return bind_filled(call, dtype, 2, dims, &one, &diagonal);
}

/* ---- OneHot, Range ---- */

muc_status onnx_import_one_hot(onnx_call *call)
{
    const onnx_numbers *depth;
    double real;

    MUC_TRY(onnx_known(call, 1, &depth));
    if (!onnx_is_real(depth->dtype))
        return onnx_cook(call, ". 0 2 axis=@axis:-1 size=#1");
    MUC_TRY(onnx_known_real(call, 1, &real));
    if (!(real >= 0 && real <= INT32_MAX))
        return onnx_fail(call, MUC_MALFORMED, "the depth is %g, which is not a size", real);
    return onnx_cook(call, ". 0 2 axis=@axis:-1 size=%" PRId32, (int32_t)real);
}

/* whole numbers of a bound that expressions of dimensions decide; false if it is another */
static bool bound_expr(onnx_call *call, const onnx_numbers *bound, muc_expr *out)
{
    return bound->count == 1 && onnx_number_expr(call->im, bound, 0, out);
}

/* max(ceil((limit - start) / delta), 0) elements */
muc_status onnx_import_range(onnx_call *call)
{
    muc_expr_pool *pool = call->im->graph->pool;
    double start, limit, delta, count;
    muc_attributes a = { .count = 0 };
    const onnx_numbers *first, *end;
    muc_expr size, from, to;

    MUC_TRY(onnx_known_real(call, 2, &delta));
    MUC_TRY(onnx_known(call, 0, &first));
    MUC_TRY(onnx_known(call, 1, &end));
    if (bound_expr(call, first, &from) && bound_expr(call, end, &to) && delta >= 1 &&
        delta <= INT32_MAX) {
        size = muc_expr_cdiv(pool, muc_expr_sub(pool, to, from), (uint32_t)delta);
    } else {
        MUC_TRY(onnx_known_real(call, 0, &start));
        MUC_TRY(onnx_known_real(call, 1, &limit));
        count = ceil((limit - start) / delta);
        if (!(count <= INT32_MAX))
            return onnx_fail(call, MUC_MALFORMED,
                             "the range from %g to %g in steps of %g has too many elements", start,
                             limit, delta);
        size = muc_expr_const(pool, count > 0 ? (uint32_t)count : 0);
    }
    muc_attributes_set_expr(&a, MUC_KEY_SIZE, size);
    return onnx_cook_given(call, &a, ". 0 2 given");
}
