/* tensor_view.c - the size of a tensor, and its elements as float32 whatever their type. */
#include <math.h>
#include <string.h>

#include "formats/format.h"

static muc_status fail_shape(muc_context *ctx, const muc_tensor_view *view)
{
    return muc_fail(
        ctx, MUC_MALFORMED, view->file, view->offset,
        "tensor '%s': the shape overflows, or its last dimension is not a multiple of %u",
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
                        "tensor '%s' of type %s is not a tensor of floats", view->name,
                        muc_dtype_get(view->dtype)->name);
    for (uint64_t n = 0; n < count; n++)
        if (!isfinite(out[n]))
            return muc_fail(ctx, MUC_MALFORMED, view->file, view->offset,
                            "tensor '%s': element %llu is not finite", view->name,
                            (unsigned long long)(first + n));
    return MUC_OK;
}

/* anything but a number: NAN */
static double number_at(const muc_tensor_view *t, uint64_t i)
{
    const uint8_t *at = t->data + i * muc_dtype_get(t->dtype)->block_bytes;
    double wide;
    float x;

    switch ((int)t->dtype) {
    case MUC_F64:
        memcpy(&wide, at, sizeof(wide));
        return wide;
    case MUC_I64:
        return (double)(int64_t)muc_load_u64(at);
    case MUC_I32:
        return (int32_t)muc_load_u32(at);
    case MUC_I16:
        return (int16_t)muc_load_u16(at);
    case MUC_U16:
        return muc_load_u16(at);
    case MUC_I8:
        return (int8_t)*at;
    case MUC_U8:
        return *at;
    case MUC_F32:
    case MUC_F16:
        return muc_dtype_to_f32(t->dtype, t->data, i, 1, &x) ? (double)x : NAN;
    default:
        return NAN;
    }
}

bool muc_tensor_range(const muc_tensor_view *tensor, double *least, double *most)
{
    *least = *most = 0;
    for (uint64_t i = 0; i < tensor->elements; i++) {
        double x = number_at(tensor, i);

        if (!(x >= INT32_MIN && x <= INT32_MAX) || x != (double)(int64_t)x)
            return false;
        *least = x < *least ? x : *least;
        *most = x > *most ? x : *most;
    }
    return true;
}
