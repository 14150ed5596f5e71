/* integer.c - runs QuantLib's integer operators on tensors: rows of any integer type through the
 * pure functions of quantlib.h. */
#include <string.h>

#include "ref/integer/quantized.h"
#include "ref/integer/quantlib.h"

static const int32_t *words(const muc_ref_value *value)
{
    return value->read;
}

muc_status muc_kernel_lookup(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    int32_t least = x->dtype == MUC_I8 ? INT8_MIN : 0;

    for (size_t i = 0; i < x->elements; i++)
        muc_q_put(call->output, i, muc_q_get(call->inputs[1], (size_t)(muc_q_get(x, i) - least)));
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
        out[i] = muc_q_get(value, row * value->columns + i);
}

static void store_row(const muc_ref_value *value, size_t row, const int32_t *x)
{
    for (size_t i = 0; i < value->columns; i++)
        muc_q_put(value, row * value->columns + i, x[i]);
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
        muc_q_put(call->output, i,
                  muc_quantlib_hardswish(muc_q_get(call->inputs[0], i), words(call->inputs[1])));
    return MUC_OK;
}

muc_status muc_kernel_integer_gelu(const muc_ref_call *call)
{
    const int32_t *coefficients = words(call->inputs[1]);

    for (size_t i = 0; i < call->output->elements; i++)
        muc_q_put(call->output, i, muc_quantlib_gelu(muc_q_get(call->inputs[0], i), coefficients));
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
