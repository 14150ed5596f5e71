/* indexed.c - elements at places that are data: gathered, scattered, turned round, or ordered. */
#include <string.h>

#include "graph/graph_check.h"
#include "graph/shape.h"
#include "operators/nest.h"

/* ---- places that indices name ---- */

/* no dimension of input i but axis is longer than input 0's */
static muc_status expect_within(const muc_rule *r, uint32_t i, uint32_t axis)
{
    const muc_tensor *x = muc_rule_input(r, 0), *t = muc_rule_input(r, i);

    if (t->rank != x->rank)
        return muc_rule_unexpected(r, i, "rank %u", x->rank);
    for (uint32_t d = 0; d < x->rank; d++)
        if (d != axis)
            MUC_TRY(
                muc_rule_require(r, "indices along a dimension", t->dims[d], false, x->dims[d]));
    return MUC_OK;
}

muc_status muc_shape_gather_elements(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0);
    uint32_t axis;

    MUC_TRY(muc_rule_expect_indices(r, 1));
    MUC_TRY(muc_rule_axis(r, MUC_KEY_AXIS, x->rank, &axis));
    MUC_TRY(expect_within(r, 1, axis));
    muc_rule_like(r, 0, muc_rule_input(r, 1));
    r->outputs[0].dtype = x->dtype;
    return MUC_OK;
}

static muc_status check_reduction(const muc_rule *r)
{
    if (muc_rule_input(r, 0)->dtype == MUC_BOOL &&
        muc_node_word_or(r->node, MUC_KEY_REDUCTION, MUC_WORD_NONE) != MUC_WORD_NONE)
        return muc_rule_unexpected(r, 0, "numbers to combine");
    return MUC_OK;
}

muc_status muc_shape_scatter_elements(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0), *indices = muc_rule_input(r, 1);
    muc_tensor expected = *indices;
    uint32_t axis;

    MUC_TRY(muc_rule_expect_indices(r, 1));
    MUC_TRY(muc_rule_axis(r, MUC_KEY_AXIS, x->rank, &axis));
    MUC_TRY(expect_within(r, 1, axis));
    MUC_TRY(check_reduction(r));
    expected.dtype = x->dtype;
    if (!muc_tensor_same_shape(muc_rule_input(r, 2), &expected))
        return muc_rule_unexpected(r, 2, "input 0's type and the indices' shape");
    muc_rule_like(r, 0, x);
    return MUC_OK;
}

/* elements of a tuple of indices, input 1's last dimension, into input 0 after batch dimensions */
static muc_status tuple(const muc_rule *r, uint32_t batch, uint32_t *out)
{
    const muc_tensor *x = muc_rule_input(r, 0), *indices = muc_rule_input(r, 1);

    MUC_TRY(muc_rule_expect_indices(r, 1));
    if (indices->rank < batch + 1 || x->rank < batch + 1 ||
        !muc_rule_const(r, indices->dims[indices->rank - 1], out) || *out < 1 ||
        *out > x->rank - batch || memcmp(x->dims, indices->dims, batch * sizeof(*x->dims)) != 0)
        return muc_rule_unexpected(r, 1, "tuples of 1..%d indices after %u shared dimensions",
                                   (int)x->rank - (int)batch, batch);
    return MUC_OK;
}

/* what the tuples choose: the indices' dimensions but the last, then x's after the tuple */
static muc_status chosen(const muc_rule *r, uint32_t after, muc_tensor *out)
{
    const muc_tensor *x = muc_rule_input(r, 0), *indices = muc_rule_input(r, 1);
    uint32_t before = indices->rank - 1;

    if (before + x->rank - after > MUC_GRAPH_MAX_RANK)
        return muc_rule_unexpected(r, 1, "a lower rank");
    out->dtype = x->dtype;
    out->rank = before + x->rank - after;
    memcpy(out->dims, indices->dims, before * sizeof(*out->dims));
    memcpy(out->dims + before, x->dims + after, (x->rank - after) * sizeof(*out->dims));
    return MUC_OK;
}

