/* compute.c - the values that tensors of a graph without inputs have, in their own types. */
#include <string.h>

#include "base/half.h"
#include "ref/ref.h"

void muc_ref_narrow(muc_dtype dtype, const muc_ref_view *view, uint8_t *out)
{
    const float *values = view->data;

    for (size_t i = 0; i < view->elements; i++)
        muc_store_u16(out + 2 * i,
                      dtype == MUC_F16 ? muc_f16_of_f32(values[i]) : muc_bf16_of_f32(values[i]));
}

static muc_status take(const muc_ref *ref, const muc_graph *graph, uint32_t id, muc_context *ctx,
                       muc_arena *arena, const uint8_t **out)
{
    const muc_tensor *tensor = &graph->tensors[id];
    size_t size = muc_dtype_get(tensor->dtype)->block_bytes;
    muc_ref_view view;
    uint8_t *data;

    if (!muc_ref_get(ref, id, &view))
        return muc_fail(ctx, MUC_BUG, graph->name, MUC_NO_OFFSET, "'%s' was not computed",
                        tensor->name);
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, view.elements * size + 1, &data));
    if (view.dtype == tensor->dtype)
        memcpy(data, view.data, view.elements * size);
    else
        muc_ref_narrow(tensor->dtype, &view, data);
    *out = data;
    return MUC_OK;
}

muc_status muc_ref_compute(muc_context *ctx, muc_graph *graph, const uint32_t *tensors,
                           uint32_t count, muc_arena *arena, const uint8_t **out)
{
    const uint32_t no_bindings[MUC_EXPR_MAX_INPUTS] = { 0 };
    muc_ref *ref;
    muc_status status;

    MUC_TRY(muc_ref_open(ctx, graph, &ref));
    status = muc_ref_run(ref, no_bindings, NULL, 0);
    for (uint32_t i = 0; i < count && status == MUC_OK; i++)
        status = take(ref, graph, tensors[i], ctx, arena, &out[i]);
    muc_ref_close(ref);
    return status;
}
