/* wanted_shapes.c - computes the dimensions that the operands of Slice and Reshape ask for. */
#include <inttypes.h>

#include "formats/onnx/onnx_import.h"
#include "graph/factors.h"

/* ---- slices ---- */

typedef struct slicer {
    const onnx_call *call;
    muc_expr_pool *pool;
    muc_expr dim;
} slicer;

static muc_expr constant(const slicer *s, uint64_t value)
{
    return muc_expr_const(s->pool, value > UINT32_MAX ? UINT32_MAX : (uint32_t)value);
}

/* true if an expression is made of the dimension by what makes nothing larger */
static bool is_part(const slicer *s, muc_expr e)
{
    const muc_expr_node *node = muc_expr_get(s->pool, e);

    return e == s->dim ||
           ((node->op == MUC_EXPR_SUB || node->op == MUC_EXPR_DIV) && node->operands[0] == s->dim);
}

/* a place of 0..dim, counted from the end if negative and clamped */
static muc_expr clamp_place(const slicer *s, const onnx_number *n)
{
    if (n->expr != MUC_EXPR_NONE && is_part(s, n->expr))
        return n->expr;
    if (n->expr != MUC_EXPR_NONE)
        return muc_expr_min(s->pool, n->expr, s->dim);
    if (n->integer >= 0)
        return muc_expr_min(s->pool, constant(s, (uint64_t)n->integer), s->dim);
    /* subtraction stops at 0; the least integer has no negative */
    return muc_expr_sub(s->pool, s->dim, constant(s, 0 - (uint64_t)n->integer));
}

/* How far before the end of the dimension a place is; false where that depends on the dimension. */
static bool from_end(const slicer *s, const onnx_number *n, uint64_t *out)
{
    const muc_expr_node *dim = muc_expr_get(s->pool, s->dim);

    *out = n->integer < 0 ? 0 - (uint64_t)n->integer : 0;
    return n->expr == MUC_EXPR_NONE && *out <= dim->lo && (n->integer < 0 || n->integer >= dim->hi);
}

/* Backwards from start, at most dim - 1, down to the one after end, which is -1 for all of it:
 * size is what is left of one more than start, less one more than end. */
static muc_status backwards(const slicer *s, const onnx_number *start, const onnx_number *end,
                            uint32_t stride, onnx_range *out)
{
    muc_expr_pool *pool = s->pool;
    muc_expr after, before;

    if (start->expr != MUC_EXPR_NONE || end->expr != MUC_EXPR_NONE)
        return onnx_fail(s->call, MUC_UNSUPPORTED,
                         "the slice goes backwards from or to what dimensions decide");
    /* one more than each, as places of 0..dim */
    after = start->integer >= 0
                ? muc_expr_min(pool, constant(s, (uint64_t)start->integer + 1), s->dim)
                : muc_expr_sub(pool, s->dim, constant(s, 0 - (uint64_t)start->integer - 1));
    before = end->integer >= 0
                 ? muc_expr_min(pool, constant(s, (uint64_t)end->integer + 1), s->dim)
                 : muc_expr_sub(pool, s->dim, constant(s, 0 - (uint64_t)end->integer - 1));
    out->start = muc_expr_sub_const(pool, after, 1);
    out->size = muc_expr_cdiv(pool, muc_expr_sub(pool, after, before), stride);
    return muc_expr_status(pool);
}

