/* move.c - operators whose outputs are elements of their inputs, moved: bytes of any type. */
#include <string.h>

#include "operators/strided_copy.h"
#include "ref/walk.h"

/* a copy at work */
typedef struct gathering {
    const uint8_t *from;
    uint8_t *to;
    size_t width;
    muc_strided_copy copy;
} gathering;

#define COPY_STEPS(type) \
    for (size_t i = 0; i < n; i++) { \
        type element; \
        memcpy(&element, from + (ptrdiff_t)i * step * (ptrdiff_t)sizeof(type), sizeof(type)); \
        memcpy(to + (ptrdiff_t)i * step_to * (ptrdiff_t)sizeof(type), &element, sizeof(type)); \
    }

static void copy_steps(const uint8_t *from, ptrdiff_t step, size_t n, size_t width, uint8_t *to,
                       ptrdiff_t step_to)
{
    if (step == 1 && step_to == 1)
        memcpy(to, from, n * width);
    else if (width == 1)
        COPY_STEPS(uint8_t)
    else if (width == 2)
        COPY_STEPS(uint16_t)
    else if (width == 4)
        COPY_STEPS(uint32_t)
    else
        COPY_STEPS(uint64_t)
}

static void gather_all(const gathering *g)
{
    const muc_strided_copy *c = &g->copy;
    ptrdiff_t from = 0, to = 0, width = (ptrdiff_t)g->width;
    size_t index[MUC_COPY_MOST_LOOPS] = { 0 };
    uint32_t last = c->count - 1, d;

    if (c->count == 0) {
        memcpy(g->to, g->from, g->width);
        return;
    }
    for (d = 0; d < c->count; d++)
        if (c->loops[d].extent == 0)
            return;
    do {
        copy_steps(g->from + from * width, c->loops[last].from, c->loops[last].extent, g->width,
                   g->to + to * width, c->loops[last].to);
        for (d = last; d-- > 0;) {
            from += c->loops[d].from;
            to += c->loops[d].to;
            if (++index[d] < c->loops[d].extent)
                break;
            from -= c->loops[d].from * (ptrdiff_t)c->loops[d].extent;
            to -= c->loops[d].to * (ptrdiff_t)c->loops[d].extent;
            index[d] = 0;
        }
    } while (d != UINT32_MAX);
}

/* elements from one index of dimension d to the next */
static ptrdiff_t step_of(const muc_ref_value *value, uint32_t d)
{
    size_t step = 1;

    for (uint32_t i = d + 1; i < value->rank; i++)
        step *= value->dims[i];
    return (ptrdiff_t)step;
}

/* the output's shape, and input 0's elements with steps still to be set */
static gathering gathering_of(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *out = call->output;
    gathering g = { x->read, out->data, muc_ref_width(x), { .count = out->rank } };

    for (uint32_t i = 0; i < out->rank; i++) {
        g.copy.loops[i].extent = out->dims[i];
        g.copy.loops[i].to = step_of(out, i);
    }
    return g;
}

muc_status muc_kernel_transpose(const muc_ref_call *call)
{
    const int64_t *perm = muc_node_integers(call->node, MUC_KEY_PERM);
    gathering g = gathering_of(call);

    for (uint32_t i = 0; i < g.copy.count; i++)
        g.copy.loops[i].from = step_of(call->inputs[0], (uint32_t)perm[i]);
    gather_all(&g);
    return MUC_OK;
}

muc_status muc_kernel_slice(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    const muc_attribute *axes = muc_node_attribute(call->node, MUC_KEY_AXES);
    const muc_expr *starts = muc_node_attribute(call->node, MUC_KEY_STARTS)->value.exprs.items;
    const int64_t *steps = muc_node_integers(call->node, MUC_KEY_STEPS);
    gathering g = gathering_of(call);

    for (uint32_t i = 0; i < g.copy.count; i++)
        g.copy.loops[i].from = step_of(x, i);
    if (call->output->elements == 0)
        return MUC_OK;
    for (uint32_t i = 0; i < axes->value.integers.count; i++) {
        size_t axis = (size_t)axes->value.integers.items[i], start,
               count = g.copy.loops[axis].extent;
        int64_t step = steps ? steps[i] : 1, last;

        MUC_TRY(muc_ref_expr(call, starts[i], &start));
        /* both factors are below 2^32 */
        last = (int64_t)start + (int64_t)(count - 1) * step;
        if (start >= x->dims[axis] || last < 0 || last >= (int64_t)x->dims[axis])
            return muc_ref_fail(call, "%zu elements from %zu on, %lld apart, of %zu", count, start,
                                (long long)step, x->dims[axis]);
        g.from += (ptrdiff_t)start * g.copy.loops[axis].from * (ptrdiff_t)g.width;
        g.copy.loops[axis].from *= (ptrdiff_t)step;
    }
    gather_all(&g);
    return MUC_OK;
}

muc_status muc_kernel_expand(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    gathering g = gathering_of(call);

    for (uint32_t i = 0; i < x->rank; i++)
        g.copy.loops[g.copy.count - x->rank + i].from = x->dims[i] == 1 ? 0 : step_of(x, i);
    gather_all(&g);
    return MUC_OK;
}

/* runs of extent * inner elements, one input after another */
muc_status muc_kernel_concat(const muc_ref_call *call)
{
    size_t axis = (size_t)muc_node_integer(call->node, MUC_KEY_AXIS);
    size_t width = muc_ref_width(call->output), at = 0;
    muc_ref_along out = muc_ref_along_of(call->output, axis);

    for (uint32_t i = 0; i < call->node->input_count; i++) {
        muc_ref_along in = muc_ref_along_of(call->inputs[i], axis);
        size_t run = in.extent * in.inner * width;

        for (size_t outer = 0; run > 0 && outer < in.outer; outer++)
            memcpy((uint8_t *)call->output->data + (outer * out.extent * out.inner + at) * width,
                   (const uint8_t *)call->inputs[i]->read + outer * run, run);
        at += in.extent * in.inner;
    }
    return MUC_OK;
}

