/* onnx_quantlib.c - QuantLib's operators, and ONNX's own where integers.h says that they compute
 * integers: true values of 8 to 32 bits, products and sums in 32. */
#include <inttypes.h>
#include <string.h>

#include "formats/onnx/onnx_operators.h"
#include "formats/onnx/onnx_quantlib.h"

/* ---- operands ---- */

/* A constant operand: whole numbers of 32 bits. */
typedef struct words {
    const char *name;
    uint32_t rank, dims[MUC_MAX_RANK];
    size_t count;
    int32_t *items; /* in the import's arena */
} words;

static muc_status not_whole(const onnx_call *call, const char *name, uint64_t i, double x)
{
    return onnx_fail(call, MUC_UNSUPPORTED,
                     "element %" PRIu64 " of '%s' is %g, expected an "
                     "integer of 32 bits",
                     i, name, x);
}

static muc_status words_of_view(onnx_call *call, const muc_tensor_view *view, words *out)
{
    uint32_t size = muc_dtype_get(view->dtype)->block_bytes;

    MUC_TRY(
        MUC_ARENA_NEW(call->im->ctx, &call->im->arena, (size_t)view->elements + 1, &out->items));
    out->count = (size_t)view->elements;
    out->rank = view->rank;
    for (uint32_t i = 0; i < view->rank; i++)
        out->dims[i] = (uint32_t)view->dims[i]; /* at most the elements that are in memory */
    for (uint64_t i = 0; i < view->elements; i++) {
        float real = 0;
        int64_t whole;

        if (onnx_is_real(view->dtype)) {
            muc_dtype_to_f32(view->dtype, view->data, i, 1, &real);
            if (!(real >= -2147483648.0f && real < 2147483648.0f) || real != (float)(int32_t)real)
                return not_whole(call, out->name, i, (double)real);
            whole = (int64_t)real;
        } else {
            whole = muc_dtype_integer(view->dtype, view->data + i * size);
            if (whole < INT32_MIN || whole > INT32_MAX)
                return not_whole(call, out->name, i, (double)whole);
        }
        out->items[i] = (int32_t)whole;
    }
    return MUC_OK;
}

static muc_status words_of_numbers(onnx_call *call, const onnx_numbers *numbers, words *out)
{
    MUC_TRY(
        MUC_ARENA_NEW(call->im->ctx, &call->im->arena, numbers->count + (size_t)1, &out->items));
    out->count = numbers->count;
    out->rank = numbers->rank;
    memcpy(out->dims, numbers->dims, sizeof(out->dims));
    for (uint32_t i = 0; i < numbers->count; i++) {
        const onnx_number *n = &numbers->items[i];
        double x = onnx_is_real(numbers->dtype) ? n->real : (double)n->integer;

        if (n->expr != MUC_EXPR_NONE || !(x >= INT32_MIN && x <= INT32_MAX) ||
            x != (double)(int32_t)x)
            return not_whole(call, out->name, i, x);
        out->items[i] = (int32_t)x;
    }
    return MUC_OK;
}

/* Input i, if it is a constant; *found tells. */
static muc_status constant_words(onnx_call *call, uint32_t i, words *out, bool *found)
{
    onnx_value *value;
    muc_tensor_view view;

    MUC_TRY(onnx_find_input(call, i, &value));
    out->name = value->name;
    *found = value->tensor == MUC_NO_ID;
    if (!*found)
        return MUC_OK;
    if (value->initializer) {
        MUC_TRY(muc_onnx_tensor(call->im->ctx, &call->im->store, value->initializer, &view));
        return words_of_view(call, &view, out);
    }
    return words_of_numbers(call, value->numbers, out);
}

static muc_dtype smallest_type(int64_t low, int64_t high)
{
    if (low >= INT8_MIN && high <= INT8_MAX)
        return MUC_I8;
    if (low >= 0 && high <= UINT8_MAX)
        return MUC_U8;
    return low >= INT16_MIN && high <= INT16_MAX ? MUC_I16 : MUC_I32;
}

