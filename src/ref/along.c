/* along.c - operators that work along one dimension of x [outer][extent][inner]. */
#include <math.h>

#include "base/real.h"
#include "ref/walk.h"

#define SOFTMAX(argument, id, type) \
    case MUC_##id: { \
        const type *x = (const type *)from + at; \
        type *y = (type *)to + at; \
        double most = -INFINITY, sum = 0; \
        for (size_t i = 0; i < a.extent; i++) \
            most = (double)x[i * a.inner] > most ? (double)x[i * a.inner] : most; \
        for (size_t i = 0; i < a.extent; i++) \
            sum += muc_exp((double)x[i * a.inner] - most); \
        for (size_t i = 0; i < a.extent; i++) \
            y[i * a.inner] = (type)(muc_exp((double)x[i * a.inner] - most) / sum); \
        break; \
    }

static void softmax(muc_dtype dtype, muc_ref_along a, size_t at, const void *from, void *to)
{
    switch ((unsigned)dtype) {
        MUC_REF_REALS(SOFTMAX, )
    }
}

muc_status muc_kernel_softmax(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];
    muc_ref_along a = muc_ref_along_of(x, (size_t)muc_node_integer(call->node, MUC_KEY_AXIS));

    for (size_t outer = 0; outer < a.outer; outer++)
        for (size_t inner = 0; inner < a.inner; inner++)
            softmax(x->dtype, a, outer * a.extent * a.inner + inner, x->read, call->output->data);
    return MUC_OK;
}
