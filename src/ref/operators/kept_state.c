/* kept_state.c - operators that keep something from run to run. */
#include <string.h>

#include "ref/walk.h"

static size_t bytes_of(const muc_ref_value *value)
{
    return value->elements * muc_ref_width(value);
}

muc_status muc_kernel_read(const muc_ref_call *call)
{
    memcpy(call->output->data, call->inputs[0]->data, bytes_of(call->output));
    return MUC_OK;
}

muc_status muc_kernel_assign(const muc_ref_call *call)
{
    memcpy(call->inputs[0]->data, call->inputs[1]->read, bytes_of(call->output));
    memcpy(call->output->data, call->inputs[1]->read, bytes_of(call->output));
    return MUC_OK;
}

/* sums in double, each filter's value and each unit rounded once */
muc_status muc_kernel_svdf(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0], *feature = call->inputs[1], *time = call->inputs[2];
    const muc_ref_value *bias = muc_ref_input_of(call, 4);
    muc_ref_value state = *call->inputs[3];
    size_t filters = feature->rows, memory = time->columns, units = call->output->columns;
    size_t rank = filters / units, width = muc_ref_width(&state);

    for (size_t n = 0; n < x->rows; n++)
        for (size_t u = 0; u < units; u++) {
            double sum = bias ? muc_ref_real(bias, u) : 0;

            for (size_t f = u * rank; f < (u + 1) * rank; f++) {
                size_t row = (n * filters + f) * memory;
                uint8_t *at = (uint8_t *)state.data + row * width;
                double value = 0;

                memmove(at, at + width, (memory - 1) * width);
                for (size_t k = 0; k < x->columns; k++)
                    value += muc_ref_real(x, n * x->columns + k) *
                             muc_ref_real(feature, f * x->columns + k);
                muc_ref_store_reals(&state, row + memory - 1, 1, &value);
                for (size_t t = 0; t < memory; t++)
                    sum += muc_ref_real(&state, row + t) * muc_ref_real(time, f * memory + t);
            }
            muc_ref_store_reals(call->output, n * units + u, 1, &sum);
        }
    return MUC_OK;
}
