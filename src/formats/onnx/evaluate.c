/* evaluate.c - the numbers that a node gives of numbers which are known while reading.
 *
 * A node of constants is imported into a graph of its own, which the reference runs. Where elements
 * are expressions of dimensions, an operator that moves elements is run on the places of its
 * operands' elements, and one that computes with 1 instead of each expression, before its function
 * of expressions gives the elements that depend on one. An evaluator that finds a number that it
 * cannot know leaves *out NULL, and the node is imported as any other.
 */
#include "formats/onnx/evaluate.h"

#include <string.h>

#include "ref/ref.h"

static bool is_const(const onnx_number *n)
{
    return n->expr == MUC_EXPR_NONE;
}

/* ---- by the reference ---- */

static bool are_known(const onnx_call *call, const onnx_numbers *const *x, bool const_alone)
{
    for (uint32_t i = 0; i < call->proto->n_input; i++)
        if (onnx_has_input(call, i) && (!x[i] || (const_alone && !onnx_all_const(x[i]))))
            return false;
    return true;
}

/* A tensor of a graph without inputs, unless it is large or its dimensions are open. */
static muc_status compute(onnx_call *call, uint32_t id, onnx_numbers **out)
{
    onnx_import *im = call->im;
    const muc_tensor *tensor = onnx_tensor(call, id);
    muc_tensor_view view = { .name = tensor->name, .dtype = tensor->dtype, .rank = tensor->rank };
    muc_status status;

    for (uint32_t i = 0; i < tensor->rank; i++)
        view.dims[i] = muc_expr_get(im->graph->pool, tensor->dims[i])->immediate;
    MUC_TRY(muc_tensor_measure(im->ctx, &view));
    if (view.elements > ONNX_MAX_NUMBERS)
        return MUC_OK;
    status = muc_ref_compute(im->ctx, im->graph, &id, 1, &im->arena, &view.data);
    if (status == MUC_UNSUPPORTED) { /* to be told by whoever needs it */
        muc_error_clear(im->ctx);
        return MUC_OK;
    }
    MUC_TRY(status);
    return onnx_numbers_of_view(im, &view, out);
}

/* the node of operands x, into the import's graph */
static muc_status import_alone(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    onnx_frame frame = *call->frame;
    onnx_call alone = *call;
    const onnx_value *result;

    frame.scope = (onnx_scope){ 0 };
    frame.depth++; /* what the file says of types is of values outside */
    alone.frame = &frame;
    alone.integers = false;
    for (uint32_t i = 0; i < call->proto->n_input; i++) {
        onnx_value *value;

        if (!onnx_has_input(call, i) || onnx_scope_find(&frame.scope, call->proto->input[i]))
            continue;
        MUC_TRY(onnx_scope_add(call->im, &frame.scope, call->proto->input[i], &value));
        value->numbers = x[i];
    }
    MUC_TRY(call->row->import(&alone));
    call->used |= alone.used;
    result = onnx_scope_find(&frame.scope, call->proto->output[0]);
    return result && result->tensor != MUC_NO_ID ? compute(call, result->tensor, out) : MUC_OK;
}

/* does an operand follow from arrays that the user gave, whose types need not be the file's? */
static bool is_given(const onnx_call *call, const onnx_numbers *const *x)
{
    for (uint32_t i = 0; i < call->proto->n_input; i++)
        if (x[i] && x[i]->given)
            return true;
    return false;
}

/* The result of constants. */
static muc_status run(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    muc_graph *graph = call->im->graph;
    muc_status status;

    if (!are_known(call, x, true))
        return MUC_OK;
    MUC_TRY(muc_graph_new(call->im->ctx, graph->name, &call->im->graph));
    status = import_alone(call, x, out);
    muc_graph_free(call->im->graph);
    call->im->graph = graph;
    if ((status == MUC_MALFORMED || status == MUC_UNSUPPORTED) && is_given(call, x)) {
        muc_error_clear(call->im->ctx); /* the node itself, imported next, tells what is wrong */
        *out = NULL;
        return MUC_OK;
    }
    return status;
}