muc_status onnx_slice_range(const onnx_call *call, muc_expr dim, const onnx_number *start,
                            const onnx_number *end, int64_t step, onnx_range *out)
{
    const slicer s = { call, call->im->graph->pool, dim };
    uint64_t first, last, stride = step < 0 ? 0 - (uint64_t)step : (uint64_t)step;

    if (stride == 0)
        return onnx_fail(call, MUC_MALFORMED, "the slice has steps of 0");
    if (stride > INT32_MAX)
        stride = INT32_MAX;
    if (step < 0)
        return backwards(&s, start, end, (uint32_t)stride, out);
    out->start = clamp_place(&s, start);
    if (from_end(&s, start, &first) && from_end(&s, end, &last)) {
        first -= last < first ? last : first; /* elements between, whatever the dimension */
        out->size = constant(&s, (first + stride - 1) / stride);
        return muc_expr_status(s.pool);
    }
    out->size = muc_expr_cdiv(s.pool, muc_expr_sub(s.pool, clamp_place(&s, end), out->start),
                              (uint32_t)stride);
    return muc_expr_status(s.pool);
}

/* ---- reshape ---- */

/* whole / part; MUC_EXPR_NONE if it does not divide */
static muc_expr quotient(muc_expr_pool *pool, muc_factors *whole, muc_factors *part)
{
    muc_expr e;

    if (whole->constant == 0)
        return muc_expr_const(pool, 0);
    muc_factors_cancel(pool, whole, part, true);
    if (part->count || part->constant > UINT32_MAX || (part->constant > 1 && !whole->count))
        return MUC_EXPR_NONE;
    e = muc_factors_expr(pool, whole);
    return e == MUC_EXPR_NONE ? e : muc_expr_div(pool, e, (uint32_t)part->constant);
}

/* the dimension that makes both shapes have as many elements */
static muc_status infer(onnx_call *call, const onnx_shape *from, onnx_shape *to, uint32_t hole)
{
    muc_expr_pool *pool = call->im->graph->pool;
    muc_factors whole = { .constant = 1 }, others = { .constant = 1 };
    bool fits = true;

    for (uint32_t i = 0; i < from->rank; i++)
        fits = fits && muc_factors_times(pool, &whole, from->dims[i]);
    for (uint32_t i = 0; i < to->rank; i++)
        fits = fits && (i == hole || muc_factors_times(pool, &others, to->dims[i]));
    if (fits && others.constant == 0)
        return onnx_fail(call, MUC_MALFORMED, "dimension %u follows from no number of elements",
                         hole);
    to->dims[hole] = fits ? quotient(pool, &whole, &others) : MUC_EXPR_NONE;
    MUC_TRY(muc_expr_status(pool));
    if (to->dims[hole] == MUC_EXPR_NONE)
        return onnx_fail(call, MUC_UNSUPPORTED, "dimension %u does not follow from the others",
                         hole);
    return MUC_OK;
}

muc_status onnx_reshape_dims(onnx_call *call, const onnx_shape *from, const onnx_numbers *wanted,
                             bool allow_zero, onnx_shape *out)
{
    uint32_t hole = UINT32_MAX;

    if (wanted->rank > 1 || wanted->count > MUC_GRAPH_MAX_RANK)
        return onnx_fail(call, MUC_UNSUPPORTED, "a shape of rank %u and %u dimensions, at most %d",
                         wanted->rank, wanted->count, MUC_GRAPH_MAX_RANK);
    out->rank = wanted->count;
    for (uint32_t i = 0; i < out->rank; i++) {
        const onnx_number *n = &wanted->items[i];

        if (n->expr == MUC_EXPR_NONE && n->integer == -1) {
            if (hole != UINT32_MAX)
                return onnx_fail(call, MUC_MALFORMED, "two dimensions are -1");
            hole = i;
        } else if (n->expr == MUC_EXPR_NONE && n->integer == 0 && !allow_zero) {
            if (i >= from->rank)
                return onnx_fail(call, MUC_MALFORMED, "no dimension %u to keep", i);
            out->dims[i] = from->dims[i];
        } else if (!onnx_number_expr(call->im, wanted, i, &out->dims[i])) {
            return onnx_fail(call, MUC_MALFORMED, "dimension %u is %" PRId64, i, n->integer);
        }
    }
    return hole == UINT32_MAX ? MUC_OK : infer(call, from, out, hole);
}