static muc_dtype smallest_type_of(const words *w)
{
    int32_t low = 0, high = 0;

    for (size_t i = 0; i < w->count; i++) {
        low = w->items[i] < low ? w->items[i] : low;
        high = w->items[i] > high ? w->items[i] : high;
    }
    return smallest_type(low, high);
}

/* the constant that another node made of the same value in the same form */
static bool find_words(const onnx_call *call, const words *w, muc_dtype dtype, uint32_t *out)
{
    const muc_graph *graph = call->im->graph;
    const muc_tensor *tensor;

    *out = muc_graph_find(graph, w->name);
    if (*out == MUC_NO_ID)
        return false;
    tensor = &graph->tensors[*out];
    if (tensor->kind != MUC_TENSOR_CONST || tensor->dtype != dtype || tensor->rank != w->rank)
        return false;
    for (uint32_t i = 0; i < w->rank; i++)
        if (tensor->dims[i] != muc_expr_const(graph->pool, w->dims[i]))
            return false;
    return true;
}

/* The words as a constant of the graph, once for each name, shape and type. */
static muc_status add_words(onnx_call *call, const words *w, muc_dtype dtype, uint32_t *out)
{
    uint32_t size = muc_dtype_get(dtype)->block_bytes;
    uint8_t *data;

    if (find_words(call, w, dtype, out))
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(call->im->ctx, &call->im->network->arena, w->count * size + 1, &data));
    for (size_t i = 0; i < w->count; i++) {
        onnx_number number = { .integer = w->items[i] };

        onnx_store_number(dtype, &number, data + i * size);
    }
    return onnx_constant(call, w->name, dtype, w->rank, w->dims, data, w->count * size, out);
}

muc_status onnx_integer_constant(onnx_call *call, uint32_t i, uint32_t *out)
{
    words w;
    bool constant;

    MUC_TRY(constant_words(call, i, &w, &constant));
    return add_words(call, &w, smallest_type_of(&w), out);
}

static muc_status cast(onnx_call *call, uint32_t tensor, muc_dtype dtype, uint32_t *out)
{
    muc_attributes attributes = { .count = 0 };

    *out = tensor;
    if (onnx_tensor(call, tensor)->dtype == dtype)
        return MUC_OK;
    muc_attributes_set(&attributes, MUC_KEY_TO, dtype);
    return onnx_step(call, MUC_OP_CAST, &tensor, 1, &attributes, out);
}

/* Input i as i32. */
static muc_status word_operand(onnx_call *call, uint32_t i, uint32_t *out)
{
    uint32_t tensor;
    words w;
    bool constant;

    MUC_TRY(constant_words(call, i, &w, &constant));
    if (constant)
        return add_words(call, &w, MUC_I32, out);
    MUC_TRY(onnx_input(call, i, &tensor));
    return cast(call, tensor, MUC_I32, out);
}

/* i32 [count] that the node's attributes give. */
static muc_status add_coefficients(onnx_call *call, const int32_t *items, uint32_t count,
                                   uint32_t *out)
{
    words w = { .rank = 1, .dims = { count }, .count = count };
    int32_t copy[4];

    memcpy(copy, items, count * sizeof(*items));
    w.items = copy;
    MUC_TRY(
        muc_arena_format(call->im->ctx, &call->im->arena, &w.name, "%s/coefficients", call->name));
    return add_words(call, &w, MUC_I32, out);
}

/* ---- attributes ---- */

static muc_status integer_in(onnx_call *call, const char *name, int64_t low, int64_t high,
                             int64_t *out)
{
    MUC_TRY(onnx_integer(call, name, INT64_MIN, out));
    if (*out == INT64_MIN)
        return onnx_fail(call, MUC_MALFORMED, "attribute '%s' is missing", name);
    return *out >= low && *out <= high
               ? MUC_OK
               : onnx_fail(call, MUC_UNSUPPORTED,
                           "attribute '%s' is %" PRId64 ", expected %" PRId64 "..%" PRId64, name,
                           *out, low, high);
}

