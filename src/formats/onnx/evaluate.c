/* evaluate.c - element by element arithmetic on numbers that are known while reading.
 *
 * Integers are constants or expressions of dimensions, which are never negative: where a result
 * might be, it is not known. Reals are rounded as their type is. An evaluator that finds a number
 * that it cannot know leaves *out NULL, and the node is imported as any other.
 */
#include "formats/onnx/evaluate.h"

#include <math.h>
#include <string.h>

typedef struct element {
    onnx_import *im;
    muc_dtype dtype; /* of the operands */
} element;

/* One element of the result from up to three operands; false where it is not known. */
typedef bool element_fn(const element *e, const onnx_number *const *x, onnx_number *out);

static bool is_const(const onnx_number *n)
{
    return n->expr == MUC_EXPR_NONE;
}

/* ---- integers ---- */

static muc_expr expr_of(const element *e, const onnx_number *n)
{
    return is_const(n) ? muc_expr_const(e->im->graph->pool, (uint32_t)n->integer) : n->expr;
}

/* an expression, or a constant that could be one */
static bool is_natural(const onnx_number *n)
{
    return !is_const(n) || (n->integer >= 0 && n->integer <= UINT32_MAX);
}

static uint32_t least(const element *e, const onnx_number *n)
{
    return is_const(n) ? (uint32_t)n->integer : muc_expr_get(e->im->graph->pool, n->expr)->lo;
}

static uint32_t most(const element *e, const onnx_number *n)
{
    return is_const(n) ? (uint32_t)n->integer : muc_expr_get(e->im->graph->pool, n->expr)->hi;
}

/* an expression that turned out to be a constant is one */
static bool set_expr(const element *e, muc_expr expr, onnx_number *out)
{
    if (expr == MUC_EXPR_NONE)
        return false;
    *out = (onnx_number){ .expr = expr };
    if (muc_expr_is_const(e->im->graph->pool, expr))
        *out = (onnx_number){
            .integer = muc_expr_get(e->im->graph->pool, expr)->immediate,
        };
    return true;
}

static bool apply(const element *e, muc_expr_op op, const onnx_number *const *x, onnx_number *out)
{
    return is_natural(x[0]) && is_natural(x[1]) &&
           set_expr(e,
                    muc_expr_apply(e->im->graph->pool, op, expr_of(e, x[0]), expr_of(e, x[1]),
                                   MUC_EXPR_NONE),
                    out);
}

static int64_t wrap(muc_dtype dtype, uint64_t bits)
{
    unsigned unused = 64 - 8 * muc_dtype_get(dtype)->block_bytes;

    bits <<= unused;
    if (!muc_dtype_is_signed(dtype))
        return (int64_t)(bits >> unused);
    return (int64_t)bits >> unused;
}

static bool set_integer(const element *e, uint64_t bits, onnx_number *out)
{
    *out = (onnx_number){ .integer = wrap(e->dtype, bits) };
    return true;
}

static bool set_real(const element *e, double value, onnx_number *out)
{
    *out = (onnx_number){ .real = e->dtype == MUC_F32 ? (double)(float)value : value };
    return true;
}

static bool both_const(const onnx_number *const *x)
{
    return is_const(x[0]) && is_const(x[1]);
}

static bool subtract(const element *e, const onnx_number *const *x, onnx_number *out)
{
    onnx_number negated;

    if (onnx_is_real(e->dtype))
        return set_real(e, x[0]->real - x[1]->real, out);
    if (both_const(x))
        return set_integer(e, (uint64_t)x[0]->integer - (uint64_t)x[1]->integer, out);
    if (is_const(x[1]) && x[1]->integer < 0 && x[1]->integer > -(INT64_C(1) << 32)) {
        negated = (onnx_number){ .integer = -x[1]->integer };
        return apply(e, MUC_EXPR_ADD, (const onnx_number *[]){ x[0], &negated }, out);
    }
    if (x[0]->expr == x[1]->expr)
        return set_integer(e, 0, out);
    return is_natural(x[0]) && is_natural(x[1]) && most(e, x[1]) <= least(e, x[0]) &&
           apply(e, MUC_EXPR_SUB, x, out);
}

static bool add(const element *e, const onnx_number *const *x, onnx_number *out)
{
    const onnx_number *turned[2] = { x[1], x[0] };
    onnx_number negated;

    if (onnx_is_real(e->dtype))
        return set_real(e, x[0]->real + x[1]->real, out);
    if (both_const(x))
        return set_integer(e, (uint64_t)x[0]->integer + (uint64_t)x[1]->integer, out);
    if (is_const(x[0]))
        x = turned;
    if (!is_const(x[1]) || x[1]->integer >= 0)
        return apply(e, MUC_EXPR_ADD, x, out);
    negated = (onnx_number){ .integer = -x[1]->integer };
    return subtract(e, (const onnx_number *[]){ x[0], &negated }, out);
}

