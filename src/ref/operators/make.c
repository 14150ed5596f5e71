/* make.c - tensors that are made of few numbers. */
#include <math.h>
#include <string.h>

#include "ref/walk.h"

muc_status muc_kernel_one_hot(const muc_ref_call *call)
{
    const muc_ref_value *indices = call->inputs[0], *values = call->inputs[1];
    muc_ref_along a =
        muc_ref_along_of(call->output, (size_t)muc_node_integer(call->node, MUC_KEY_AXIS));
    size_t width = muc_ref_width(values);
    double extent = (double)a.extent;

    for (size_t i = 0; i < call->output->elements; i++) {
        size_t outer = i / a.inner / a.extent, place = i / a.inner % a.extent;
        double index = muc_ref_real(indices, outer * a.inner + i % a.inner);
        bool on = index == (double)place || index + extent == (double)place;

        memcpy((uint8_t *)call->output->data + i * width,
               (const uint8_t *)values->read + (on ? width : 0), width);
    }
    return MUC_OK;
}

muc_status muc_kernel_range(const muc_ref_call *call)
{
    const muc_ref_value *start = call->inputs[0], *delta = call->inputs[1], *out = call->output;

    for (size_t i = 0; i < out->elements; i++) {
        if (muc_ref_is_real(out)) {
            double value = muc_ref_real(start, 0) + (double)i * muc_ref_real(delta, 0);

            muc_ref_store_reals(out, i, 1, &value);
        } else {
            int64_t value = (int64_t)((uint64_t)muc_ref_integer(start, 0) +
                                      i * (uint64_t)muc_ref_integer(delta, 0));

            muc_ref_store_integers(out, i, 1, &value);
        }
    }
    return MUC_OK;
}

muc_status muc_kernel_expressions(const muc_ref_call *call)
{
    const muc_expr *items = muc_node_attribute(call->node, MUC_KEY_VALUES)->value.exprs.items;

    for (size_t i = 0; i < call->output->elements; i++) {
        size_t value;
        int64_t integer;

        MUC_TRY(muc_ref_expr(call, items[i], &value));
        integer = (int64_t)value;
        muc_ref_store_integers(call->output, i, 1, &integer);
    }
    return MUC_OK;
}
