/* repeated_runs.c - finds how many runs the arrays are for, and takes out what belongs to one. */
#include "run/repeated_runs.h"

#include <inttypes.h>
#include <string.h>

#include "formats/format.h"

static bool is_for_runs(const muc_tensor_view *array, uint32_t rank, const uint64_t *dims)
{
    return array->rank == rank + 1 && array->dims[0] > 0 &&
           memcmp(array->dims + 1, dims, rank * sizeof(*dims)) == 0;
}

muc_status muc_runs_add(muc_context *ctx, const char *input, uint32_t rank, const uint64_t *dims,
                        const muc_tensor_view *array, uint64_t *runs)
{
    if (!is_for_runs(array, rank, dims))
        return MUC_OK;
    if (*runs && *runs != array->dims[0])
        return muc_fail(ctx, MUC_USAGE, array->file, MUC_NO_OFFSET,
                        "input '%s': the array '%s' is for %" PRIu64
                        " runs in a row, others for %" PRIu64,
                        input, array->name, array->dims[0], *runs);
    *runs = array->dims[0];
    return MUC_OK;
}

muc_tensor_view muc_runs_slice(const muc_tensor_view *array, uint32_t rank, const uint64_t *dims,
                               uint64_t i)
{
    muc_tensor_view slice = *array;

    if (!is_for_runs(array, rank, dims))
        return slice;
    slice.rank = rank;
    memmove(slice.dims, array->dims + 1, rank * sizeof(*slice.dims));
    slice.elements = array->elements / array->dims[0];
    slice.bytes = array->bytes / array->dims[0];
    slice.data = array->data + i * slice.bytes;
    return slice;
}

muc_status muc_runs_stack(muc_context *ctx, muc_arena *arena, uint64_t runs,
                          const muc_tensor_view *one, muc_tensor_view *out, uint8_t **data)
{
    uint64_t bytes;

    if (one->rank == MUC_MAX_RANK || !muc_mul_u64(one->bytes, runs, &bytes) || bytes >= SIZE_MAX)
        return muc_fail(ctx, MUC_UNSUPPORTED, one->name, MUC_NO_OFFSET,
                        "%" PRIu64 " results in a row are too many", runs);
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)bytes + 1, data));
    *out = *one;
    out->rank = one->rank + 1;
    memcpy(out->dims + 1, one->dims, one->rank * sizeof(*out->dims));
    out->dims[0] = runs;
    out->data = *data;
    return muc_tensor_measure(ctx, out);
}