static muc_status word_attribute(onnx_call *call, const char *name, int32_t *out)
{
    int64_t value;

    MUC_TRY(integer_in(call, name, INT32_MIN, INT32_MAX, &value));
    *out = (int32_t)value;
    return MUC_OK;
}

/* an attribute that is a power of two, as its exponent */
static muc_status shift_attribute(onnx_call *call, const char *name, int64_t *out)
{
    int64_t value;

    MUC_TRY(integer_in(call, name, 1, INT64_C(1) << 31, &value));
    if ((value & (value - 1)) != 0)
        return onnx_fail(call, MUC_UNSUPPORTED,
                         "attribute '%s' is %" PRId64 ", expected a power of two", name, value);
    for (*out = 0; value >> *out > 1;)
        ++*out;
    return MUC_OK;
}

/* the range of n_levels_out (n_levels) levels, signed or not */
static muc_status levels_attributes(onnx_call *call, int64_t *low, int64_t *high)
{
    int64_t levels, is_signed;

    MUC_TRY(onnx_integer(call, "n_levels", 256, &levels));
    MUC_TRY(onnx_integer(call, "n_levels_out", levels, &levels));
    MUC_TRY(onnx_integer(call, "signed", 1, &is_signed));
    if (levels < 2 || levels > INT64_C(1) << 32 || (!is_signed && levels > INT64_C(1) << 31))
        return onnx_fail(call, MUC_UNSUPPORTED, "%" PRId64 " levels", levels);
    *low = is_signed ? -(levels / 2) : 0;
    *high = *low + levels - 1;
    return MUC_OK;
}

/* n_levels, where the arithmetic of 8 bits knows nothing else */
static muc_status expect_bytes(onnx_call *call)
{
    int64_t levels;

    MUC_TRY(onnx_integer(call, "n_levels", 256, &levels));
    return levels == 256
               ? MUC_OK
               : onnx_fail(call, MUC_UNSUPPORTED, "n_levels is %" PRId64 ", expected 256", levels);
}

muc_status onnx_requant_type(onnx_call *call, muc_dtype *out)
{
    int64_t low, high;

    MUC_TRY(levels_attributes(call, &low, &high));
    *out = smallest_type(low, high);
    return MUC_OK;
}

/* ---- QuantLib's operators ---- */

/* Whether numpy would broadcast dims to x's shape without changing it. */
static bool is_broadcast(const onnx_call *call, const onnx_shape *x, const words *w)
{
    for (uint32_t i = 0; i < w->rank; i++) { /* from the last dimension */
        uint32_t dim = w->dims[w->rank - 1 - i];

        if (dim != 1 && (i >= x->rank ||
                         x->dims[x->rank - 1 - i] != muc_expr_const(call->im->graph->pool, dim)))
            return false;
    }
    return true;
}

/* mul or add of a requantization: broadcast to x, else one for each channel, dimension 1 */
static muc_status factor_operand(onnx_call *call, uint32_t i, uint32_t x, uint32_t *out)
{
    onnx_shape shape = onnx_shape_of(call, x);
    words w;
    bool constant;

    MUC_TRY(constant_words(call, i, &w, &constant));
    if (!constant)
        return word_operand(call, i, out);
    if (w.count == 1) {
        w.rank = 0;
    } else if (!is_broadcast(call, &shape, &w)) {
        w.rank = shape.rank > 1 ? shape.rank - 1 : 1;
        w.dims[0] = (uint32_t)w.count;
        for (uint32_t d = 1; d < w.rank; d++)
            w.dims[d] = 1;
    }
    while (w.rank > shape.rank) {
        memmove(w.dims, w.dims + 1, (w.rank - 1) * sizeof(*w.dims));
        w.rank--;
    }
    return add_words(call, &w, MUC_I32, out);
}