muc_status muc_shape_gather_nd(const muc_rule *r)
{
    uint32_t batch, length;

    MUC_TRY(muc_rule_integer(r, MUC_KEY_BATCH_DIMS, 0, MUC_GRAPH_MAX_RANK));
    batch = (uint32_t)muc_node_integer_or(r->node, MUC_KEY_BATCH_DIMS, 0);
    MUC_TRY(tuple(r, batch, &length));
    return chosen(r, batch + length, &r->outputs[0]);
}

muc_status muc_shape_scatter_nd(const muc_rule *r)
{
    muc_tensor expected;
    uint32_t length;

    MUC_TRY(tuple(r, 0, &length));
    MUC_TRY(chosen(r, length, &expected));
    MUC_TRY(check_reduction(r));
    if (!muc_tensor_same_shape(muc_rule_input(r, 2), &expected))
        return muc_rule_unexpected(r, 2, "what the indices choose of input 0");
    muc_rule_like(r, 0, muc_rule_input(r, 0));
    return MUC_OK;
}

/* Tuple t of indices names elements of x from `at` on: for each index its place along a dimension,
 * `extents` of `steps`, and t's own place, counted in parts, `sizes` of `strides`. */
#define EIGHT(X, name) \
    X(name##0) X(name##1) X(name##2) X(name##3) X(name##4) X(name##5) X(name##6) X(name##7)
#define PLACE_NUMBERS(X) \
    X(elements) \
    X(tuples) \
    X(length) \
    X(run) \
    X(reduction) X(parts) EIGHT(X, extent) EIGHT(X, step) EIGHT(X, size) EIGHT(X, stride)

typedef struct place_numbers {
    size_t elements, tuples, length, run, reduction, parts;
    size_t extents[MUC_GRAPH_MAX_RANK], steps[MUC_GRAPH_MAX_RANK];
    size_t sizes[MUC_GRAPH_MAX_RANK], strides[MUC_GRAPH_MAX_RANK];
} place_numbers;

/* the next part, of less weight */
static void add_part(place_numbers *p, size_t size, size_t stride)
{
    if (size == 1 || (p->parts == 0 && stride == 0))
        return;
    if (p->parts == 0 || p->strides[p->parts - 1] != size * stride)
        p->sizes[p->parts++] = 1;
    p->sizes[p->parts - 1] *= size;
    p->strides[p->parts - 1] = stride;
}

static void measure_elements(const muc_nest_shape *x, const muc_nest_shape *indices, uint32_t axis,
                             place_numbers *p)
{
    p->tuples = muc_nest_elements(indices, 0, indices->rank);
    p->length = p->run = 1;
    p->extents[0] = x->dims[axis];
    p->steps[0] = muc_nest_elements(x, axis + 1, x->rank);
    for (uint32_t d = 0; d < x->rank; d++)
        add_part(p, indices->dims[d], d == axis ? 0 : muc_nest_elements(x, d + 1, x->rank));
}

static void measure_slices(const muc_nest_shape *x, const muc_nest_shape *indices, uint32_t first,
                           place_numbers *p)
{
    uint32_t last = indices->rank - 1;

    p->tuples = muc_nest_elements(indices, 0, last);
    p->length = indices->dims[last];
    p->run = muc_nest_elements(x, first + (uint32_t)p->length, x->rank);
    for (uint32_t i = 0; i < p->length; i++) {
        p->extents[i] = x->dims[first + i];
        p->steps[i] = muc_nest_elements(x, first + i + 1, x->rank);
    }
    add_part(p, muc_nest_elements(indices, 0, first), muc_nest_elements(x, first, x->rank));
    add_part(p, muc_nest_elements(indices, first, last), 0);
}

static void measure_places(const muc_nest_node *n, void *out)
{
    const muc_nest_shape *x = &n->inputs[0], *indices = &n->inputs[1];
    const muc_attribute *along = muc_node_attribute(n->node, MUC_KEY_AXIS);
    muc_word word = muc_node_word_or(n->node, MUC_KEY_REDUCTION, MUC_WORD_NONE);
    place_numbers p = { .elements = muc_nest_elements(x, 0, x->rank) };

    p.reduction = word == MUC_WORD_ADD   ? 1
                  : word == MUC_WORD_MUL ? 2
                  : word == MUC_WORD_MIN ? 3
                  : word == MUC_WORD_MAX ? 4
                                         : 0;
    if (along)
        measure_elements(x, indices, (uint32_t)along->value.integer, &p);
    else
        measure_slices(x, indices, (uint32_t)muc_node_integer_or(n->node, MUC_KEY_BATCH_DIMS, 0),
                       &p);
    *(place_numbers *)out = p;
}

/* gather_elements and gather_nd */
MUC_NEST_MOVE(gather_places, PLACE_NUMBERS, measure_places, MUC_NEST_INDICES, int64_t, {
    const INDEX extents[8] = { extent0, extent1, extent2, extent3,
                               extent4, extent5, extent6, extent7 };
    const INDEX steps[8] = { step0, step1, step2, step3, step4, step5, step6, step7 };
    const INDEX sizes[8] = { size0, size1, size2, size3, size4, size5, size6, size7 };
    const INDEX strides[8] = { stride0, stride1, stride2, stride3,
                               stride4, stride5, stride6, stride7 };

    for (INDEX t = 0; t < tuples; t++) {
        INDEX at = 0;
        INDEX rest = t;

        for (INDEX i = 0; i < length; i++) {
            at += AT(b[t * length + i], extents[i]) * steps[i];
        }
        for (INDEX d = parts; d-- > 0;) {
            at += rest % sizes[d] * strides[d];
            rest /= sizes[d];
        }
        for (INDEX i = 0; i < run; i++) {
            y[t * run + i] = a[at + i];
        }
    }
})

enum { SCATTERS = MUC_NEST_INDICES | MUC_NEST_COMBINES | MUC_NEST_IN_PLACE };

/* scatter_elements and scatter_nd */
MUC_NEST_ANY(scatter_places, PLACE_NUMBERS, measure_places, SCATTERS, int64_t, {
    const INDEX extents[8] = { extent0, extent1, extent2, extent3,
                               extent4, extent5, extent6, extent7 };
    const INDEX steps[8] = { step0, step1, step2, step3, step4, step5, step6, step7 };
    const INDEX sizes[8] = { size0, size1, size2, size3, size4, size5, size6, size7 };
    const INDEX strides[8] = { stride0, stride1, stride2, stride3,
                               stride4, stride5, stride6, stride7 };

    for (INDEX i = 0; i < elements; i++) {
        y[i] = a[i];
    }
    for (INDEX t = 0; t < tuples; t++) {
        INDEX at = 0;
        INDEX rest = t;

        for (INDEX i = 0; i < length; i++) {
            at += AT(b[t * length + i], extents[i]) * steps[i];
        }
        for (INDEX d = parts; d-- > 0;) {
            at += rest % sizes[d] * strides[d];
            rest /= sizes[d];
        }
        for (INDEX i = 0; i < run; i++) {
            const T with = c[t * run + i];
            const T held = y[at + i];

            y[at + i] = reduction == 1   ? (T)((A)held + (A)with)
                        : reduction == 2 ? (T)((A)held * (A)with)
                        : reduction == 3 ? LESSER(with, held)
                        : reduction == 4 ? LARGER(with, held)
                                         : with;
        }
    }
})

/* ---- sequences ---- */

muc_status muc_shape_reverse_sequence(const muc_rule *r)
{
    const muc_tensor *x = muc_rule_input(r, 0), *lengths = muc_rule_input(r, 1);
    uint32_t batch, time;

    MUC_TRY(muc_rule_expect_indices(r, 1));
    MUC_TRY(muc_rule_axis(r, MUC_KEY_BATCH_AXIS, x->rank, &batch));
    MUC_TRY(muc_rule_axis(r, MUC_KEY_TIME_AXIS, x->rank, &time));
    if (batch == time)
        return muc_rule_fail(r, "batch_axis and time_axis are both %u", batch);
    if (lengths->rank != 1 || lengths->dims[0] != x->dims[batch])
        return muc_rule_unexpected(r, 1, "a length for each batch");
    muc_rule_like(r, 0, x);
    return MUC_OK;
}

#define SEQUENCE_NUMBERS(X) X(elements) X(steps) X(inner) X(batches) X(each)

typedef struct sequence_numbers {
    SEQUENCE_NUMBERS(MUC_NEST_FIELD)
} sequence_numbers;

static void measure_sequences(const muc_nest_node *n, void *out)
{
    const muc_nest_shape *x = &n->inputs[0];
    muc_nest_along time =
        muc_nest_along_of(x, (uint32_t)muc_node_integer(n->node, MUC_KEY_TIME_AXIS));
    muc_nest_along batch =
        muc_nest_along_of(x, (uint32_t)muc_node_integer(n->node, MUC_KEY_BATCH_AXIS));

    *(sequence_numbers *)out = (sequence_numbers){
        muc_nest_elements(x, 0, x->rank), time.extent, time.inner, batch.extent, batch.inner,
    };
}

MUC_NEST_MOVE(reverse_sequence, SEQUENCE_NUMBERS, measure_sequences, MUC_NEST_INDICES, int64_t, {
    for (INDEX i = 0; i < elements; i++) {
        const INDEX step = i / inner % steps;
        const INDEX length = (INDEX)b[i / each % batches];

        y[i] = a[step < length ? i + (length - 1 - 2 * step) * inner : i];
    }
})

/* ---- the greatest in order ---- */

muc_status muc_shape_top_k(const muc_rule *r)
{
    muc_expr k = muc_node_expr(r->node, MUC_KEY_K);
    uint32_t axis;

    MUC_TRY(muc_rule_axis(r, MUC_KEY_AXIS, muc_rule_input(r, 0)->rank, &axis));
    MUC_TRY(muc_rule_require(r, "k", k, false, muc_rule_input(r, 0)->dims[axis]));
    for (uint32_t i = 0; i < 2; i++) {
        muc_rule_like(r, i, muc_rule_input(r, 0));
        r->outputs[i].dims[axis] = k;
    }
    r->outputs[1].dtype = MUC_I64;
    return MUC_OK;
}

#define ORDER_NUMBERS(X) X(outer) X(extent) X(inner) X(count) X(largest)

typedef struct order_numbers {
    ORDER_NUMBERS(MUC_NEST_FIELD)
} order_numbers;

static void measure_order(const muc_nest_node *n, void *out)
{
    uint32_t axis = (uint32_t)muc_node_integer(n->node, MUC_KEY_AXIS);
    muc_nest_along x = muc_nest_along_of(&n->inputs[0], axis);

    *(order_numbers *)out = (order_numbers){
        x.outer,
        x.extent,
        x.inner,
        n->outputs[0].dims[axis],
        muc_node_integer_or(n->node, MUC_KEY_LARGEST, 1) == 1,
    };
}

/* each place moves up among those chosen before it, as far as they come after it */
MUC_NEST_NUMBERS(top_k, ORDER_NUMBERS, measure_order, MUC_NEST_QUANTIZED, T, {
    for (INDEX o = 0; o < outer; o++) {
        for (INDEX i = 0; i < inner; i++) {
            const T *x = a + o * extent * inner + i;
            const INDEX first = o * count * inner + i;

            for (INDEX k = 0; k < extent; k++) {
                const T p = x[k * inner];
                INDEX rank = k < count ? k : count;

                while (rank > 0) {
                    const INDEX above = first + (rank - 1) * inner;
                    const T q = x[(INDEX)y1[above] * inner];

                    if (largest ? !ABOVE(p, q) : !ABOVE(q, p)) {
                        break;
                    }
                    if (rank < count) {
                        y1[above + inner] = y1[above];
                    }
                    rank--;
                }
                if (rank < count) {
                    y1[first + rank * inner] = (int64_t)k;
                }
            }
            for (INDEX r = 0; r < count; r++) {
                y[first + r * inner] = x[(INDEX)y1[first + r * inner] * inner];
            }
        }
    }
})
