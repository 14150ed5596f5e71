/* Recordings: refused, or no more samples than the file has. */
#include <stdlib.h>

#include "formats/wav/wav.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muc_context *ctx = muc_context_new(1);
    muc_arena arena = { 0 };
    muc_wav wav;

    if (muc_wav_read(ctx, &arena, (muc_bytes){ data, size, "fuzz" }, &wav) == MUC_OK) {
        int64_t sum = 0;

        for (size_t i = 0; i < wav.count; i++)
            sum += wav.samples[i];
        if (wav.count > size / 2 || sum > 32767 * (int64_t)wav.count)
            abort();
    }
    muc_arena_free(&arena);
    muc_context_free(ctx);
    return 0;
}