muc_status onnx_import_requant_shift(onnx_call *call)
{
    muc_attributes attributes = { .count = 0 };
    int64_t shift, low, high;
    uint32_t inputs[3];

    MUC_TRY(onnx_input(call, 0, &inputs[0]));
    MUC_TRY(factor_operand(call, 1, inputs[0], &inputs[1]));
    MUC_TRY(factor_operand(call, 2, inputs[0], &inputs[2]));
    MUC_TRY(shift_attribute(call, "div", &shift));
    MUC_TRY(levels_attributes(call, &low, &high));
    muc_attributes_set(&attributes, MUC_KEY_SHIFT, shift);
    muc_attributes_set(&attributes, MUC_KEY_CLAMP_MIN, low);
    muc_attributes_set(&attributes, MUC_KEY_CLAMP_MAX, high);
    muc_attributes_set(&attributes, MUC_KEY_TO, smallest_type(low, high));
    return onnx_emit(call, call->row->op, inputs, 3, &attributes, 1);
}

/* weights, and biases of a layer norm, for the last dimension */
muc_status onnx_import_integer_norm(onnx_call *call)
{
    muc_attributes attributes = { .count = 0 };
    uint32_t inputs[3], count = muc_op_get(call->row->op)->least_inputs;
    int64_t shift;

    MUC_TRY(expect_bytes(call));
    MUC_TRY(onnx_input(call, 0, &inputs[0]));
    for (uint32_t i = 1; i < count; i++)
        MUC_TRY(word_operand(call, i, &inputs[i]));
    MUC_TRY(shift_attribute(call, "D", &shift));
    muc_attributes_set(&attributes, MUC_KEY_SHIFT, shift);
    return onnx_emit(call, call->row->op, inputs, count, &attributes, 1);
}

/* clip(((x * weight + bias) * mul) >> log2 D): a requantization whose add takes the rounding back
 */
muc_status onnx_import_integer_no_norm(onnx_call *call)
{
    muc_attributes attributes = { .count = 0 };
    uint32_t x, weight, bias, inputs[3];
    int32_t mul, half;
    int64_t shift;

    MUC_TRY(expect_bytes(call));
    MUC_TRY(word_operand(call, 0, &x));
    MUC_TRY(word_operand(call, 1, &weight));
    MUC_TRY(word_operand(call, 2, &bias));
    MUC_TRY(word_attribute(call, "mul", &mul));
    MUC_TRY(shift_attribute(call, "D", &shift));
    half = shift ? -(int32_t)(1u << (shift - 1)) : 0;
    MUC_TRY(onnx_step(call, MUC_OP_MUL, (const uint32_t[]){ x, weight }, 2, NULL, &x));
    MUC_TRY(onnx_step(call, MUC_OP_ADD, (const uint32_t[]){ x, bias }, 2, NULL, &inputs[0]));
    MUC_TRY(onnx_scalar(call, MUC_I32, mul, &inputs[1]));
    MUC_TRY(onnx_scalar(call, MUC_I32, half, &inputs[2]));
    muc_attributes_set(&attributes, MUC_KEY_SHIFT, shift);
    muc_attributes_set(&attributes, MUC_KEY_CLAMP_MIN, INT8_MIN);
    muc_attributes_set(&attributes, MUC_KEY_CLAMP_MAX, INT8_MAX);
    muc_attributes_set(&attributes, MUC_KEY_TO, MUC_I8);
    return onnx_emit(call, call->row->op, inputs, 3, &attributes, 1);
}

muc_status onnx_import_integer_softmax(onnx_call *call)
{
    muc_attributes attributes = { .count = 0 };
    int64_t levels, a;
    int32_t coefficients[3];
    uint32_t inputs[2];

    MUC_TRY(integer_in(call, "coeffA", 1, 1, &a));
    MUC_TRY(word_attribute(call, "coeffB", &coefficients[0]));
    MUC_TRY(word_attribute(call, "coeffC", &coefficients[1]));
    MUC_TRY(word_attribute(call, "log2", &coefficients[2]));
    MUC_TRY(integer_in(call, "n_levels", 2, 256, &levels));
    MUC_TRY(onnx_input(call, 0, &inputs[0]));
    MUC_TRY(add_coefficients(call, coefficients, 3, &inputs[1]));
    muc_attributes_set(&attributes, MUC_KEY_LEVELS, levels);
    return onnx_emit(call, call->row->op, inputs, 2, &attributes, 1);
}

