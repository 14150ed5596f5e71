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

static muc_status words_of(onnx_call *call, const muc_tensor_view *view, words *out)
{
    MUC_TRY(
        MUC_ARENA_NEW(call->im->ctx, &call->im->arena, (size_t)view->elements + 1, &out->items));
    out->count = (size_t)view->elements;
    out->rank = view->rank;
    for (uint32_t i = 0; i < view->rank; i++)
        out->dims[i] = (uint32_t)view->dims[i]; /* at most the elements that are in memory */
    for (uint64_t i = 0; i < view->elements; i++) {
        const onnx_number number = onnx_element(view, i);
        double x = onnx_is_real(view->dtype) ? number.real : (double)number.integer;

        if (!(x >= INT32_MIN && x <= INT32_MAX) || x != (double)(int32_t)x)
            return onnx_fail(call, MUC_UNSUPPORTED,
                             "element %" PRIu64 " of '%s' is %g, expected an integer of 32 bits", i,
                             out->name, x);
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
    MUC_TRY(onnx_constant_view(call->im, value, &view));
    return words_of(call, &view, out);
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

muc_status onnx_word_operand(onnx_call *call, uint32_t i, uint32_t *out)
{
    uint32_t tensor;
    words w;
    bool constant;

    MUC_TRY(constant_words(call, i, &w, &constant));
    if (constant)
        return add_words(call, &w, MUC_I32, out);
    MUC_TRY(onnx_input(call, i, &tensor));
    return onnx_cast(call, tensor, MUC_I32, out);
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
        return onnx_word_operand(call, i, out);
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

/* clip(((x * weight + bias) * mul) >> log2 D): a requantization whose add takes the rounding back
 */
muc_status onnx_import_integer_no_norm(onnx_call *call)
{
    int64_t shift;

    MUC_TRY(shift_attribute(call, "D", &shift));
    return onnx_cook(call,
                     "x = mul 0:i32 1:i32; x = add x 2:i32; . x {@mul}:i32 {%ld}:i32 shift=log2@D "
                     "clamp_min=-128 clamp_max=127 to=i8 @n_levels==256",
                     shift ? -(1L << (shift - 1)) : 0);
}

/* floor(delta * eta / (y * eta + eps)) * x: a product with a constant */
muc_status onnx_import_true_integer_div(onnx_call *call)
{
    int64_t delta, eta, eps, y;

    MUC_TRY(integer_in(call, "Delta", 1, UINT32_MAX, &delta));
    MUC_TRY(integer_in(call, "eta", 1, INT32_MAX, &eta));
    MUC_TRY(integer_in(call, "eps", 0, INT32_MAX, &eps));
    MUC_TRY(integer_in(call, "y", 1, INT32_MAX, &y));
    if (delta * eta > UINT32_MAX)
        return onnx_fail(call, MUC_UNSUPPORTED, "Delta times eta are beyond 32 bits");
    return onnx_cook(call, ". 0:i32 {%" PRId64 "}:i32", delta * eta / (y * eta + eps));
}

/* ---- ONNX's operators on integers ---- */

/* Matrices of at most 16 bits as they are, others as i32; those of a Gemm are transposed first. */
static muc_status import_integer_product(onnx_call *call)
{
    bool narrow = true, biased = onnx_has_input(call, 2);
    const char *type;
    double alpha, beta;

    for (uint32_t i = 0; i < 2; i++) {
        uint32_t id;

        MUC_TRY(onnx_input(call, i, &id));
        narrow = narrow && muc_dtype_get(onnx_tensor(call, id)->dtype)->block_bytes <= 2;
    }
    MUC_TRY(onnx_real(call, "alpha", 1, &alpha));
    MUC_TRY(onnx_real(call, "beta", 1, &beta));
    type = narrow ? "" : ":i32:";
    return onnx_cook(call,
                     "?transA a = transpose 0%s perm=1,0; ?transB b = transpose 1%s perm=1,0; %s%s "
                     "a b%s%s",
                     type, type, biased || alpha != 1 ? "sum = " : "",
                     narrow ? "matmul_integer" : "matmul",
                     alpha == 1 ? ""
                     : biased   ? "; sum = mul sum {@alpha}:i32"
                                : "; mul sum {@alpha}:i32",
                     !biased     ? ""
                     : beta == 1 ? "; add sum 2:i32"
                                 : "; bias = mul 2:i32 {@beta}:i32; add sum bias");
}

/* floor((sum + n / 2) / n), in x's type: the numerator is brought above zero, where division is
 * floor. x is of at most 16 bits and n < 2^14. */
muc_status onnx_import_integer_mean(onnx_call *call)
{
    enum { BELOW = 1 << 15, MOST = 1 << 14 };
    const int64_t *axes;
    bool is_reduced[MUC_GRAPH_MAX_RANK];
    uint32_t x, rank, dim;
    muc_dtype dtype;
    size_t count;
    int n = 1;

    MUC_TRY(onnx_input(call, 0, &x));
    MUC_TRY(onnx_operand_integers(call, "axes", 1, &axes, &count));
    dtype = onnx_tensor(call, x)->dtype;
    rank = onnx_tensor(call, x)->rank;
    MUC_TRY(onnx_mark_axes(call, axes, count, rank, is_reduced));
    for (uint32_t i = 0; i < rank; i++) {
        if (count && !is_reduced[i])
            continue;
        MUC_TRY(onnx_constant_dim(call, x, i, &dim));
        n = dim < MOST && n < MOST ? n * (int)dim : MOST;
    }
    if (muc_dtype_get(dtype)->block_bytes > 2 || n < 1 || n >= MOST)
        return onnx_fail(call, MUC_UNSUPPORTED,
                         "the mean of %d elements of type %s, expected fewer than %d of at most 16 "
                         "bits",
                         n, muc_dtype_get(dtype)->name, MOST);
    return onnx_cook(call,
                     "sum = reduce_sum 0:i32: axes=%s keep_dims=@keepdims:1; "
                     "sum = add sum {%d}:i32; sum = div sum {%d}:i32; sum = sub sum {%d}:i32; "
                     "cast sum to=%s",
                     count ? "@axes#1" : "0..", n / 2 + n * BELOW, n, BELOW,
                     muc_dtype_get(dtype)->name);
}

muc_status onnx_import_integers(onnx_call *call)
{
    static const struct {
        const char *op_type;
        onnx_importer *import;
    } importers[] = {
        { "MatMul", import_integer_product },
        { "Gemm", import_integer_product },
        { "Conv", onnx_import_conv },
        { "ReduceSum", onnx_import_reduce },
        { "ReduceMean", onnx_import_integer_mean },
    };

    for (size_t i = 0; i < MUC_COUNT(importers); i++)
        if (strcmp(importers[i].op_type, call->proto->op_type) == 0)
            return importers[i].import(call);
    return onnx_cook(call, ". 0:i32 1:i32"); /* Add, Sub, Mul */
}
