/* gather.c - elements and slices at places that indices name. */
#include <string.h>

#include "ref/walk.h"

/* index i of a tensor of indices into n elements, negative ones from the end */
static muc_status index_at(const muc_ref_call *call, const muc_ref_value *indices, size_t i,
                           size_t n, size_t *out)
{
    int64_t index = muc_ref_integer(indices, i);

    if (index < 0 ? index < -(int64_t)n : index >= (int64_t)n)
        return muc_ref_fail(call, "index %lld at %zu, expected one of %zu elements",
                            (long long)index, i, n);
    *out = (size_t)(index < 0 ? index + (int64_t)n : index);
    return MUC_OK;
}

static size_t product(const size_t *dims, size_t first, size_t end)
{
    size_t size = 1;

    for (size_t i = first; i < end; i++)
        size *= dims[i];
    return size;
}

/* x [batch][outer][extent][inner], indices [batch][each], out [batch][outer][each][inner] */
muc_status muc_kernel_gather(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *indices = call->inputs[1];
    size_t axis = (size_t)muc_node_integer(call->node, MUC_KEY_AXIS);
    size_t batch_dims = (size_t)muc_node_integer_or(call->node, MUC_KEY_BATCH_DIMS, 0);
    size_t batches = product(x->dims, 0, batch_dims), outer = product(x->dims, batch_dims, axis);
    size_t extent = x->dims[axis], each = product(indices->dims, batch_dims, indices->rank);
    size_t run = product(x->dims, axis + 1, x->rank) * muc_ref_width(x), place;
    uint8_t *to = call->output->data;

    for (size_t b = 0; b < batches; b++)
        for (size_t o = 0; o < outer; o++)
            for (size_t i = 0; i < each; i++, to += run) {
                MUC_TRY(index_at(call, indices, b * each + i, extent, &place));
                memcpy(to, (const uint8_t *)x->read + ((b * outer + o) * extent + place) * run,
                       run);
            }
    return MUC_OK;
}

/* Puts or combines one element. */
typedef void combine(const muc_ref_value *out, size_t at, const muc_ref_value *updates, size_t i);

static void put(const muc_ref_value *out, size_t at, const muc_ref_value *updates, size_t i)
{
    size_t width = muc_ref_width(out);

    memcpy((uint8_t *)out->data + at * width, (const uint8_t *)updates->read + i * width, width);
}

#define COMBINE(name, real, integer) \
    static void name(const muc_ref_value *out, size_t at, const muc_ref_value *updates, size_t i) \
    { \
        if (muc_ref_is_real(out)) { \
            double a = muc_ref_real(out, at), b = muc_ref_real(updates, i), value = real; \
            muc_ref_store_reals(out, at, 1, &value); \
        } else { \
            int64_t a = muc_ref_integer(out, at), b = muc_ref_integer(updates, i); \
            bool below = out->dtype == MUC_U64 ? (uint64_t)b < (uint64_t)a : b < a; \
            int64_t value = (int64_t)(integer); \
            (void)below; \
            muc_ref_store_integers(out, at, 1, &value); \
        } \
    }
COMBINE(add, a + b, (uint64_t)a + (uint64_t)b)
COMBINE(multiply, a *b, (uint64_t)a *(uint64_t)b)
COMBINE(least, b < a || b != b ? b : a, below ? b : a)
COMBINE(greatest, b > a || b != b ? b : a, below ? a : b)

static combine *combine_of(const muc_node *node)
{
    muc_word word = muc_node_word_or(node, MUC_KEY_REDUCTION, MUC_WORD_NONE);

    return word == MUC_WORD_ADD   ? add
           : word == MUC_WORD_MUL ? multiply
           : word == MUC_WORD_MIN ? least
           : word == MUC_WORD_MAX ? greatest
                                  : put;
}

/* the place in a tensor of x's shape that element i of indices, of their own shape, names */
static muc_status place_of(const muc_ref_call *call, const muc_ref_value *x,
                           const muc_ref_value *indices, size_t axis, size_t i, size_t *out)
{
    size_t place = 0, step = 1, rest = i;

    for (uint32_t d = x->rank; d-- > 0;) {
        size_t at = rest % indices->dims[d];

        rest /= indices->dims[d];
        if (d == axis)
            MUC_TRY(index_at(call, indices, i, x->dims[d], &at));
        if (at >= x->dims[d])
            return muc_ref_fail(call, "indices have %zu elements along dimension %u of %zu",
                                indices->dims[d], d, x->dims[d]);
        place += at * step;
        step *= x->dims[d];
    }
    *out = place;
    return MUC_OK;
}