muc_status onnx_import_ita_partial_max(onnx_call *call)
{
    muc_attributes attributes = { .count = 0 };
    int64_t levels, group;
    uint32_t x;

    MUC_TRY(integer_in(call, "n_levels", 4, 256, &levels));
    MUC_TRY(onnx_integer(call, "group_width", 16, &group));
    MUC_TRY(onnx_input(call, 0, &x));
    muc_attributes_set(&attributes, MUC_KEY_LEVELS, levels);
    muc_attributes_set(&attributes, MUC_KEY_GROUP, group);
    return onnx_emit(call, call->row->op, &x, 1, &attributes, 1);
}

muc_status onnx_import_integer_hard_swish(onnx_call *call)
{
    int32_t coefficients[3];
    uint32_t inputs[2];

    MUC_TRY(word_attribute(call, "one_over_six", &coefficients[0]));
    MUC_TRY(word_attribute(call, "three", &coefficients[1]));
    MUC_TRY(word_attribute(call, "six", &coefficients[2]));
    MUC_TRY(onnx_input(call, 0, &inputs[0]));
    MUC_TRY(add_coefficients(call, coefficients, 3, &inputs[1]));
    return onnx_emit(call, call->row->op, inputs, 2, NULL, 1);
}

muc_status onnx_import_integer_gelu(onnx_call *call)
{
    int32_t coefficients[2];
    uint32_t inputs[2];

    MUC_TRY(word_attribute(call, "b", &coefficients[0]));
    MUC_TRY(word_attribute(call, "one", &coefficients[1]));
    MUC_TRY(onnx_input(call, 0, &inputs[0]));
    MUC_TRY(add_coefficients(call, coefficients, 2, &inputs[1]));
    return onnx_emit(call, call->row->op, inputs, 2, NULL, 1);
}

/* Delta, eta, eps of a division of integers with scales */
static muc_status division_attributes(onnx_call *call, int64_t *delta, int64_t *eta, int64_t *eps)
{
    MUC_TRY(integer_in(call, "Delta", 1, UINT32_MAX, delta));
    MUC_TRY(integer_in(call, "eta", 1, INT32_MAX, eta));
    MUC_TRY(integer_in(call, "eps", 0, INT32_MAX, eps));
    return *delta * *eta <= UINT32_MAX
               ? MUC_OK
               : onnx_fail(call, MUC_UNSUPPORTED, "Delta times eta are beyond 32 bits");
}

/* floor(delta * eta / (y * eta + eps)) * x: a product with a constant */
muc_status onnx_import_true_integer_div(onnx_call *call)
{
    int64_t delta, eta, eps, y;
    uint32_t inputs[2];

    MUC_TRY(division_attributes(call, &delta, &eta, &eps));
    MUC_TRY(integer_in(call, "y", 1, INT32_MAX, &y));
    MUC_TRY(word_operand(call, 0, &inputs[0]));
    if (delta * eta / (y * eta + eps) > INT32_MAX)
        return onnx_fail(call, MUC_UNSUPPORTED, "the factor is beyond 32 bits");
    MUC_TRY(onnx_scalar(call, MUC_I32, (double)(delta * eta / (y * eta + eps)), &inputs[1]));
    return onnx_emit(call, MUC_OP_MUL, inputs, 2, NULL, 1);
}

