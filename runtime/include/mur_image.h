/* mur_image.h - a part of a camera's picture in the size that a network takes, in integers. */
#ifndef MUR_IMAGE_H
#define MUR_IMAGE_H

#include <stdint.h>

typedef struct mur_image {
    const uint8_t *pixels; /* [height][width][channels], rows `pitch` bytes apart */
    uint16_t width, height;
    uint32_t pitch;
    uint8_t channels; /* 1..4 */
} mur_image;

/* The part that is scaled; it lies inside the picture. */
typedef struct mur_image_part {
    uint16_t x, y, width, height;
} mur_image_part;

typedef struct mur_image_target {
    uint8_t *pixels; /* [height][width][channels of the picture] */
    uint16_t width, height;
    uint8_t flipped; /* bits to flip in every sample: 0, or 0x80 for int8 inputs that take samples -
                        128 */
} mur_image_target;

typedef enum mur_image_filter {
    MUR_IMAGE_NEAREST,  /* the pixel at the middle */
    MUR_IMAGE_BILINEAR, /* between the four pixels around the middle: PyTorch's interpolate */
    MUR_IMAGE_MEAN, /* the same, and where the result is smaller a mean of all pixels beneath it,
                       weighted by a triangle: PIL's BILINEAR, and what muc run --image does */
} mur_image_filter;

/* Bytes of scratch, aligned to 4; NEAREST needs none. */
#define MUR_IMAGE_SCRATCH_BYTES(width, channels) (4u * (width) * (channels))

/* Scales a part of the picture to the target, within 1 of real numbers rounded to nearest. Pixels
 * around the part count at its edges. Returns 0, or 1 and writes nothing if a side is 0 or above
 * 32767, the part is not inside, or it is more than 250 times as large as the target. */
int mur_image_scale(const mur_image *image, const mur_image_part *part, mur_image_filter filter,
                    void *scratch, const mur_image_target *target);

#endif