/* ---- elements moved ---- */

/* Each element is its place: operand i's are from i * ONNX_MAX_NUMBERS on. */
static muc_status places_of(onnx_call *call, const onnx_numbers *x, uint32_t i, onnx_numbers **out)
{
    MUC_TRY(onnx_numbers_new(call->im, MUC_I64, x->rank, x->dims, out));
    for (uint32_t k = 0; *out && k < x->count; k++)
        (*out)->items[k].integer = (int64_t)i * ONNX_MAX_NUMBERS + k;
    return MUC_OK;
}

/* an operator whose first inputs, so many, are what is moved */
static muc_status move(onnx_call *call, const onnx_numbers *const *x, uint32_t count,
                       onnx_numbers **out)
{
    const onnx_numbers *operands[ONNX_MAX_OPERANDS] = { NULL };
    onnx_numbers *places = NULL, *numbers;

    if (!are_known(call, x, false))
        return MUC_OK;
    memcpy(operands, x, call->proto->n_input * sizeof(*x));
    for (uint32_t i = 0; i < count; i++) {
        if (!x[i] || x[i]->dtype != x[0]->dtype)
            return MUC_OK; /* for the import to name */
        MUC_TRY(places_of(call, x[i], i, &numbers));
        operands[i] = numbers;
        if (!numbers)
            return MUC_OK;
    }
    MUC_TRY(run(call, operands, &places));
    if (!places)
        return MUC_OK;
    MUC_TRY(onnx_numbers_new(call->im, x[0]->dtype, places->rank, places->dims, out));
    for (uint32_t i = 0; *out && i < places->count; i++) {
        int64_t place = places->items[i].integer;

        (*out)->items[i] = x[place / ONNX_MAX_NUMBERS]->items[place % ONNX_MAX_NUMBERS];
    }
    return MUC_OK;
}

muc_status onnx_evaluate_moves(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    return call->proto->n_input ? move(call, x, 1, out) : MUC_OK;
}

/* of shapes, which are vectors; larger constants may grow */
static muc_status move_vectors(onnx_call *call, const onnx_numbers *const *x, uint32_t count,
                               onnx_numbers **out)
{
    return call->proto->n_input && x[0] && x[0]->rank < 2 ? move(call, x, count, out) : MUC_OK;
}

muc_status onnx_evaluate_vectors(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    return move_vectors(call, x, 1, out);
}

muc_status onnx_evaluate_joins(onnx_call *call, const onnx_numbers *const *x, onnx_numbers **out)
{
    return move_vectors(call, x, onnx_input_count(call), out);
}

/* ---- functions of expressions ---- */

/* One element of the result, of the operands x of which an expression is one; false where it is not
 * known: expressions are never negative. */
typedef struct element {
    muc_expr_pool *pool;
    muc_dtype dtype; /* of the result */
    uint32_t count;
    onnx_number x[ONNX_MAX_OPERANDS];
} element;
typedef bool element_fn(const element *e, onnx_number *out);

static onnx_number constant(int64_t value)
{
    return (onnx_number){ .integer = value };
}

static muc_expr expr_of(const element *e, const onnx_number *n)
{
    return is_const(n) ? muc_expr_const(e->pool, (uint32_t)n->integer) : n->expr;
}

/* an expression, or a constant that could be one */
static bool is_natural(const onnx_number *n)
{
    return !is_const(n) || (n->integer >= 0 && n->integer <= UINT32_MAX);
}

static uint32_t least(const element *e, const onnx_number *n)
{
    return is_const(n) ? (uint32_t)n->integer : muc_expr_get(e->pool, n->expr)->lo;
}

static uint32_t most(const element *e, const onnx_number *n)
{
    return is_const(n) ? (uint32_t)n->integer : muc_expr_get(e->pool, n->expr)->hi;
}

onnx_number onnx_number_of(const muc_expr_pool *pool, muc_expr e)
{
    return muc_expr_is_const(pool, e) ? constant(muc_expr_get(pool, e)->immediate)
                                      : (onnx_number){ .expr = e };
}