muc_status onnx_import_integer_div(onnx_call *call)
{
    muc_attributes attributes = { .count = 0 };
    int64_t delta, eta, eps;
    uint32_t inputs[2];

    MUC_TRY(division_attributes(call, &delta, &eta, &eps));
    MUC_TRY(onnx_input(call, 0, &inputs[0]));
    MUC_TRY(onnx_input(call, 1, &inputs[1]));
    muc_attributes_set(&attributes, MUC_KEY_DELTA, delta);
    muc_attributes_set(&attributes, MUC_KEY_ETA, eta);
    muc_attributes_set(&attributes, MUC_KEY_EPS, eps);
    return onnx_emit(call, call->row->op, inputs, 2, &attributes, 1);
}

/* ---- ONNX's operators on integers ---- */

static muc_status import_word_binary(onnx_call *call)
{
    uint32_t inputs[2];

    MUC_TRY(word_operand(call, 0, &inputs[0]));
    MUC_TRY(word_operand(call, 1, &inputs[1]));
    return onnx_emit(call, call->row->op, inputs, 2, NULL, 1);
}

/* A constant's last two dimensions exchanged. */
static muc_status transpose_words(onnx_call *call, words *w)
{
    size_t rows, columns;
    int32_t *items;

    if (w->rank != 2)
        return onnx_fail(call, MUC_MALFORMED, "'%s' has rank %u, expected 2", w->name, w->rank);
    rows = w->dims[0];
    columns = w->dims[1];
    MUC_TRY(MUC_ARENA_NEW(call->im->ctx, &call->im->arena, w->count + 1, &items));
    for (size_t i = 0; i < w->count; i++)
        items[i % columns * rows + i / columns] = w->items[i];
    MUC_TRY(muc_arena_format(call->im->ctx, &call->im->arena, &w->name, "%s/transposed", w->name));
    w->items = items;
    w->dims[0] = (uint32_t)columns;
    w->dims[1] = (uint32_t)rows;
    return MUC_OK;
}

/* Matrix i of a Gemm, transposed if its attribute says so; a constant now, once and for all. */
static muc_status matrix_operand(onnx_call *call, uint32_t i, const char *attribute, uint32_t *out)
{
    const int64_t perm[2] = { 1, 0 };
    muc_attributes attributes = { .count = 0 };
    int64_t transposed;
    words w;
    bool constant;

    MUC_TRY(onnx_integer(call, attribute, 0, &transposed));
    if (!transposed)
        return onnx_input(call, i, out);
    MUC_TRY(constant_words(call, i, &w, &constant));
    if (constant) {
        MUC_TRY(transpose_words(call, &w));
        return add_words(call, &w, smallest_type_of(&w), out);
    }
    MUC_TRY(onnx_input(call, i, out));
    muc_attributes_set_integers(&attributes, MUC_KEY_PERM, perm, 2);
    return onnx_step(call, MUC_OP_TRANSPOSE, out, 1, &attributes, out);
}

/* *tensor times a factor that is a whole number */
static muc_status scale_words(onnx_call *call, const char *attribute, uint32_t *tensor)
{
    double factor;
    uint32_t inputs[2] = { *tensor, 0 };

    MUC_TRY(onnx_real(call, attribute, 1, &factor));
    if (!(factor >= INT32_MIN && factor <= INT32_MAX) || factor != (double)(int32_t)factor)
        return onnx_fail(call, MUC_UNSUPPORTED,
                         "%s is %g, expected an integer: its operands are "
                         "integers",
                         attribute, factor);
    if (factor == 1)
        return MUC_OK;
    MUC_TRY(onnx_scalar(call, MUC_I32, factor, &inputs[1]));
    return onnx_step(call, MUC_OP_MUL, inputs, 2, NULL, tensor);
}

/* *op, and its operands: matrices of at most 16 bits as they are, others as i32 */
static muc_status settle_product(onnx_call *call, uint32_t *inputs, muc_op *op)
{
    *op = MUC_OP_MATMUL_INTEGER;
    for (uint32_t i = 0; i < 2; i++)
        if (muc_dtype_get(onnx_tensor(call, inputs[i])->dtype)->block_bytes > 2)
            *op = MUC_OP_MATMUL;
    for (uint32_t i = 0; i < 2 && *op == MUC_OP_MATMUL; i++)
        MUC_TRY(cast(call, inputs[i], MUC_I32, &inputs[i]));
    return MUC_OK;
}

