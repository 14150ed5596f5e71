/* known_numbers.c - keeps elements known while reading, and makes tensors of the graph of them. */
#include <inttypes.h>
#include <string.h>

#include "base/half.h"
#include "formats/onnx/onnx_import.h"
#include "import/free_name.h"

muc_status onnx_numbers_new(onnx_import *im, muc_dtype dtype, uint32_t rank, const uint32_t *dims,
                            onnx_numbers **out)
{
    uint64_t count = 1;
    onnx_numbers *numbers;

    for (uint32_t i = 0; i < rank; i++)
        if (!muc_mul_u64(count, dims[i], &count))
            count = UINT64_MAX;
    *out = NULL;
    if (count > ONNX_MAX_NUMBERS || rank > MUC_MAX_RANK ||
        (count > MUC_MAX_RANK && count > im->numbers_left))
        return MUC_OK; /* shapes, which are small, always find room */
    if (count > MUC_MAX_RANK)
        im->numbers_left -= count;
    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->arena, 1, &numbers));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->arena, (size_t)count + 1, &numbers->items));
    numbers->dtype = dtype;
    numbers->rank = rank;
    if (rank)
        memcpy(numbers->dims, dims, rank * sizeof(*dims));
    numbers->count = (uint32_t)count;
    *out = numbers;
    return MUC_OK;
}

bool onnx_all_const(const onnx_numbers *numbers)
{
    for (uint32_t i = 0; i < numbers->count; i++)
        if (numbers->items[i].expr != MUC_EXPR_NONE)
            return false;
    return true;
}

static double load_real(muc_dtype dtype, const uint8_t *p)
{
    double value;
    float single;

    if (dtype == MUC_F64) {
        memcpy(&value, p, sizeof(value));
        return value;
    }
    muc_dtype_to_f32(dtype, p, 0, 1, &single);
    return (double)single;
}

onnx_number onnx_element(const muc_tensor_view *view, uint64_t i)
{
    const uint8_t *at = view->data + i * muc_dtype_get(view->dtype)->block_bytes;

    return onnx_is_real(view->dtype)
               ? (onnx_number){ .real = load_real(view->dtype, at) }
               : (onnx_number){ .integer = muc_dtype_integer(view->dtype, at) };
}

muc_status onnx_numbers_of_view(onnx_import *im, const muc_tensor_view *view, onnx_numbers **out)
{
    uint32_t dims[MUC_MAX_RANK];

    *out = NULL;
    if (view->elements > ONNX_MAX_NUMBERS)
        return MUC_OK;
    for (uint32_t i = 0; i < view->rank; i++) {
        if (view->dims[i] > UINT32_MAX)
            return MUC_OK;
        dims[i] = (uint32_t)view->dims[i];
    }
    MUC_TRY(onnx_numbers_new(im, view->dtype, view->rank, dims, out));
    for (uint32_t i = 0; *out && i < (*out)->count; i++)
        (*out)->items[i] = onnx_element(view, i);
    return MUC_OK;
}

void onnx_store_number(muc_dtype dtype, const onnx_number *number, uint8_t *out)
{
    uint64_t bits = (uint64_t)number->integer;
    double wide = number->real;

    if (dtype == MUC_F64) {
        memcpy(&bits, &wide, sizeof(bits));
    } else if (dtype == MUC_F32) {
        bits = muc_f32_bits((float)number->real);
    } else if (dtype == MUC_F16) {
        bits = muc_f16_of_f32((float)number->real);
    } else if (dtype == MUC_BF16) {
        bits = muc_bf16_of_f32((float)number->real);
    }
    for (uint32_t i = 0; i < muc_dtype_get(dtype)->block_bytes; i++)
        out[i] = (uint8_t)(bits >> 8 * i);
}

bool onnx_number_expr(const onnx_import *im, const onnx_numbers *numbers, uint32_t i, muc_expr *out)
{
    const onnx_number *number = &numbers->items[i];

    if (onnx_is_real(numbers->dtype))
        return false;
    if (number->expr == MUC_EXPR_NONE && (number->integer < 0 || number->integer > UINT32_MAX))
        return false;
    *out = number->expr != MUC_EXPR_NONE
               ? number->expr
               : muc_expr_const(im->graph->pool, (uint32_t)number->integer);
    return true;
}

/* the options' value of an input of the graph; of one with open dimensions it would be that of one
 * length only */
static muc_status find_given(onnx_import *im, const onnx_value *value, onnx_numbers **out)
{
    const muc_tensor_view *known = onnx_known_input(im, value->name);
    const muc_tensor *tensor = &im->graph->tensors[value->tensor];

    if (!known)
        return MUC_OK;
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!muc_expr_is_const(im->graph->pool, tensor->dims[i]))
            return MUC_OK;
    MUC_TRY(onnx_numbers_of_view(im, known, out));
    if (*out)
        (*out)->given = true;
    return MUC_OK;
}

