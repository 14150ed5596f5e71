/* integer.c - runs QuantLib's integer operators by the functions of mur_quantlib.h. */
#include <string.h>

#include "mur_quantlib.h"
#include "ref/integer/quantized.h"

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

/* input 0 in groups of columns: with the greatest so far, whose sum is halved as that grows, and
 * half the levels */
static void halve_groups(const muc_ref_call *call, size_t row, size_t group)
{
    const muc_ref_value *x = call->inputs[0];
    int32_t levels = (int32_t)muc_node_integer(call->node, MUC_KEY_LEVELS), inverse;
    size_t first = row * x->columns, end = first + x->columns;
    int32_t most = muc_q_get(x, first);
    int64_t sum = 0;

    for (size_t at = first; at < end; at += group) {
        size_t after = end - at < group ? end : at + group;
        int32_t before = most;

        for (size_t i = at; i < after; i++)
            most = muc_q_get(x, i) > most ? muc_q_get(x, i) : most;
        sum >>= most > before ? mur_quantlib_halvings(most - before) : 0;
        for (size_t i = at; i < after; i++)
            sum += 256 >> mur_quantlib_halvings(most - muc_q_get(x, i));
    }
    /* the row's last group may have shifted the sum to nothing, but added 256 for its maximum */
    inverse = (int32_t)((int64_t)(levels / 2 - 1) * 256 / sum);
    for (size_t i = first; i < end; i++)
        muc_q_put(call->output, i, inverse >> mur_quantlib_halvings(most - muc_q_get(x, i)));
}

muc_status muc_kernel_ita_max(const muc_ref_call *call)
{
    int64_t group = muc_node_integer_or(call->node, MUC_KEY_GROUP, 0);

    if (!group)
        return muc_kernel_rows(call);
    for (size_t i = 0; i < call->inputs[0]->rows; i++)
        halve_groups(call, i, (size_t)group);
    return MUC_OK;
}

muc_status muc_kernel_integer_hard_swish(const muc_ref_call *call)
{
    for (size_t i = 0; i < call->output->elements; i++)
        muc_q_put(call->output, i,
                  mur_quantlib_hard_swish(muc_q_get(call->inputs[0], i), words(call->inputs[1])));
    return MUC_OK;
}

muc_status muc_kernel_integer_gelu(const muc_ref_call *call)
{
    const int32_t *coefficients = words(call->inputs[1]);

    for (size_t i = 0; i < call->output->elements; i++)
        muc_q_put(call->output, i, mur_quantlib_gelu(muc_q_get(call->inputs[0], i), coefficients));
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