static muc_status import_integer_gemm(onnx_call *call)
{
    bool biased = onnx_has_input(call, 2);
    uint32_t inputs[2], sum[2];
    muc_op op;
    double alpha;

    MUC_TRY(matrix_operand(call, 0, "transA", &inputs[0]));
    MUC_TRY(matrix_operand(call, 1, "transB", &inputs[1]));
    MUC_TRY(settle_product(call, inputs, &op));
    MUC_TRY(onnx_real(call, "alpha", 1, &alpha));
    if (!biased && alpha == 1) {
        MUC_TRY(onnx_real(call, "beta", 1, &alpha));
        return onnx_emit(call, op, inputs, 2, NULL, 1);
    }
    MUC_TRY(onnx_step(call, op, inputs, 2, NULL, &sum[0]));
    MUC_TRY(scale_words(call, "alpha", &sum[0]));
    if (biased)
        MUC_TRY(word_operand(call, 2, &sum[1]));
    else
        MUC_TRY(onnx_scalar(call, MUC_I32, 0, &sum[1]));
    MUC_TRY(scale_words(call, "beta", &sum[1]));
    return onnx_emit(call, MUC_OP_ADD, sum, 2, NULL, 1);
}

static muc_status import_integer_matmul(onnx_call *call)
{
    uint32_t inputs[2];
    muc_op op;

    MUC_TRY(onnx_input(call, 0, &inputs[0]));
    MUC_TRY(onnx_input(call, 1, &inputs[1]));
    MUC_TRY(settle_product(call, inputs, &op));
    return onnx_emit(call, op, inputs, 2, NULL, 1);
}

/* the attributes of a reduction: axes (all if there are none) and keep_dims; *count: elements of
 * each sum */
static muc_status reduction(onnx_call *call, uint32_t x, muc_attributes *attributes, int64_t *count)
{
    uint32_t rank = onnx_tensor(call, x)->rank;
    const int64_t *items;
    bool reduced[MUC_GRAPH_MAX_RANK] = { false };
    int64_t keep_dims, *axes;
    size_t given;
    uint32_t dim, axis, axis_count = 0;

    MUC_TRY(onnx_operand_integers(call, "axes", 1, &items, &given));
    MUC_TRY(onnx_integer(call, "keepdims", 1, &keep_dims));
    MUC_TRY(MUC_ARENA_NEW(call->im->ctx, &call->im->arena, rank + (size_t)1, &axes));
    for (size_t i = 0; i < given; i++) {
        MUC_TRY(onnx_axis(call, items[i], rank, &axis));
        reduced[axis] = true;
    }
    *count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (given && !reduced[i])
            continue;
        axes[axis_count++] = i;
        MUC_TRY(onnx_constant_dim(call, x, i, &dim));
        *count = dim && *count < INT32_MAX / dim ? *count * dim : INT32_MAX;
    }
    muc_attributes_set_integers(attributes, MUC_KEY_AXES, axes, axis_count);
    muc_attributes_set(attributes, MUC_KEY_KEEP_DIMS, keep_dims != 0);
    return MUC_OK;
}

static muc_status import_integer_sum(onnx_call *call)
{
    muc_attributes attributes = { .count = 0 };
    int64_t count;
    uint32_t x;

    MUC_TRY(word_operand(call, 0, &x));
    MUC_TRY(reduction(call, x, &attributes, &count));
    return onnx_emit(call, MUC_OP_REDUCE_SUM, &x, 1, &attributes, 1);
}

/* floor((sum + n / 2) / n), in x's type: the numerator is brought above zero, where division is
 * floor. x is of at most 16 bits and n < 2^14. */
