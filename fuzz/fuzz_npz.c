/* Archives of arrays: refused, or arrays whose every element can be read. */
#include "formats/npy/npz.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muc_context *ctx = muc_context_new(1);
    muc_arena arena = { 0 };
    muc_tensor_view *views;
    size_t count;

    if (muc_npz_read(ctx, &arena, (muc_bytes){ data, size, "fuzz" }, &views, &count) == MUC_OK)
        fuzz_read_tensors(ctx, views, count);
    muc_arena_free(&arena);
    muc_context_free(ctx);
    return 0;
}
