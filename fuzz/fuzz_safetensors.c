#include "fuzz.h"
#include "formats/hf/safetensors.h"

/* the container alone: a folder's config.json would tie every input to one model */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muc_checkpoint checkpoint = { .path = "fuzz" };
    muc_context *ctx = muc_context_new(1);

    if (muc_safetensors_read(ctx, (muc_bytes){ data, size, "fuzz" }, &checkpoint) == MUC_OK)
        fuzz_read_tensors(ctx, checkpoint.tensors, checkpoint.tensor_count);
    muc_checkpoint_close(&checkpoint);
    muc_context_free(ctx);
    return 0;
}
