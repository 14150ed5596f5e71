/* unary.c - operators of one input, element by element. */
#include <math.h>
#include <string.h>

#include "base/real.h"
#include "ref/walk.h"

/* as transformers have it: a product and the series of muc_ref_exp */
static void silu_f32(const muc_ref_call *call)
{
    const float *x = call->inputs[0]->read;
    float *y = call->output->data, alpha = (float)muc_node_real_or(call->node, MUC_KEY_ALPHA, 1);
    size_t count = call->output->elements;

    for (size_t i = 0; i < count; i++)
        y[i] = -(alpha * x[i]);
    muc_ref_exp(y, count);
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] / (1 + y[i]);
}

#define RELU(argument, id, type) \
    case MUC_##id: { \
        const type *x = from; \
        type *y = to; \
        for (size_t i = 0; i < n; i++) \
            y[i] = x[i] > 0 || x[i] != x[i] ? x[i] : 0; \
        break; \
    }

static void relu(muc_dtype dtype, const void *from, void *to, size_t n)
{
    switch ((unsigned)dtype) {
        MUC_REF_NUMBERS(RELU, )
    }
}

muc_status muc_kernel_unary(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];

    if (call->node->op == MUC_OP_SILU && x->dtype == MUC_F32)
        silu_f32(call);
    else
        relu(x->dtype, x->read, call->output->data, x->elements);
    return MUC_OK;
}

muc_status muc_kernel_copy(const muc_ref_call *call)
{
    const muc_ref_value *x = call->inputs[0];

    if (x->elements != call->output->elements)
        return muc_ref_fail(call, "%zu elements to %zu", x->elements, call->output->elements);
    memcpy(call->output->data, x->read, x->elements * muc_ref_width(x));
    return MUC_OK;
}