static bool multiply(const element *e, const onnx_number *const *x, onnx_number *out)
{
    if (onnx_is_real(e->dtype))
        return set_real(e, x[0]->real * x[1]->real, out);
    if (both_const(x))
        return set_integer(e, (uint64_t)x[0]->integer * (uint64_t)x[1]->integer, out);
    return apply(e, MUC_EXPR_MUL, x, out);
}

static bool divide(const element *e, const onnx_number *const *x, onnx_number *out)
{
    if (onnx_is_real(e->dtype))
        return x[1]->real != 0 && set_real(e, x[0]->real / x[1]->real, out);
    if (is_const(x[1]) && (x[1]->integer == 0 || (x[1]->integer == -1 && is_const(x[0]))))
        return x[1]->integer == -1 && set_integer(e, 0 - (uint64_t)x[0]->integer, out);
    if (both_const(x) && !(e->dtype == MUC_U64))
        return set_integer(e, (uint64_t)(x[0]->integer / x[1]->integer), out);
    if (!is_const(x[0]) && x[0]->expr == x[1]->expr && least(e, x[0]) > 0)
        return set_integer(e, 1, out);
    return is_const(x[1]) && apply(e, MUC_EXPR_DIV, x, out);
}

/* of naturals, where every definition of the rest is the same */
static bool modulo(const element *e, const onnx_number *const *x, onnx_number *out)
{
    return !onnx_is_real(e->dtype) && is_const(x[1]) && x[1]->integer > 0 &&
           apply(e, MUC_EXPR_MOD, x, out);
}

static bool extreme(const element *e, const onnx_number *const *x, bool max, onnx_number *out)
{
    if (onnx_is_real(e->dtype)) {
        if (isnan(x[0]->real) || isnan(x[1]->real))
            return false;
        *out = *x[(x[0]->real < x[1]->real) == max];
        return true;
    }
    if (both_const(x)) {
        *out = *x[(x[0]->integer < x[1]->integer) == max];
        return e->dtype != MUC_U64;
    }
    for (int i = 0; i < 2; i++)
        if (is_const(x[i]) && x[i]->integer < 0) {
            *out = max ? *x[!i] : *x[i];
            return true;
        }
    return apply(e, max ? MUC_EXPR_MAX : MUC_EXPR_MIN, x, out);
}

static bool minimum(const element *e, const onnx_number *const *x, onnx_number *out)
{
    return extreme(e, x, false, out);
}

static bool maximum(const element *e, const onnx_number *const *x, onnx_number *out)
{
    return extreme(e, x, true, out);
}

static bool negate(const element *e, const onnx_number *const *x, onnx_number *out)
{
    if (onnx_is_real(e->dtype))
        return set_real(e, -x[0]->real, out);
    return is_const(x[0]) && set_integer(e, 0 - (uint64_t)x[0]->integer, out);
}

static bool absolute(const element *e, const onnx_number *const *x, onnx_number *out)
{
    if (onnx_is_real(e->dtype))
        return set_real(e, fabs(x[0]->real), out);
    if (is_const(x[0]) && x[0]->integer < 0)
        return negate(e, x, out);
    *out = *x[0];
    return true;
}

static bool round_down(const element *e, const onnx_number *const *x, onnx_number *out)
{
    return onnx_is_real(e->dtype) && set_real(e, floor(x[0]->real), out);
}

static bool round_up(const element *e, const onnx_number *const *x, onnx_number *out)
{
    return onnx_is_real(e->dtype) && set_real(e, ceil(x[0]->real), out);
}

static bool root(const element *e, const onnx_number *const *x, onnx_number *out)
{
    return onnx_is_real(e->dtype) && x[0]->real >= 0 && set_real(e, sqrt(x[0]->real), out);
}

/* ---- truth ---- */

static bool set_bool(bool value, onnx_number *out)
{
    *out = (onnx_number){ .integer = value };
    return true;
}

static bool equal(const element *e, const onnx_number *const *x, onnx_number *out)
{
    if (onnx_is_real(e->dtype))
        return set_bool(x[0]->real == x[1]->real, out);
    if (both_const(x))
        return set_bool(x[0]->integer == x[1]->integer, out);
    if (!is_natural(x[0]) || !is_natural(x[1]))
        return set_bool(false, out); /* an expression is not negative */
    if (most(e, x[0]) < least(e, x[1]) || most(e, x[1]) < least(e, x[0]))
        return set_bool(false, out);
    return apply(e, MUC_EXPR_EQ, x, out);
}