muc_status muc_kernel_gather_elements(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *indices = call->inputs[1];
    size_t axis = (size_t)muc_node_integer(call->node, MUC_KEY_AXIS), place;
    size_t width = muc_ref_width(x);

    for (size_t i = 0; i < indices->elements; i++) {
        MUC_TRY(place_of(call, x, indices, axis, i, &place));
        memcpy((uint8_t *)call->output->data + i * width, (const uint8_t *)x->read + place * width,
               width);
    }
    return MUC_OK;
}

muc_status muc_kernel_scatter_elements(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *indices = call->inputs[1];
    size_t axis = (size_t)muc_node_integer(call->node, MUC_KEY_AXIS), place;
    combine *join = combine_of(call->node);

    MUC_TRY(muc_kernel_copy(call));
    for (size_t i = 0; i < indices->elements; i++) {
        MUC_TRY(place_of(call, x, indices, axis, i, &place));
        join(call->output, place, call->inputs[2], i);
    }
    return MUC_OK;
}

/* tuple t of indices, into the dimensions of x from `first` on: the place of its slice among all */
static muc_status tuple_at(const muc_ref_call *call, size_t first, size_t t, size_t *out)
{
    const muc_ref_value *x = call->inputs[0], *indices = call->inputs[1];
    size_t length = indices->columns, place = 0, at = 0;

    for (size_t i = 0; i < length; i++) {
        MUC_TRY(index_at(call, indices, t * length + i, x->dims[first + i], &at));
        place = place * x->dims[first + i] + at;
    }
    *out = place;
    return MUC_OK;
}

muc_status muc_kernel_gather_nd(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *indices = call->inputs[1];
    size_t first = (size_t)muc_node_integer_or(call->node, MUC_KEY_BATCH_DIMS, 0);
    size_t after = first + indices->columns, batches = product(x->dims, 0, first);
    size_t slices = product(x->dims, first, after), place;
    size_t run = product(x->dims, after, x->rank) * muc_ref_width(x);
    size_t each = product(indices->dims, first, indices->rank - 1);
    uint8_t *to = call->output->data;

    for (size_t t = 0; t < batches * each; t++, to += run) {
        MUC_TRY(tuple_at(call, first, t, &place));
        memcpy(to, (const uint8_t *)x->read + (t / each * slices + place) * run, run);
    }
    return MUC_OK;
}

muc_status muc_kernel_scatter_nd(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *indices = call->inputs[1];
    size_t run = product(x->dims, indices->columns, x->rank), place;
    size_t tuples = product(indices->dims, 0, indices->rank - 1);
    combine *join = combine_of(call->node);

    MUC_TRY(muc_kernel_copy(call));
    for (size_t t = 0; t < tuples; t++) {
        MUC_TRY(tuple_at(call, 0, t, &place));
        for (size_t i = 0; i < run; i++)
            join(call->output, place * run + i, call->inputs[2], t * run + i);
    }
    return MUC_OK;
}

muc_status muc_kernel_reverse_sequence(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *lengths = call->inputs[1];
    size_t batch = (size_t)muc_node_integer(call->node, MUC_KEY_BATCH_AXIS);
    size_t time = (size_t)muc_node_integer(call->node, MUC_KEY_TIME_AXIS);
    muc_ref_along b = muc_ref_along_of(x, batch), t = muc_ref_along_of(x, time);
    size_t width = muc_ref_width(x);

    for (size_t i = 0; i < lengths->elements; i++) {
        int64_t length = muc_ref_integer(lengths, i);

        if (length < 0 || length > (int64_t)t.extent)
            return muc_ref_fail(call, "length %lld of %zu steps", (long long)length, t.extent);
    }
    for (size_t i = 0; i < x->elements; i++) {
        size_t step = i / t.inner % t.extent;
        size_t length = (size_t)muc_ref_integer(lengths, i / b.inner % b.extent);
        size_t from = step < length ? i + (length - 1 - 2 * step) * t.inner : i;

        memcpy((uint8_t *)call->output->data + i * width, (const uint8_t *)x->read + from * width,
               width);
    }
    return MUC_OK;
}
