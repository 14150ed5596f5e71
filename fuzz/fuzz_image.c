/* Pictures: refused, or as many samples as their size says. */
#include <stdlib.h>

#include "formats/image/image.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    muc_context *ctx = muc_context_new(1);
    muc_arena arena = { 0 };
    muc_image image;

    if (muc_image_read(ctx, &arena, (muc_bytes){ data, size, "fuzz" }, &image) == MUC_OK) {
        size_t samples = (size_t)image.width * image.height * image.channels;
        uint64_t sum = 0;

        for (size_t i = 0; i < samples; i++)
            sum += image.data[i];
        if (samples == 0 || sum > 255 * (uint64_t)samples)
            abort();
    }
    muc_arena_free(&arena);
    muc_context_free(ctx);
    return 0;
}