muc_status onnx_numbers_of(onnx_import *im, onnx_value *value, const onnx_numbers **out)
{
    onnx_numbers *found = NULL;
    muc_tensor_view view;

    if (!value->numbers && value->initializer) {
        MUC_TRY(muc_onnx_tensor(im->ctx, &im->store, value->initializer, &view));
        MUC_TRY(onnx_numbers_of_view(im, &view, &found));
        value->numbers = found;
    } else if (!value->numbers && value->tensor != MUC_NO_ID &&
               im->graph->tensors[value->tensor].kind == MUC_TENSOR_INPUT) {
        MUC_TRY(find_given(im, value, &found));
        value->numbers = found;
    }
    *out = value->numbers;
    return MUC_OK;
}

/* ---- tensors ---- */

muc_status onnx_constant_view(onnx_import *im, const onnx_value *value, muc_tensor_view *out)
{
    const onnx_numbers *n = value->numbers;
    uint8_t *data;

    if (value->initializer)
        return muc_onnx_tensor(im->ctx, &im->store, value->initializer, out);
    *out = (muc_tensor_view){ .name = value->name, .dtype = n->dtype, .rank = n->rank };
    for (uint32_t i = 0; i < n->rank; i++)
        out->dims[i] = n->dims[i];
    MUC_TRY(muc_tensor_measure(im->ctx, out));
    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->network->arena, (size_t)out->bytes + 1, &data));
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->items[i].expr != MUC_EXPR_NONE)
            return muc_fail(im->ctx, MUC_UNSUPPORTED, im->source->path, MUC_NO_OFFSET,
                            "element %u of '%s' depends on dimensions, expected a constant", i,
                            value->name);
        onnx_store_number(n->dtype, &n->items[i],
                          data + (size_t)i * muc_dtype_get(n->dtype)->block_bytes);
    }
    out->data = data;
    return MUC_OK;
}

static muc_status add_constant(onnx_import *im, onnx_value *value)
{
    muc_tensor tensor = { .name = value->name, .kind = MUC_TENSOR_CONST };
    muc_tensor_view view;

    MUC_TRY(onnx_constant_view(im, value, &view));
    tensor.dtype = view.dtype;
    tensor.rank = view.rank;
    tensor.data = view.data;
    tensor.bytes = view.bytes;
    for (uint32_t i = 0; i < view.rank; i++) {
        if (view.dims[i] > UINT32_MAX)
            return muc_fail(im->ctx, MUC_UNSUPPORTED, im->source->path, MUC_NO_OFFSET,
                            "tensor '%s': dimension %u is %" PRIu64, value->name, i, view.dims[i]);
        tensor.dims[i] = muc_expr_const(im->graph->pool, (uint32_t)view.dims[i]);
    }
    MUC_TRY(muc_free_name(im->ctx, im->graph, &im->arena, value->name, '~', &tensor.name));
    return muc_graph_add_tensor(im->ctx, im->graph, &tensor, &value->tensor);
}

static muc_status add_expressions(onnx_import *im, onnx_value *value)
{
    const onnx_numbers *n = value->numbers;
    muc_attribute attributes[2] = { { .key = MUC_KEY_VALUES },
                                    { .key = MUC_KEY_TO, .value.integer = n->dtype } };
    muc_attributes shape = { .count = 0 };
    const char *name = value->name;
    int64_t dims[MUC_MAX_RANK];
    muc_expr *exprs;

    MUC_TRY(MUC_ARENA_NEW(im->ctx, &im->arena, n->count + (size_t)1, &exprs));
    for (uint32_t i = 0; i < n->count; i++)
        if (!onnx_number_expr(im, n, i, &exprs[i]))
            return muc_fail(im->ctx, MUC_UNSUPPORTED, im->source->path, MUC_NO_OFFSET,
                            "value '%s': element %u, %" PRId64 ", stands beside expressions of "
                            "dimensions and is negative",
                            value->name, i, n->items[i].integer);
    attributes[0].value.exprs.items = exprs;
    attributes[0].value.exprs.count = n->count;
    if (n->rank != 1)
        MUC_TRY(muc_arena_format(im->ctx, &im->arena, &name, "%s/vector", value->name));
    MUC_TRY(muc_graph_add_node(im->ctx, im->graph, MUC_OP_EXPRESSIONS, name, NULL, 0, attributes, 2,
                               &value->tensor));
    if (n->rank == 1)
        return MUC_OK;
    for (uint32_t i = 0; i < n->rank; i++)
        dims[i] = n->dims[i];
    muc_attributes_set_sizes(&shape, im->graph, MUC_KEY_SHAPE, dims, n->rank);
    return muc_graph_add_node(im->ctx, im->graph, MUC_OP_RESHAPE, value->name, &value->tensor, 1,
                              shape.items, shape.count, &value->tensor);
}

muc_status onnx_materialise(onnx_import *im, onnx_value *value, uint32_t *out)
{
    if (value->tensor == MUC_NO_ID && !value->initializer && value->numbers &&
        !onnx_all_const(value->numbers))
        MUC_TRY(add_expressions(im, value));
    else if (value->tensor == MUC_NO_ID && (value->initializer || value->numbers))
        MUC_TRY(add_constant(im, value));
    *out = value->tensor;
    return value->tensor != MUC_NO_ID
               ? MUC_OK
               : muc_fail(im->ctx, MUC_BUG, im->source->path, MUC_NO_OFFSET,
                          "value '%s' has neither tensor nor numbers", value->name);
}
