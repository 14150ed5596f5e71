/* gather.c - slices along a dimension at places that indices name. */
#include <string.h>

#include "ref/walk.h"

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
    size_t run = product(x->dims, axis + 1, x->rank) * muc_ref_width(x);
    uint8_t *to = call->output->data;

    for (size_t b = 0; b < batches; b++)
        for (size_t o = 0; o < outer; o++)
            for (size_t i = 0; i < each; i++, to += run) {
                int64_t index = muc_ref_integer(indices, b * each + i);
                size_t place = (size_t)(index < 0 ? index + (int64_t)extent : index);

                memcpy(to, (const uint8_t *)x->read + ((b * outer + o) * extent + place) * run,
                       run);
            }
    return MUC_OK;
}
