#include "fuzz.h"

enum { CHUNK = 256 };

void fuzz_read_tensors(muc_context *ctx, const muc_tensor_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const muc_tensor_view *view = &views[i];
        float values[CHUNK];

        for (uint64_t first = 0; first < view->elements; first += CHUNK) {
            uint64_t left = view->elements - first;

            if (muc_tensor_to_f32(ctx, view, first, left < CHUNK ? left : CHUNK, values) != MUC_OK)
                break;
        }
    }
}

void fuzz_format(muc_format_probe *probe, muc_format_read *read, const uint8_t *data, size_t size)
{
    muc_source source = { .path = "fuzz", .bytes = { data, size, "fuzz" } };
    muc_checkpoint checkpoint = { .path = "fuzz" };
    muc_context *ctx = muc_context_new(1);

    if (probe(&source) && read(ctx, &source, &checkpoint) == MUC_OK &&
        muc_checkpoint_settle(ctx, &checkpoint) == MUC_OK)
        fuzz_read_tensors(ctx, checkpoint.tensors, checkpoint.tensor_count);
    muc_checkpoint_close(&checkpoint);
    muc_context_free(ctx);
}
