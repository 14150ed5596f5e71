/* along_axis.c - top_k: the greatest elements along one dimension of x [outer][extent][inner]. */
#include <string.h>

#include "ref/walk.h"

static muc_ref_along along_of(const muc_ref_call *call, const muc_ref_value *value)
{
    return muc_ref_along_of(value, (size_t)muc_node_integer(call->node, MUC_KEY_AXIS));
}

/* element 0 of line number i */
static size_t line_at(muc_ref_along a, size_t i)
{
    return i / a.inner * a.extent * a.inner + i % a.inner;
}

/* -1, 0, 1 as elements i and j of x compare; NaN is above all */
#define COMPARE(argument, id, type) \
    case MUC_##id: { \
        type p = ((const type *)x->read)[i], q = ((const type *)x->read)[j]; \
        return p < q || (q != q && p == p) ? -1 : p > q || (p != p && q == q) ? 1 : 0; \
    }

static int compare(const muc_ref_value *x, size_t i, size_t j)
{
    switch ((unsigned)x->dtype) {
        MUC_REF_NUMBERS(COMPARE, )
    }
    return 0;
}

/* whether place i of a line comes before place j in the order that top_k wants */
static bool precedes(const muc_ref_value *x, muc_ref_along a, size_t at, int sign, int64_t i,
                     int64_t j)
{
    int order = sign * compare(x, at + (size_t)i * a.inner, at + (size_t)j * a.inner);

    return order > 0 || (order == 0 && i < j);
}

/* sinks the root of a heap whose parents come after their children */
static void sink(const muc_ref_value *x, muc_ref_along a, size_t at, int sign, int64_t *heap,
                 size_t root, size_t count)
{
    for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        int64_t held = heap[root];

        if (child + 1 < count && precedes(x, a, at, sign, heap[child], heap[child + 1]))
            child++;
        if (!precedes(x, a, at, sign, held, heap[child]))
            return;
        heap[root] = heap[child];
        heap[child] = held;
        root = child;
    }
}

/* the first k places of a line in order, by heap sort of at most k kept places */
static void choose(const muc_ref_value *x, muc_ref_along a, size_t at, int sign, int64_t *heap,
                   size_t k)
{
    for (size_t i = 0; i < k; i++)
        heap[i] = (int64_t)i;
    for (size_t i = k / 2; i-- > 0;)
        sink(x, a, at, sign, heap, i, k);
    for (size_t i = k; k > 0 && i < a.extent; i++) {
        if (!precedes(x, a, at, sign, (int64_t)i, heap[0]))
            continue;
        heap[0] = (int64_t)i;
        sink(x, a, at, sign, heap, 0, k);
    }
    for (size_t i = k; i-- > 1;) {
        int64_t last = heap[0];

        heap[0] = heap[i];
        heap[i] = last;
        sink(x, a, at, sign, heap, 0, i);
    }
}

muc_status muc_kernel_top_k(const muc_ref_call *call)
{
    int sign = muc_node_integer_or(call->node, MUC_KEY_LARGEST, 1) == 1 ? 1 : -1;
    const muc_ref_value *x = call->inputs[0];
    muc_ref_along a = along_of(call, x), b = along_of(call, call->output);
    size_t width = muc_ref_width(x);
    void *heap;

    if (b.extent > a.extent)
        return muc_ref_fail(call, "%zu of %zu elements", b.extent, a.extent);
    MUC_TRY(muc_ref_reserve(call, b.extent * sizeof(int64_t), &heap));
    for (size_t row = 0; row < a.outer * a.inner; row++) {
        size_t at = line_at(a, row), to = line_at(b, row);

        choose(x, a, at, sign, heap, b.extent);
        for (size_t i = 0; i < b.extent; i++) {
            size_t place = (size_t)((int64_t *)heap)[i];

            ((int64_t *)call->outputs[1]->data)[to + i * b.inner] = (int64_t)place;
            memcpy((uint8_t *)call->output->data + (to + i * b.inner) * width,
                   (const uint8_t *)x->read + (at + place * a.inner) * width, width);
        }
    }
    return MUC_OK;
}
