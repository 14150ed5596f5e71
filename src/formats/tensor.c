/* tensor.c - the size of a tensor, and its elements as float32 whatever their type. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "formats/format.h"

enum { BLOCK = 32, SCALE_BYTES = 2 }; /* of Q8_0 and Q4_0 */

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

static float load_q8_0(const uint8_t *data, uint64_t i)
{
    const uint8_t *block = data + i / BLOCK * muc_dtype_get(MUC_Q8_0)->block_bytes;
    int8_t value = (int8_t)block[SCALE_BYTES + i % BLOCK];

    return muc_f32_of_f16(muc_load_u16(block)) * (float)value;
}

static float load_q4_0(const uint8_t *data, uint64_t i)
{
    const uint8_t *block = data + i / BLOCK * muc_dtype_get(MUC_Q4_0)->block_bytes;
    uint8_t pair = block[SCALE_BYTES + i % (BLOCK / 2)];
    int value = (i % BLOCK < BLOCK / 2 ? pair & 15 : pair >> 4) - 8;

    return muc_f32_of_f16(muc_load_u16(block)) * (float)value;
}

static float load_f64(const uint8_t *data, uint64_t i)
{
    uint64_t bits = muc_load_u64(data + 8 * i);
    double value;

    memcpy(&value, &bits, sizeof(value));
    return (float)value;
}

#define CONVERT(expression) \
    for (uint64_t n = 0, i = first; n < count; n++, i++) \
    out[n] = (expression)

/* False if the type is no float. */
static bool convert(const muc_tensor_view *view, uint64_t first, uint64_t count, float *out)
{
    const uint8_t *data = view->data;

    if (view->dtype == MUC_F32)
        CONVERT(muc_f32_of_bits(muc_load_u32(data + 4 * i)));
    else if (view->dtype == MUC_BF16)
        CONVERT(muc_f32_of_bf16(muc_load_u16(data + 2 * i)));
    else if (view->dtype == MUC_F16)
        CONVERT(muc_f32_of_f16(muc_load_u16(data + 2 * i)));
    else if (view->dtype == MUC_F64)
        CONVERT(load_f64(data, i));
    else if (view->dtype == MUC_Q8_0)
        CONVERT(load_q8_0(data, i));
    else if (view->dtype == MUC_Q4_0)
        CONVERT(load_q4_0(data, i));
    else
        return false;
    return true;
}

muc_status muc_tensor_to_f32(muc_context *ctx, const muc_tensor_view *view, uint64_t first,
                             uint64_t count, float *out)
{
    if (first > view->elements || count > view->elements - first)
        return muc_fail(ctx, MUC_BUG, view->file, view->offset,
                        "tensor '%s' of %llu elements has no range %llu + %llu", view->name,
                        (unsigned long long)view->elements, (unsigned long long)first,
                        (unsigned long long)count);
    if (!convert(view, first, count, out))
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
