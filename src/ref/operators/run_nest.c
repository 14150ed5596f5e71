/* run_nest.c - runs operators by the loops that src/operators has for them. */
#include <string.h>

#include "operators/nest.h"
#include "ref/walk.h"

static muc_nest_shape shape_of(const muc_ref_value *value)
{
    muc_nest_shape shape = { value->rank, { 0 } };

    memcpy(shape.dims, value->dims, sizeof(shape.dims));
    return shape;
}

muc_status muc_kernel_nest(const muc_ref_call *call)
{
    const muc_nest *nest = muc_nest_of(call->node->op);
    muc_nest_node n = { .node = call->node };
    const void *in[MUC_NEST_MOST_INPUTS] = { NULL };
    void *out[MUC_NEST_MOST_OUTPUTS] = { NULL };
    size_t numbers[MUC_NEST_MOST_NUMBERS];

    for (uint32_t i = 0; i < call->node->input_count; i++) {
        n.inputs[i] = shape_of(call->inputs[i]);
        in[i] = call->inputs[i]->read;
    }
    for (uint32_t i = 0; i < call->node->output_count; i++) {
        n.outputs[i] = shape_of(call->outputs[i]);
        out[i] = call->outputs[i]->data;
    }
    if (nest->flags & MUC_NEST_INDICES) {
        size_t count = call->inputs[1]->elements;
        void *indices;

        MUC_TRY(muc_ref_reserve(call, count * sizeof(int64_t), &indices));
        muc_ref_load_integers(call->inputs[1], 0, count, indices);
        in[1] = indices;
    }
    nest->measure(&n, numbers);
    nest->loops[call->inputs[0]->dtype](in, out, numbers);
    return MUC_OK;
}
