/* finite.c - finds weights that are infinite or not a number. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/vector_loop.h"
#include "ref/kernels.h"

typedef uint32_t lanes __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint16_t short_lanes __attribute__((vector_size(32), aligned(1), may_alias));

/* Whether all exponent bits of one of them are set: it is infinite or not a number. No sum of
 * floats, whose order would have to be kept. */
MUC_VECTOR_LOOP static bool has_no_end(const float *values, size_t count)
{
    lanes found = { 0 };
    size_t i = 0;

    for (; i + 8 <= count; i += 8)
        found |= (*(const lanes *)(const void *)(values + i) & 0x7f800000u) + 0x00800000u;
    for (; i < count; i++)
        found[0] |= (muc_f32_bits(values[i]) & 0x7f800000u) + 0x00800000u;
    for (i = 1; i < 8; i++)
        found[0] |= found[i];
    return found[0] >> 31 != 0;
}

/* the same of bf16, of no alignment */
MUC_VECTOR_LOOP static bool has_no_end_bf16(const uint8_t *values, size_t count)
{
    short_lanes found = { 0 };
    size_t i = 0;
    uint16_t bits;

    for (; i + 16 <= count; i += 16)
        found |= (*(const short_lanes *)(const void *)(values + 2 * i) & 0x7f80) + 0x0080;
    for (; i < count; i++) {
        memcpy(&bits, values + 2 * i, sizeof(bits));
        found[0] = (uint16_t)(found[0] | ((bits & 0x7f80u) + 0x0080u));
    }
    for (i = 1; i < 16; i++)
        found[0] |= found[i];
    return found[0] >> 15 != 0;
}

muc_status muc_ref_check_finite(muc_context *ctx, const muc_graph *graph, uint32_t id,
                                const muc_ref_value *value)
{
    enum { AT_ONCE = 2048 };
    float wide[AT_ONCE];
    const float *read = wide;

    if (muc_dtype_get(value->dtype)->kind != MUC_DTYPE_FLOAT || value->dtype == MUC_F64)
        return MUC_OK;
    if (value->dtype == MUC_BF16 && !has_no_end_bf16(value->read, value->elements))
        return MUC_OK;
    for (size_t at = 0, count; at < value->elements; at += count) {
        count = value->elements - at < AT_ONCE ? value->elements - at : AT_ONCE;
        if (value->dtype == MUC_F32)
            read = (const float *)value->read + at;
        else
            muc_dtype_to_f32(value->dtype, value->read, at, count, wide);
        for (size_t i = has_no_end(read, count) ? 0 : count; i < count; i++)
            if (!isfinite(read[i]))
                return muc_fail(ctx, MUC_MALFORMED, graph->name, MUC_NO_OFFSET,
                                "constant '%s': element %zu is not finite", graph->tensors[id].name,
                                at + i);
    }
    return MUC_OK;
}