static bool less(const element *e, const onnx_number *const *x, onnx_number *out)
{
    if (onnx_is_real(e->dtype))
        return set_bool(x[0]->real < x[1]->real, out);
    if (both_const(x))
        return e->dtype != MUC_U64 && set_bool(x[0]->integer < x[1]->integer, out);
    if (!is_natural(x[0]) || !is_natural(x[1]))
        return (is_const(x[0]) ? x[0] : x[1])->integer < 0 && set_bool(is_const(x[0]), out);
    if (most(e, x[0]) < least(e, x[1]))
        return set_bool(true, out);
    return least(e, x[0]) >= most(e, x[1]) ? set_bool(false, out) : apply(e, MUC_EXPR_LT, x, out);
}

static bool invert(const element *e, const onnx_number *const *x, onnx_number *out)
{
    static const onnx_number zero = { .integer = 0 };

    return is_const(x[0]) ? set_bool(!x[0]->integer, out)
                          : apply(e, MUC_EXPR_EQ, (const onnx_number *[]){ x[0], &zero }, out);
}

static bool not_less(const element *e, const onnx_number *const *x, onnx_number *out)
{
    onnx_number below;

    if (onnx_is_real(e->dtype))
        return set_bool(x[0]->real >= x[1]->real, out);
    return less(e, x, &below) && invert(e, (const onnx_number *[]){ &below }, out);
}

static bool greater(const element *e, const onnx_number *const *x, onnx_number *out)
{
    return less(e, (const onnx_number *[]){ x[1], x[0] }, out);
}

static bool not_greater(const element *e, const onnx_number *const *x, onnx_number *out)
{
    return not_less(e, (const onnx_number *[]){ x[1], x[0] }, out);
}

static bool conjunction(const element *e, const onnx_number *const *x, onnx_number *out)
{
    (void)e;
    return both_const(x) && set_bool(x[0]->integer && x[1]->integer, out);
}

static bool disjunction(const element *e, const onnx_number *const *x, onnx_number *out)
{
    (void)e;
    return both_const(x) && set_bool(x[0]->integer || x[1]->integer, out);
}

static bool choose(const element *e, const onnx_number *const *x, onnx_number *out)
{
    if (is_const(x[0])) {
        *out = x[0]->integer ? *x[1] : *x[2];
        return true;
    }
    return !onnx_is_real(e->dtype) && is_natural(x[1]) && is_natural(x[2]) &&
           set_expr(
               e, muc_expr_sel(e->im->graph->pool, x[0]->expr, expr_of(e, x[1]), expr_of(e, x[2])),
               out);
}

static bool copy(const element *e, const onnx_number *const *x, onnx_number *out)
{
    (void)e;
    *out = *x[0];
    return true;
}

/* ---- over all elements ---- */

/* numpy's broadcast; false if the shapes do not fit */
static bool broadcast(const onnx_numbers *const *x, uint32_t count, uint32_t *rank, uint32_t *dims)
{
    *rank = 0;
    for (uint32_t i = 0; i < count; i++)
        *rank = x[i]->rank > *rank ? x[i]->rank : *rank;
    for (uint32_t d = 0; d < *rank; d++)
        dims[d] = 1;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t d = 0; d < x[i]->rank; d++) {
            uint32_t *dim = &dims[*rank - x[i]->rank + d];

            if (*dim != 1 && x[i]->dims[d] != 1 && x[i]->dims[d] != *dim)
                return false;
            *dim = *dim == 1 ? x[i]->dims[d] : *dim;
        }
    return true;
}

/* where element `at` of the broadcast result is in x */
static uint32_t source_of(const onnx_numbers *x, uint32_t rank, const uint32_t *dims, uint32_t at)
{
    uint32_t index = 0, stride = 1;

    for (uint32_t d = x->rank; d-- > 0;) {
        uint32_t dim = dims[rank - x->rank + d];

        index += (x->dims[d] == 1 ? 0 : at % dim) * stride;
        stride *= x->dims[d];
        at /= dim;
    }
    return index;
}

static muc_status map(onnx_call *call, const onnx_numbers *const *x, uint32_t count,
                      muc_dtype operands, muc_dtype result, element_fn *fn, onnx_numbers **out)
{
    const element e = { call->im, operands };
    uint32_t rank, dims[MUC_MAX_RANK];
    onnx_numbers *numbers;

    for (uint32_t i = 0; i < count; i++)
        if (!x[i])
            return MUC_OK;
    if (operands == MUC_F16 || operands == MUC_BF16 || !broadcast(x, count, &rank, dims))
        return MUC_OK;
    MUC_TRY(onnx_numbers_new(call->im, result, rank, dims, &numbers));
    for (uint32_t i = 0; numbers && i < numbers->count; i++) {
        const onnx_number *items[3];

        for (uint32_t j = 0; j < count; j++)
            items[j] = &x[j]->items[source_of(x[j], rank, dims, i)];
        if (!fn(&e, items, &numbers->items[i]))
            return muc_expr_status(call->im->graph->pool);
    }
    *out = numbers;
    return muc_expr_status(call->im->graph->pool);
}

