/* integer.c - runs QuantLib's integer operators on tensors: rows of any integer type through the
 * pure functions of quantlib.h. */
#include "ref/kernels.h"
#include "ref/integer/quantlib.h"

#include <string.h>

/* Elements of at most 32 bits. */
static int32_t element(const muc_ref_value *value, size_t i)
{
    size_t size = muc_dtype_get(value->dtype)->block_bytes;

    return (int32_t)muc_dtype_integer(value->dtype, (const uint8_t *)value->read + i * size);
}

/* x is in the range of the type, whose lowest bits tell it */
static void set_element(const muc_ref_value *value, size_t i, int32_t x)
{
    switch (muc_dtype_get(value->dtype)->block_bytes) {
    case 1:
        ((uint8_t *)value->data)[i] = (uint8_t)x;
        break;
    case 2:
        ((uint16_t *)value->data)[i] = (uint16_t)x;
        break;
    default:
        ((int32_t *)value->data)[i] = x;
    }
}

static const int32_t *words(const muc_ref_value *value)
{
    return value->read;
}

/* Where the element of a tensor that is broadcast to another stands, as that one is walked through
 * element by element. */
typedef struct walk {
    const muc_ref_value *over;
    size_t index[MUC_GRAPH_MAX_RANK];
    size_t strides[2][MUC_GRAPH_MAX_RANK]; /* 0 along dimensions of one element */
    size_t at[2];
} walk;

static void walk_start(walk *w, const muc_ref_value *over, const muc_ref_value *const values[2])
{
    memset(w, 0, sizeof(*w));
    w->over = over;
    for (unsigned k = 0; k < 2; k++) {
        size_t stride = 1;

        for (uint32_t d = values[k]->rank; d-- > 0;) {
            w->strides[k][over->rank - values[k]->rank + d] = values[k]->dims[d] == 1 ? 0 : stride;
            stride *= values[k]->dims[d];
        }
    }
}

static void walk_on(walk *w)
{
    for (uint32_t d = w->over->rank; d-- > 0;) {
        w->at[0] += w->strides[0][d];
        w->at[1] += w->strides[1][d];
        if (++w->index[d] < w->over->dims[d])
            return;
        w->at[0] -= w->strides[0][d] * w->index[d];
        w->at[1] -= w->strides[1][d] * w->index[d];
        w->index[d] = 0;
    }
}

muc_status muc_kernel_requant_shift(const muc_ref_call *call)
{
    const muc_node *node = call->node;
    const muc_ref_value *x = call->inputs[0];
    const muc_ref_value *const factors[2] = { call->inputs[1], call->inputs[2] };
    const unsigned shift = (unsigned)muc_node_integer(node, MUC_KEY_SHIFT);
    const int32_t lo = (int32_t)muc_node_integer(node, MUC_KEY_CLAMP_MIN);
    const int32_t hi = (int32_t)muc_node_integer(node, MUC_KEY_CLAMP_MAX);
    walk w;

    walk_start(&w, x, factors);
    for (size_t i = 0; i < x->elements; i++, walk_on(&w))
        set_element(call->output, i,
                    muc_quantlib_requant(element(x, i), words(factors[0])[w.at[0]],
                                         words(factors[1])[w.at[1]], shift, lo, hi));
    return MUC_OK;
}

muc_status muc_kernel_requant_pair(const muc_ref_call *call)
{
    const muc_node *node = call->node;
    const muc_ref_value *const values[2] = { call->inputs[0], call->inputs[1] };
    const unsigned shift = (unsigned)muc_node_integer(node, MUC_KEY_SHIFT);
    const int32_t lo = (int32_t)muc_node_integer(node, MUC_KEY_CLAMP_MIN);
    const int32_t hi = (int32_t)muc_node_integer(node, MUC_KEY_CLAMP_MAX);
    walk w;

    walk_start(&w, call->output, values);
    for (size_t i = 0; i < call->output->elements; i++, walk_on(&w)) {
        int32_t a = element(values[0], w.at[0]), b = element(values[1], w.at[1]);

        set_element(call->output, i,
                    muc_quantlib_requant(node->op == MUC_OP_REQUANT_ADD ? a + b : a * b,
                                         words(call->inputs[2])[0], words(call->inputs[3])[0],
                                         shift, lo, hi));
    }
    return MUC_OK;
}

muc_status muc_kernel_lookup(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    int32_t least = x->dtype == MUC_I8 ? INT8_MIN : 0;

    for (size_t i = 0; i < x->elements; i++)
        set_element(call->output, i, element(call->inputs[1], (size_t)(element(x, i) - least)));
    return MUC_OK;
}

/* Room for `arrays` rows of input 0 as i32. */
static muc_status reserve_rows(const muc_ref_call *call, size_t arrays, int32_t **out)
{
    void *room;

    MUC_TRY(muc_ref_reserve(call, arrays * call->inputs[0]->columns * sizeof(**out), &room));
    *out = room;
    return MUC_OK;
}

static void load_row(const muc_ref_value *value, size_t row, int32_t *out)
{
    for (size_t i = 0; i < value->columns; i++)
        out[i] = element(value, row * value->columns + i);
}

static void store_row(const muc_ref_value *value, size_t row, const int32_t *x)
{
    for (size_t i = 0; i < value->columns; i++)
        set_element(value, row * value->columns + i, x[i]);
}

