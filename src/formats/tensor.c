/* tensor.c - the size of a tensor, and its elements as float32 whatever their type. */
#include <math.h>

#include "formats/format.h"

static muc_status fail_shape(muc_context *ctx, const muc_tensor_view *view)
{
    return muc_fail(ctx, MUC_MALFORMED, view->file, view->offset,
                    "tensor '%s': the shape overflows, or its last dimension is no multiple of %u",
                    view->name, muc_dtype_get(view->dtype)->block_elements);
}

muc_status muc_tensor_measure(muc_context *ctx, muc_tensor_view *view)
{
    bool fits =
        muc_dtype_measure(view->dtype, view->rank, view->dims, &view->elements, &view->bytes);

    return fits ? MUC_OK : fail_shape(ctx, view);
}

static void scale_elements(const muc_tensor_view *view, uint64_t first, uint64_t count, float *out)
{
    for (uint64_t i = first; i < first + count; i++)
        out[i - first] = (float)(int8_t)view->data[i] * view->scales[i / view->dims[1]];
}

muc_status muc_tensor_to_f32(muc_context *ctx, const muc_tensor_view *view, uint64_t first,
                             uint64_t count, float *out)
{
    if (first > view->elements || count > view->elements - first)
        return muc_fail(ctx, MUC_BUG, view->file, view->offset,
                        "tensor '%s' of %llu elements has no range %llu + %llu", view->name,
                        (unsigned long long)view->elements, (unsigned long long)first,
                        (unsigned long long)count);
    if (view->scales)
        scale_elements(view, first, count, out);
    else if (!muc_dtype_to_f32(view->dtype, view->data, first, count, out))
        return muc_fail(ctx, MUC_UNSUPPORTED, view->file, view->offset,
                        "tensor '%s' of type %s is no tensor of floats", view->name,
                        muc_dtype_get(view->dtype)->name);
    for (uint64_t n = 0; n < count; n++)
        if (!isfinite(out[n]))
            return muc_fail(ctx, MUC_MALFORMED, view->file, view->offset,
                            "tensor '%s': element %llu is not finite", view->name,
                            (unsigned long long)(first + n));
    return MUC_OK;
}