static bool set_expr(const element *e, muc_expr expr, onnx_number *out)
{
    if (expr != MUC_EXPR_NONE)
        *out = onnx_number_of(e->pool, expr);
    return expr != MUC_EXPR_NONE;
}

static bool apply(const element *e, muc_expr_op op, onnx_number a, onnx_number b, onnx_number *out)
{
    return is_natural(&a) && is_natural(&b) &&
           set_expr(e, muc_expr_apply(e->pool, op, expr_of(e, &a), expr_of(e, &b), MUC_EXPR_NONE),
                    out);
}

static bool subtract(const element *e, onnx_number a, onnx_number b, onnx_number *out)
{
    if (is_const(&b) && b.integer < 0 && b.integer > -(INT64_C(1) << 32))
        return apply(e, MUC_EXPR_ADD, a, constant(-b.integer), out);
    if (a.expr == b.expr) {
        *out = constant(0);
        return true;
    }
    return is_natural(&a) && is_natural(&b) && most(e, &b) <= least(e, &a) &&
           apply(e, MUC_EXPR_SUB, a, b, out);
}

static bool add(const element *e, onnx_number *out)
{
    uint32_t number = is_const(&e->x[0]) ? 0 : 1; /* which may be negative */
    onnx_number a = e->x[!number], b = e->x[number];

    return is_const(&b) && b.integer < 0 ? subtract(e, a, constant(-b.integer), out)
                                         : apply(e, MUC_EXPR_ADD, a, b, out);
}

static bool divide(const element *e, onnx_number *out)
{
    if (e->x[0].expr == e->x[1].expr && least(e, &e->x[0]) > 0) {
        *out = constant(1);
        return true;
    }
    return is_const(&e->x[1]) && e->x[1].integer != 0 &&
           apply(e, MUC_EXPR_DIV, e->x[0], e->x[1], out);
}

static bool extreme(const element *e, bool max, onnx_number *out)
{
    *out = e->x[0];
    for (uint32_t i = 1; i < e->count; i++) {
        onnx_number a = *out, b = e->x[i];
        bool negative = (is_const(&a) && a.integer < 0) || (is_const(&b) && b.integer < 0);

        if (negative && is_const(&a) && is_const(&b))
            *out = (a.integer < b.integer) == max ? b : a;
        else if (negative)
            *out = is_const(&a) == max ? b : a;
        else if (!apply(e, max ? MUC_EXPR_MAX : MUC_EXPR_MIN, a, b, out))
            return false;
    }
    return true;
}

/* to 0, if there is but one operand: Not */
static bool equal(const element *e, onnx_number *out)
{
    const onnx_number *a = &e->x[0], *b = &e->x[1];

    *out = constant(0);
    return !is_natural(a) || !is_natural(b) || most(e, a) < least(e, b) ||
           most(e, b) < least(e, a) || apply(e, MUC_EXPR_EQ, *a, *b, out);
}

static bool is_less(const element *e, onnx_number a, onnx_number b, onnx_number *out)
{
    if (!is_natural(&a) || !is_natural(&b)) {
        *out = constant(is_const(&a));
        return (is_const(&a) ? a : b).integer < 0;
    }
    *out = constant(most(e, &a) < least(e, &b));
    return out->integer || least(e, &a) >= most(e, &b) || apply(e, MUC_EXPR_LT, a, b, out);
}

static bool invert(const element *e, onnx_number x, onnx_number *out)
{
    *out = constant(!x.integer);
    return is_const(&x) || apply(e, MUC_EXPR_EQ, x, constant(0), out);
}

static bool where(const element *e, onnx_number *out)
{
    const onnx_number *a = &e->x[1], *b = &e->x[2];

    *out = e->x[0].integer ? *a : *b;
    return is_const(&e->x[0]) ||
           (!onnx_is_real(e->dtype) && is_natural(a) && is_natural(b) &&
            set_expr(e, muc_expr_sel(e->pool, e->x[0].expr, expr_of(e, a), expr_of(e, b)), out));
}

