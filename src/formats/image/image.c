/* image.c - finds the reader for an image file, and checks the limits of all. */
#include "formats/image/image.h"

#include <string.h>

typedef enum kind { NO_PICTURE, PNG, PNM } kind;

static kind kind_of(muc_bytes bytes)
{
    const uint8_t *p = bytes.data;

    if (bytes.size >= 8 && memcmp(p, "\x89PNG\r\n\x1a\n", 8) == 0)
        return PNG;
    if (bytes.size >= 3 && p[0] == 'P' &&
        (p[1] == '2' || p[1] == '3' || p[1] == '5' || p[1] == '6') &&
        (p[2] == ' ' || p[2] == '\n' || p[2] == '\r' || p[2] == '\t' || p[2] == '#'))
        return PNM;
    return NO_PICTURE;
}

bool muc_image_probe(muc_bytes bytes)
{
    return kind_of(bytes) != NO_PICTURE;
}

muc_status muc_image_new(muc_context *ctx, muc_arena *arena, muc_bytes bytes, uint64_t width,
                         uint64_t height, uint32_t channels, muc_image *out, uint8_t **data)
{
    if (width == 0 || height == 0)
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, MUC_NO_OFFSET, "the picture has no pixels");
    if (width > MUC_IMAGE_MOST_SIDE || height > MUC_IMAGE_MOST_SIDE ||
        width * height > MUC_IMAGE_MOST_PIXELS)
        return muc_fail(ctx, MUC_UNSUPPORTED, bytes.name, MUC_NO_OFFSET,
                        "a picture of %llu x %llu pixels: at most %d in all are taken",
                        (unsigned long long)width, (unsigned long long)height,
                        MUC_IMAGE_MOST_PIXELS);
    MUC_TRY(muc_arena_new(ctx, arena, (size_t)(width * height * channels), 1, (void **)data));
    *out = (muc_image){ (uint32_t)width, (uint32_t)height, channels, *data };
    return MUC_OK;
}

#ifndef MUC_WITH_PNG
muc_status muc_image_read_png(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_image *out)
{
    (void)arena, (void)out;
    return muc_fail(ctx, MUC_UNSUPPORTED, bytes.name, MUC_NO_OFFSET,
                    "this muc was built without libpng, which .png files need");
}
#endif

muc_status muc_image_read(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_image *out)
{
    switch (kind_of(bytes)) {
    case PNG:
        return muc_image_read_png(ctx, arena, bytes, out);
    case PNM:
        return muc_image_read_pnm(ctx, arena, bytes, out);
    case NO_PICTURE:
        break;
    }
    return muc_fail(ctx, MUC_UNSUPPORTED, bytes.name, 0,
                    "is not a picture that is read: neither PNG nor PGM nor PPM");
}