muc_status onnx_import_integer_mean(onnx_call *call)
{
    enum { BELOW = 1 << 15, MOST = 1 << 14 };
    muc_attributes attributes = { .count = 0 }, to = { .count = 0 };
    uint32_t x, operands[2];
    muc_dtype dtype;
    int64_t n;

    MUC_TRY(onnx_input(call, 0, &x));
    dtype = onnx_tensor(call, x)->dtype;
    MUC_TRY(cast(call, x, MUC_I32, &operands[0]));
    MUC_TRY(reduction(call, x, &attributes, &n));
    if (muc_dtype_get(dtype)->block_bytes > 2 || n >= MOST)
        return onnx_fail(call, MUC_UNSUPPORTED,
                         "the mean of %" PRId64 " elements of type %s, expected fewer than %d of "
                         "at most 16 bits",
                         n, muc_dtype_get(dtype)->name, MOST);
    MUC_TRY(onnx_step(call, MUC_OP_REDUCE_SUM, operands, 1, &attributes, &operands[0]));
    MUC_TRY(onnx_scalar(call, MUC_I32, (double)(n / 2 + n * BELOW), &operands[1]));
    MUC_TRY(onnx_step(call, MUC_OP_ADD, operands, 2, NULL, &operands[0]));
    MUC_TRY(onnx_scalar(call, MUC_I32, (double)n, &operands[1]));
    MUC_TRY(onnx_step(call, MUC_OP_DIV, operands, 2, NULL, &operands[0]));
    MUC_TRY(onnx_scalar(call, MUC_I32, BELOW, &operands[1]));
    MUC_TRY(onnx_step(call, MUC_OP_SUB, operands, 2, NULL, &operands[0]));
    muc_attributes_set(&to, MUC_KEY_TO, dtype);
    return onnx_emit(call, MUC_OP_CAST, operands, 1, &to, 1);
}

muc_status onnx_integer_conv_operands(onnx_call *call, uint32_t **inputs, uint32_t *count)
{
    *count = 2;
    MUC_TRY(MUC_ARENA_NEW(call->im->ctx, &call->im->arena, *count, inputs));
    MUC_TRY(onnx_input(call, 0, &(*inputs)[0]));
    return onnx_input(call, 1, &(*inputs)[1]);
}

muc_status onnx_emit_integer_conv(onnx_call *call, const uint32_t *inputs,
                                  const muc_attributes *attributes)
{
    uint32_t sum[2];
    words w;
    bool constant;

    if (!onnx_has_input(call, 2))
        return onnx_emit(call, MUC_OP_CONV_INTEGER, inputs, 2, attributes, 1);
    MUC_TRY(onnx_step(call, MUC_OP_CONV_INTEGER, inputs, 2, attributes, &sum[0]));
    MUC_TRY(constant_words(call, 2, &w, &constant));
    if (!constant)
        return onnx_fail(call, MUC_UNSUPPORTED,
                         "the bias of a convolution of integers must be "
                         "constant");
    w.rank = onnx_tensor(call, sum[0])->rank - 1; /* for each channel */
    w.dims[0] = (uint32_t)w.count;
    for (uint32_t i = 1; i < w.rank; i++)
        w.dims[i] = 1;
    MUC_TRY(add_words(call, &w, MUC_I32, &sum[1]));
    return onnx_emit(call, MUC_OP_ADD, sum, 2, NULL, 1);
}

muc_status onnx_import_integers(onnx_call *call)
{
    static const struct {
        const char *op_type;
        onnx_importer *import;
    } importers[] = {
        { "Add", import_word_binary },       { "Sub", import_word_binary },
        { "Mul", import_word_binary },       { "MatMul", import_integer_matmul },
        { "Gemm", import_integer_gemm },     { "Conv", onnx_import_conv },
        { "ReduceSum", import_integer_sum }, { "ReduceMean", onnx_import_integer_mean },
    };

    for (size_t i = 0; i < MUC_COUNT(importers); i++)
        if (strcmp(importers[i].op_type, call->proto->op_type) == 0)
            return importers[i].import(call);
    return onnx_fail(call, MUC_BUG, "no importer for integers");
}
