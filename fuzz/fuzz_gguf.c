#include "fuzz.h"
#include "formats/gguf/gguf.h"

/* what no model holds: tensors of any name, vocabularies of any size */
static void fuzz_container(const uint8_t *data, size_t size)
{
    muc_context *ctx = muc_context_new(1);
    const muc_stored_vocabulary *vocabulary;
    muc_arena arena = { 0 };
    muc_gguf gguf;

    if (muc_gguf_parse(ctx, (muc_bytes){ data, size, "fuzz" }, &arena, &gguf) == MUC_OK) {
        fuzz_read_tensors(ctx, gguf.tensors, gguf.tensor_count);
        muc_gguf_vocabulary(&gguf, &vocabulary);
    }
    muc_arena_free(&arena);
    muc_context_free(ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_container(data, size);
    fuzz_format(muc_gguf_probe, muc_gguf_read, data, size);
    return 0;
}
