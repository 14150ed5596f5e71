/* move.c - operators whose outputs are elements of their inputs, moved: bytes of any type. */
#include <string.h>

#include "ref/walk.h"

/* out, row by row, from a source with a step (of elements, maybe negative) along each dimension */
typedef struct gathering {
    const uint8_t *from;
    uint8_t *to;
    size_t width;
    uint32_t rank;
    size_t dims[MUC_GRAPH_MAX_RANK];
    ptrdiff_t steps[MUC_GRAPH_MAX_RANK];
} gathering;

#define COPY_STEPS(type) \
    for (size_t i = 0; i < n; i++) { \
        type element; \
        memcpy(&element, from + (ptrdiff_t)i * step * (ptrdiff_t)sizeof(type), sizeof(type)); \
        memcpy(to + i * sizeof(type), &element, sizeof(type)); \
    }

static void copy_steps(const uint8_t *from, ptrdiff_t step, size_t n, size_t width, uint8_t *to)
{
    if (step == 1)
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
    size_t index[MUC_GRAPH_MAX_RANK] = { 0 };
    uint32_t last = g->rank - 1, d;
    const uint8_t *from = g->from;
    uint8_t *to = g->to;

    if (g->rank == 0) {
        memcpy(to, from, g->width);
        return;
    }
    for (d = 0; d < g->rank; d++)
        if (g->dims[d] == 0)
            return;
    for (;;) {
        copy_steps(from, g->steps[last], g->dims[last], g->width, to);
        to += g->dims[last] * g->width;
        for (d = last; d-- > 0;) {
            from += g->steps[d] * (ptrdiff_t)g->width;
            if (++index[d] < g->dims[d])
                break;
            from -= g->steps[d] * (ptrdiff_t)(g->dims[d] * g->width);
            index[d] = 0;
        }
        if (d == UINT32_MAX)
            return;
    }
}

/* the output's shape, and input 0's elements with steps still to be set */
static gathering gathering_of(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *out = call->output;
    gathering g = { x->read, out->data, muc_ref_width(x), out->rank, { 0 }, { 0 } };

    memcpy(g.dims, out->dims, sizeof(g.dims));
    return g;
}

/* elements from one index of dimension d to the next */
static ptrdiff_t step_of(const muc_ref_value *value, uint32_t d)
{
    size_t step = 1;

    for (uint32_t i = d + 1; i < value->rank; i++)
        step *= value->dims[i];
    return (ptrdiff_t)step;
}

muc_status muc_kernel_transpose(const muc_ref_call *call)
{
    const int64_t *perm = muc_node_integers(call->node, MUC_KEY_PERM);
    gathering g = gathering_of(call);

    for (uint32_t i = 0; i < g.rank; i++)
        g.steps[i] = step_of(call->inputs[0], (uint32_t)perm[i]);
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

    for (uint32_t i = 0; i < g.rank; i++)
        g.steps[i] = step_of(x, i);
    if (call->output->elements == 0)
        return MUC_OK;
    for (uint32_t i = 0; i < axes->value.integers.count; i++) {
        size_t axis = (size_t)axes->value.integers.items[i], start, count = g.dims[axis];
        int64_t step = steps ? steps[i] : 1, last;

        MUC_TRY(muc_ref_expr(call, starts[i], &start));
        /* both factors are below 2^32 */
        last = (int64_t)start + (int64_t)(count - 1) * step;
        if (start >= x->dims[axis] || last < 0 || last >= (int64_t)x->dims[axis])
            return muc_ref_fail(call, "%zu elements from %zu on, %lld apart, of %zu", count, start,
                                (long long)step, x->dims[axis]);
        g.from += (ptrdiff_t)start * g.steps[axis] * (ptrdiff_t)g.width;
        g.steps[axis] *= (ptrdiff_t)step;
    }
    gather_all(&g);
    return MUC_OK;
}

muc_status muc_kernel_expand(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    gathering g = gathering_of(call);

    for (uint32_t i = 0; i < x->rank; i++)
        g.steps[g.rank - x->rank + i] = x->dims[i] == 1 ? 0 : step_of(x, i);
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

muc_status muc_kernel_tile(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *out = call->output;
    origins o;

    MUC_TRY(make_origins(call, &o));
    for (uint32_t d = 0; d < out->rank; d++)
        for (size_t i = 0; i < out->dims[d]; i++)
            o.at[d][i] = (ptrdiff_t)(i % x->dims[d]);
    gather_origins(call, &o, NULL);
    return MUC_OK;
}

/* a permutation of the dimensions of x seen in another shape */
static void permute(const muc_ref_call *call, const size_t *dims, const uint32_t *perm,
                    uint32_t rank)
{
    muc_ref_value seen = *call->inputs[0];
    gathering g = gathering_of(call);

    seen.rank = g.rank = rank;
    memcpy(seen.dims, dims, rank * sizeof(*dims));
    for (uint32_t i = 0; i < rank; i++) {
        g.dims[i] = dims[perm[i]];
        g.steps[i] = step_of(&seen, perm[i]);
    }
    gather_all(&g);
}

muc_status muc_kernel_depth_to_space(const muc_ref_call *call)
{
    static const uint32_t dcr[] = { 0, 3, 4, 1, 5, 2 }, crd[] = { 0, 1, 4, 2, 5, 3 };
    static const uint32_t last_dcr[] = { 0, 1, 3, 2, 4, 5 }, last_crd[] = { 0, 1, 4, 2, 5, 3 };
    const size_t *x = call->inputs[0]->dims;
    size_t block = (size_t)muc_node_integer(call->node, MUC_KEY_BLOCK);
    bool is_dcr = muc_node_word_or(call->node, MUC_KEY_MODE, MUC_WORD_DCR) == MUC_WORD_DCR;

    if (muc_node_integer_or(call->node, MUC_KEY_CHANNELS_LAST, 0) == 1) {
        size_t c = x[3] / block / block;
        const size_t by_dcr[] = { x[0], x[1], x[2], block, block, c };
        const size_t by_crd[] = { x[0], x[1], x[2], c, block, block };

        permute(call, is_dcr ? by_dcr : by_crd, is_dcr ? last_dcr : last_crd, 6);
    } else {
        size_t c = x[1] / block / block;
        const size_t by_dcr[] = { x[0], block, block, c, x[2], x[3] };
        const size_t by_crd[] = { x[0], c, block, block, x[2], x[3] };

        permute(call, is_dcr ? by_dcr : by_crd, is_dcr ? dcr : crd, 6);
    }
    return MUC_OK;
}

muc_status muc_kernel_space_to_depth(const muc_ref_call *call)
{
    static const uint32_t first[] = { 0, 3, 5, 1, 2, 4 }, last[] = { 0, 1, 3, 2, 4, 5 };
    const size_t *x = call->inputs[0]->dims;
    size_t block = (size_t)muc_node_integer(call->node, MUC_KEY_BLOCK);
    const size_t by_first[] = { x[0], x[1], x[2] / block, block, x[3] / block, block };
    const size_t by_last[] = { x[0], x[1] / block, block, x[2] / block, block, x[3] };
    bool channels_last = muc_node_integer_or(call->node, MUC_KEY_CHANNELS_LAST, 0) == 1;

    permute(call, channels_last ? by_last : by_first, channels_last ? last : first, 6);
    return MUC_OK;
}