/* one number for each of n columns, of which there may be one for all */
static void spread(const muc_ref_value *value, size_t n, int32_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = words(value)[value->elements == 1 ? 0 : i];
}

muc_status muc_kernel_integer_norm(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *bias = muc_ref_input_of(call, 2);
    const unsigned shift = (unsigned)muc_node_integer(call->node, MUC_KEY_SHIFT);
    size_t n = x->columns;
    int32_t *row, *weights, *biases;

    MUC_TRY(reserve_rows(call, 3, &row));
    weights = row + n;
    biases = weights + n;
    spread(call->inputs[1], n, weights);
    if (bias)
        spread(bias, n, biases);
    for (size_t i = 0; n && i < x->rows; i++) {
        load_row(x, i, row);
        if (bias)
            muc_quantlib_layernorm(row, weights, biases, n, shift, row);
        else
            muc_quantlib_rmsnorm(row, weights, n, shift, INT8_MIN, INT8_MAX, row);
        store_row(call->output, i, row);
    }
    return MUC_OK;
}

muc_status muc_kernel_integer_softmax(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    const int32_t *coefficients = words(call->inputs[1]);
    int32_t levels = (int32_t)muc_node_integer(call->node, MUC_KEY_LEVELS), *row;

    if (!muc_quantlib_softmax_takes(coefficients))
        return muc_ref_fail(call,
                            "coefficients b %d, c %d, log2 %d, expected |b| <= 2^15, 0 <= c < "
                            "2^30, 1 <= log2 <= 2^15",
                            coefficients[0], coefficients[1], coefficients[2]);
    MUC_TRY(reserve_rows(call, 2, &row));
    for (size_t i = 0; i < x->rows; i++) {
        load_row(x, i, row);
        muc_quantlib_softmax(row, coefficients, x->columns, levels, row + x->columns);
        store_row(call->output, i, row + x->columns);
    }
    return MUC_OK;
}

muc_status muc_kernel_ita_max(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    int32_t levels = (int32_t)muc_node_integer(call->node, MUC_KEY_LEVELS), *row;
    int64_t group = muc_node_integer_or(call->node, MUC_KEY_GROUP, 0);

    MUC_TRY(reserve_rows(call, 2, &row));
    for (size_t i = 0; i < x->rows; i++) {
        load_row(x, i, row);
        if (group)
            muc_quantlib_itapartialmax(row, x->columns, levels, (size_t)group, row + x->columns);
        else
            muc_quantlib_itamax(row, x->columns, levels, row + x->columns);
        store_row(call->output, i, row + x->columns);
    }
    return MUC_OK;
}

muc_status muc_kernel_integer_hard_swish(const muc_ref_call *call)
{
    for (size_t i = 0; i < call->output->elements; i++)
        set_element(call->output, i,
                    muc_quantlib_hardswish(element(call->inputs[0], i), words(call->inputs[1])));
    return MUC_OK;
}

muc_status muc_kernel_integer_gelu(const muc_ref_call *call)
{
    const int32_t *coefficients = words(call->inputs[1]);

    if (!muc_quantlib_gelu_takes(coefficients))
        return muc_ref_fail(call,
                            "coefficients b %d, one %d, expected -2^15 <= b <= 0, |one| < 2^30",
                            coefficients[0], coefficients[1]);
    for (size_t i = 0; i < call->output->elements; i++)
        set_element(call->output, i, muc_quantlib_gelu(element(call->inputs[0], i), coefficients));
    return MUC_OK;
}

muc_status muc_kernel_integer_div(const muc_ref_call *call)
{
    const muc_ref_value *const values[2] = { call->inputs[0], call->inputs[1] };
    const int64_t delta = muc_node_integer(call->node, MUC_KEY_DELTA);
    const int64_t eta = muc_node_integer(call->node, MUC_KEY_ETA);
    const int64_t eps = muc_node_integer(call->node, MUC_KEY_EPS);
    walk w;

    walk_start(&w, call->output, values);
    for (size_t i = 0; i < call->output->elements; i++, walk_on(&w))
        set_element(call->output, i,
                    muc_quantlib_div(element(values[0], w.at[0]), element(values[1], w.at[1]),
                                     delta, eta, eps));
    return MUC_OK;
}

/* New rows into the state at position, then the state's rows so far: on a device a view. */
muc_status muc_kernel_append(const muc_ref_call *call)
{
    const muc_ref_value *state = call->inputs[0], *rows = call->inputs[1], *out = call->output;
    size_t axis = (size_t)muc_node_integer(call->node, MUC_KEY_AXIS);
    size_t position = muc_ref_position(call), outer = 1,
           inner = muc_dtype_get(state->dtype)->block_bytes;

    for (size_t i = 0; i < state->rank; i++)
        if (i < axis)
            outer *= state->dims[i];
        else if (i > axis)
            inner *= state->dims[i];
    for (size_t i = 0; i < outer; i++) {
        uint8_t *cache = (uint8_t *)state->data + i * state->dims[axis] * inner;
        size_t added = rows->dims[axis] * inner, all = out->dims[axis] * inner;

        memcpy(cache + position * inner, (const uint8_t *)rows->read + i * added, added);
        memcpy((uint8_t *)out->data + i * all, cache, all);
    }
    return MUC_OK;
}