/* n-ary operators fold from the left */
static muc_status fold(onnx_call *call, const onnx_numbers *const *x, element_fn *fn,
                       onnx_numbers **out)
{
    const onnx_numbers *pair[2] = { x[0], x[0] };

    if (!x[0])
        return MUC_OK;
    if (call->proto->n_input == 1)
        return map(call, x, 1, x[0]->dtype, x[0]->dtype, copy, out);
    for (uint32_t i = 1; i < call->proto->n_input; i++) {
        pair[1] = x[i];
        *out = NULL;
        MUC_TRY(map(call, pair, 2, x[0]->dtype, x[0]->dtype, fn, out));
        if (!*out)
            return MUC_OK;
        pair[0] = *out;
    }
    return MUC_OK;
}

#define UNARY(name, fn) \
    muc_status onnx_evaluate_##name(onnx_call *call, const onnx_numbers *const *x, \
                                    onnx_numbers **out) \
    { \
        return x[0] ? map(call, x, 1, x[0]->dtype, x[0]->dtype, fn, out) : MUC_OK; \
    }
#define BINARY(name, fn) \
    muc_status onnx_evaluate_##name(onnx_call *call, const onnx_numbers *const *x, \
                                    onnx_numbers **out) \
    { \
        return x[0] ? map(call, x, 2, x[0]->dtype, x[0]->dtype, fn, out) : MUC_OK; \
    }
#define COMPARE(name, fn) \
    muc_status onnx_evaluate_##name(onnx_call *call, const onnx_numbers *const *x, \
                                    onnx_numbers **out) \
    { \
        return x[0] ? map(call, x, 2, x[0]->dtype, MUC_BOOL, fn, out) : MUC_OK; \
    }
#define NARY(name, fn) \
    muc_status onnx_evaluate_##name(onnx_call *call, const onnx_numbers *const *x, \
                                    onnx_numbers **out) \
    { \
        return fold(call, x, fn, out); \
    }

UNARY(identity, copy)
UNARY(neg, negate)
UNARY(abs, absolute)
UNARY(floor, round_down)
UNARY(ceil, round_up)
UNARY(sqrt, root)
UNARY(not, invert)
BINARY(add, add)
BINARY(sub, subtract)
BINARY(mul, multiply)
BINARY(div, divide)
BINARY(mod, modulo)
BINARY(and, conjunction)
BINARY(or, disjunction)
COMPARE(equal, equal)
COMPARE(less, less)
COMPARE(less_or_equal, not_greater)
COMPARE(greater, greater)
COMPARE(greater_or_equal, not_less)
NARY(min, minimum)
NARY(max, maximum)

muc_status onnx_evaluate_where(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    return x[0] && x[1] ? map(call, x, 3, x[1]->dtype, x[1]->dtype, choose, out) : MUC_OK;
}

/* ---- cast ---- */

/* False where the standard leaves the result open. */
static bool cast_one(muc_dtype from, muc_dtype to, const onnx_number *x, onnx_number *out)
{
    const element result = { NULL, to };

    if (!is_const(x)) /* wide enough for every dimension */
        return copy(&result, &x, out) &&
               (to == MUC_I64 || to == MUC_I32 || to == MUC_U32 || to == MUC_U64);
    if (onnx_is_real(to))
        return set_real(&result, onnx_is_real(from) ? x->real : (double)x->integer, out);
    if (to == MUC_BOOL)
        return set_bool(onnx_is_real(from) ? x->real != 0 : x->integer != 0, out);
    if (!onnx_is_real(from))
        return set_integer(&result, (uint64_t)x->integer, out);
    if (!(x->real > -0x1p31 && x->real < 0x1p31))
        return false;
    *out = (onnx_number){ .integer = (int64_t)x->real };
    return wrap(to, (uint64_t)out->integer) == out->integer;
}

muc_status onnx_evaluate_cast(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    onnx_numbers *numbers;
    muc_dtype to;
    int64_t number;

    MUC_TRY(onnx_integer(call, "to", 0, &number));
    if (!x[0] || x[0]->dtype == MUC_U64)
        return MUC_OK;
    MUC_TRY(
        muc_onnx_dtype(call->im->ctx, call->im->source->path, call->name, (int32_t)number, &to));
    if (to == MUC_F16 || to == MUC_BF16)
        return MUC_OK;
    MUC_TRY(onnx_numbers_new(call->im, to, x[0]->rank, x[0]->dims, &numbers));
    for (uint32_t i = 0; numbers && i < numbers->count; i++)
        if (!cast_one(x[0]->dtype, to, &x[0]->items[i], &numbers->items[i]))
            return MUC_OK;
    *out = numbers;
    return MUC_OK;
}