muc_status muc_kernel_split(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    size_t axis = (size_t)muc_node_integer(call->node, MUC_KEY_AXIS);
    size_t width = muc_ref_width(x), at = 0;
    muc_ref_along in = muc_ref_along_of(x, axis);

    for (uint32_t i = 0; i < call->node->output_count; i++) {
        muc_ref_along out = muc_ref_along_of(call->outputs[i], axis);
        size_t run = out.extent * out.inner * width;

        if (at + out.extent * out.inner > in.extent * in.inner)
            return muc_ref_fail(call, "outputs take more than the %zu elements", in.extent);
        for (size_t outer = 0; run > 0 && outer < in.outer; outer++)
            memcpy((uint8_t *)call->outputs[i]->data + outer * run,
                   (const uint8_t *)x->read + (outer * in.extent * in.inner + at) * width, run);
        at += out.extent * out.inner;
    }
    return at == in.extent * in.inner ? MUC_OK
                                      : muc_ref_fail(call, "outputs take %zu of %zu elements",
                                                     in.inner ? at / in.inner : 0, in.extent);
}

/* where in x each index of a dimension of the output comes from; -1: from the constant */
typedef struct origins {
    ptrdiff_t *at[MUC_GRAPH_MAX_RANK];
} origins;

/* out by way of a table for each dimension */
static void gather_origins(const muc_ref_call *call, const origins *o, const uint8_t *constant)
{
    const muc_ref_value *x = call->inputs[0], *out = call->output;
    size_t width = muc_ref_width(x), index[MUC_GRAPH_MAX_RANK] = { 0 };
    uint8_t *to = out->data;

    for (size_t i = 0; i < out->elements; i++, to += width) {
        ptrdiff_t from = 0;

        for (uint32_t d = 0; d < out->rank && from >= 0; d++) {
            ptrdiff_t place = o->at[d][index[d]];

            from = place < 0 ? -1 : from * (ptrdiff_t)x->dims[d] + place;
        }
        memcpy(to, from < 0 ? constant : (const uint8_t *)x->read + (size_t)from * width, width);
        for (uint32_t d = out->rank; d-- > 0 && ++index[d] == out->dims[d];)
            index[d] = 0;
    }
}

static muc_status make_origins(const muc_ref_call *call, origins *o)
{
    const muc_ref_value *out = call->output;
    size_t count = 0;
    ptrdiff_t *room;
    void *scratch;

    for (uint32_t d = 0; d < out->rank; d++)
        count += out->dims[d];
    MUC_TRY(muc_ref_reserve(call, count * sizeof(*room), &scratch));
    room = scratch;
    for (uint32_t d = 0; d < out->rank; d++) {
        o->at[d] = room;
        room += out->dims[d];
    }
    return MUC_OK;
}

/* index i of a dimension of n elements, counted from the first of them */
static ptrdiff_t origin(muc_word mode, ptrdiff_t i, ptrdiff_t n)
{
    ptrdiff_t period = n > 1 ? 2 * n - 2 : 1;

    if ((i >= 0 && i < n) || mode == MUC_WORD_CONSTANT)
        return i >= 0 && i < n ? i : -1;
    if (mode == MUC_WORD_EDGE)
        return i < 0 ? 0 : n - 1;
    if (mode == MUC_WORD_WRAP)
        return (i % n + n) % n;
    i = (i % period + period) % period;
    return i < n ? i : period - i;
}

/* zero, which quantization may have moved */
static void zero_of(const muc_ref_call *call, uint8_t out[8])
{
    const muc_quantization *q = call->input_tensors[0]->quantization;
    uint64_t bits = q ? (uint64_t)(int64_t)q->zero_points[0] : 0;

    memcpy(out, &bits, sizeof(bits));
}

muc_status muc_kernel_pad(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *out = call->output;
    const muc_ref_value *constant = muc_ref_input_of(call, 1);
    const int64_t *pads = muc_node_integers(call->node, MUC_KEY_PADS);
    muc_word mode = muc_node_word_or(call->node, MUC_KEY_MODE, MUC_WORD_CONSTANT);
    uint8_t zero[8];
    origins o;

    zero_of(call, zero);
    if (x->elements == 0 && out->elements > 0 && mode != MUC_WORD_CONSTANT)
        return muc_ref_fail(call, "nothing to pad with");
    MUC_TRY(make_origins(call, &o));
    for (uint32_t d = 0; d < out->rank; d++)
        for (size_t i = 0; i < out->dims[d]; i++)
            o.at[d][i] = origin(mode, (ptrdiff_t)i - (ptrdiff_t)pads[d], (ptrdiff_t)x->dims[d]);
    gather_origins(call, &o, constant ? constant->read : zero);
    return MUC_OK;
}

static muc_copy_side side_of(const muc_ref_value *value)
{
    muc_copy_side side = { .rank = value->rank };

    for (uint32_t i = 0; i < value->rank; i++) {
        side.dims[i] = value->dims[i];
        side.steps[i] = (size_t)step_of(value, i);
    }
    return side;
}

muc_status muc_kernel_strided_copy(const muc_ref_call *call)
{
    const muc_copy_side x = side_of(call->inputs[0]), y = side_of(call->output);
    gathering g = gathering_of(call);

    g.copy = muc_copy_of(call->node, &x, &y);
    gather_all(&g);
    return MUC_OK;
}