/* types wide enough for every dimension */
static bool copy(const element *e, onnx_number *out)
{
    *out = e->x[0];
    return e->dtype == MUC_I64 || e->dtype == MUC_I32 || e->dtype == MUC_U32 || e->dtype == MUC_U64;
}

static bool unknown(const element *e, onnx_number *out)
{
    (void)e;
    (void)out;
    return false;
}

/* ---- over all elements ---- */

/* where element `at` of the broadcast result is in x */
static uint32_t source_of(const onnx_numbers *x, const onnx_numbers *result, uint32_t at)
{
    uint32_t index = 0, stride = 1;

    for (uint32_t d = x->rank; d-- > 0;) {
        uint32_t dim = result->dims[result->rank - x->rank + d];

        index += (x->dims[d] == 1 ? 0 : at % dim) * stride;
        stride *= x->dims[d];
        at /= dim;
    }
    return index;
}

/* the elements that depend on expressions; *known false if one of them is not known */
static bool set_elements(onnx_call *call, const onnx_numbers *const *x, element_fn *fn,
                         onnx_numbers *out)
{
    element e = { call->im->graph->pool, out->dtype, onnx_input_count(call), { { 0 } } };

    for (uint32_t i = 0; i < out->count; i++) {
        bool depends = false;

        for (uint32_t j = 0; j < e.count; j++) {
            e.x[j] = x[j]->items[source_of(x[j], out, i)];
            depends = depends || !is_const(&e.x[j]);
        }
        if (depends && !fn(&e, &out->items[i]))
            return false;
    }
    return true;
}

static muc_status map(onnx_call *call, const onnx_numbers *const *x, element_fn *fn,
                      onnx_numbers **out)
{
    const onnx_numbers *operands[ONNX_MAX_OPERANDS] = { NULL };
    bool depends = false;

    if (!are_known(call, x, fn == unknown))
        return MUC_OK;
    for (uint32_t i = 0; i < call->proto->n_input; i++) {
        onnx_numbers *numbers;

        operands[i] = x[i];
        if (!x[i] || onnx_all_const(x[i]))
            continue;
        depends = true;
        MUC_TRY(onnx_numbers_new(call->im, x[i]->dtype, x[i]->rank, x[i]->dims, &numbers));
        operands[i] = numbers;
        for (uint32_t k = 0; numbers && k < numbers->count; k++)
            numbers->items[k] = is_const(&x[i]->items[k]) ? x[i]->items[k] : constant(1);
    }
    MUC_TRY(run(call, operands, out));
    if (*out && depends && !set_elements(call, x, fn, *out))
        *out = NULL;
    return muc_expr_status(call->im->graph->pool);
}

#define EVALUATOR(name, fn) \
    muc_status onnx_evaluate_##name(onnx_call *call, const onnx_numbers *const *x, \
                                    onnx_numbers **out) \
    { \
        return map(call, x, fn, out); \
    }
#define ELEMENT(name, value) \
    static bool element_##name(const element *e, onnx_number *out) \
    { \
        return value; \
    } \
    EVALUATOR(name, element_##name)

EVALUATOR(constants, unknown)
EVALUATOR(copy, copy)
EVALUATOR(add, add)
EVALUATOR(div, divide)
EVALUATOR(equal, equal)
EVALUATOR(where, where)
ELEMENT(sub, subtract(e, e->x[0], e->x[1], out))
ELEMENT(mul, apply(e, MUC_EXPR_MUL, e->x[0], e->x[1], out))
/* of naturals, where every definition of the rest is the same */
ELEMENT(mod,
        is_const(&e->x[1]) && e->x[1].integer > 0 && apply(e, MUC_EXPR_MOD, e->x[0], e->x[1], out))
ELEMENT(min, extreme(e, false, out))
ELEMENT(max, extreme(e, true, out))
ELEMENT(less, is_less(e, e->x[0], e->x[1], out))
ELEMENT(greater, is_less(e, e->x[1], e->x[0], out))
ELEMENT(less_or_equal, is_less(e, e->x[1], e->x[0], out) && invert(e, *out, out))
ELEMENT(greater_or_equal, is_less(e, e->x[0], e->x[1], out) && invert(e, *out, out))
