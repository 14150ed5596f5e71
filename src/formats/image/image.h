/* image.h - pictures of eight bits a sample: PNG (libpng), PGM and PPM. */
#ifndef MUC_IMAGE_H
#define MUC_IMAGE_H

#include "base/arena.h"
#include "base/bytes.h"

enum { MUC_IMAGE_MOST_SIDE = 16384, MUC_IMAGE_MOST_PIXELS = 1 << 24 };

typedef struct muc_image {
    uint32_t width, height;
    uint32_t channels;   /* 1: grey; 3: red, green, blue */
    const uint8_t *data; /* [height][width][channels], row 0 at the top; in the arena */
} muc_image;

/* Reads a picture, by what its file begins with. Samples of more bits are rounded to eight; what is
 * transparent in a PNG keeps its colour. Fails with MUC_MALFORMED naming file and offset, with
 * MUC_UNSUPPORTED for files of another kind and for pictures beyond the limits above. */
muc_status muc_image_read(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_image *out);

/* Whether muc_image_read would take the file for one of its kinds. */
bool muc_image_probe(muc_bytes bytes);

/* A picture's size is checked, and its data are made: for the readers of this folder. */
muc_status muc_image_new(muc_context *ctx, muc_arena *arena, muc_bytes bytes, uint64_t width,
                         uint64_t height, uint32_t channels, muc_image *out, uint8_t **data);
muc_status muc_image_read_png(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_image *out);
muc_status muc_image_read_pnm(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_image *out);

#endif
