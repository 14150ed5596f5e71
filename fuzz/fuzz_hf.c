/* A Hugging Face folder in one input: config.json up to the first zero byte, then
 * model.safetensors. */
#include <string.h>

#include "formats/hf/hf_config.h"
#include "formats/hf/hf_lowbit.h"
#include "formats/hf/hf_packed.h"
#include "formats/hf/hf_tensors.h"
#include "formats/hf/safetensors.h"
#include "fuzz.h"

static muc_status read_model(muc_context *ctx, muc_bytes config, muc_bytes weights,
                             muc_checkpoint *checkpoint)
{
    MUC_TRY(muc_hf_read_config(ctx, config, checkpoint));
    MUC_TRY(muc_safetensors_read(ctx, weights, checkpoint));
    if (checkpoint->weights)
        MUC_TRY(muc_hf_unpack(ctx, checkpoint));
    if (checkpoint->packed)
        MUC_TRY(muc_hf_unpack_others(ctx, checkpoint));
    MUC_TRY(muc_hf_rename(ctx, checkpoint));
    return muc_checkpoint_finish(ctx, checkpoint);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    size_t config_size = end ? (size_t)(end - data) : size, after = config_size + (end != NULL);
    muc_checkpoint checkpoint = { .path = "fuzz" };
    muc_context *ctx = muc_context_new(1);

    if (read_model(ctx, (muc_bytes){ data, config_size, "config.json" },
                   (muc_bytes){ data + after, size - after, "model.safetensors" },
                   &checkpoint) == MUC_OK)
        fuzz_read_tensors(ctx, checkpoint.tensors, checkpoint.tensor_count);
    muc_checkpoint_close(&checkpoint);
    muc_context_free(ctx);
    return 0;
}
