/* png.c - reads PNG by way of libpng's simplified interface, which takes every kind of PNG there
 * is. */
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "formats/image/image.h"

static muc_status fail(muc_context *ctx, muc_bytes bytes, const png_image *png)
{
    return muc_fail(ctx, MUC_MALFORMED, bytes.name, MUC_NO_OFFSET, "damaged: %s", png->message);
}

/* with alpha, which is then left out: without it libpng would mix colours with a background */
static muc_status read_samples(muc_context *ctx, muc_bytes bytes, png_image *png, uint32_t channels,
                               uint8_t *out)
{
    size_t pixels = (size_t)png->width * png->height, stride = channels + (size_t)1;
    uint8_t *samples;
    bool ok;

    png->format = channels == 1 ? PNG_FORMAT_GA : PNG_FORMAT_RGBA;
    MUC_TRY(MUC_NEW_ARRAY(ctx, bytes.name, pixels * stride, &samples));
    ok = png_image_finish_read(png, NULL, samples, 0, NULL) != 0;
    for (size_t i = 0; ok && i < pixels; i++)
        memcpy(out + i * channels, samples + i * stride, channels);
    free(samples);
    return ok ? MUC_OK : fail(ctx, bytes, png);
}

muc_status muc_image_read_png(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_image *out)
{
    png_image png = { .version = PNG_IMAGE_VERSION };
    uint32_t channels;
    muc_status status;
    uint8_t *data;

    if (!png_image_begin_read_from_memory(&png, bytes.data, bytes.size))
        return fail(ctx, bytes, &png);
    channels = png.format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
    status = muc_image_new(ctx, arena, bytes, png.width, png.height, channels, out, &data);
    if (status == MUC_OK)
        status = read_samples(ctx, bytes, &png, channels, data);
    png_image_free(&png);
    return status;
}
