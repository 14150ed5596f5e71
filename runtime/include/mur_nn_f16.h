/* mur_nn_f16.h - layers on binary16 by Helium: the bits of mur_nn_f32.h on the same numbers, each
 * result rounded to the nearest half, ties to even. Products of two halves are exact in binary32,
 * so a fused multiply-add rounds as the two operations do, and no sum of them is below 2^-48 but 0,
 * so none is flushed. A NaN stays one, its sign and fraction are anything.
 *
 * Halves are their bits. Data are NHWC as in mur_nn_f32.h; weights are what its _pack writes, each
 * element rounded. They must be finite and biases not -0: taps outside the image are zeros.
 * Alignment: 2 bytes, scratch 4. */
#ifndef MUR_NN_F16_H
#define MUR_NN_F16_H

#include "mur_nn.h"

typedef struct mur_conv_f16 {
    mur_conv_shape shape;
    int32_t relu; /* what is not above 0 becomes +0 */
    const float
        *limits; /* then what is below [0] becomes that, above [1] that; NULL: none. Halves. */
    const uint16_t *packed;
} mur_conv_f16;

/* convolutions, pointwise and fully connected layers (n vectors: an image of n pixels) */
void mur_mve_conv_f16(const mur_conv_f16 *layer, const uint16_t *in, uint16_t *out, void *scratch);
/* groups = in_c = out_c */
void mur_mve_depthwise_f16(const mur_conv_f16 *layer, const uint16_t *in, uint16_t *out,
                           void *scratch);

/* outputs that mur_mve_conv_f16 computes together, of one row or row after row */
static inline int32_t mur_mve_conv_f16_pixels(const mur_conv_shape *shape)
{
    return shape->out_h == 1 && shape->out_w == 1 ? 1 : 4;
}

/* those of a row that mur_mve_depthwise_f16 does, and the columns under them and up to four */
static inline int32_t mur_mve_depthwise_f16_pixels(const mur_conv_shape *shape)
{
    return shape->out_w < 16 ? shape->out_w : 16;
}

static inline int32_t mur_mve_depthwise_f16_columns(const mur_conv_shape *shape)
{
    int32_t pixels = (mur_mve_depthwise_f16_pixels(shape) + 3) & ~3;

    return (pixels - 1) * shape->stride_w + (shape->kernel_w - 1) * shape->dilation_w + 1;
}

/* On the host: scratch, and what mur_conv_f32_lead is for the others. */
size_t mur_mve_conv_f16_scratch_bytes(const mur_conv_shape *shape);
int32_t mur_mve_conv_f16_lead(const mur_conv_shape *shape);
size_t mur_mve_depthwise_f16_scratch_bytes(const mur_conv_shape *shape);
int32_t mur_mve_depthwise_f16_lead(const mur_conv_shape *shape);

/* Pools as mur_pool_s8 has them, without min and max. The greatest of a window, or the mean, whose
 * sum and quotient are those of binary32, in the order of the pixels. */
typedef mur_pool_s8 mur_pool_f16;
void mur_mve_greatest_f16(const mur_pool_f16 *layer, const uint16_t *in, uint16_t *out);
void mur_mve_averages_f16(const mur_pool_f16 *layer, const uint16_t *in, uint16_t *out);

/* Element by element. y may be an input; of mur_mve_halves_of also the place of x. */
void mur_mve_floats_of(int32_t count, const uint16_t *x, float *y);
void mur_mve_halves_of(int32_t count, const float *x, uint16_t *y);
void mur_mve_sums_f16(int32_t count, const uint16_t *a, const uint16_t *b, uint16_t *y);
void mur_mve_differences_f16(int32_t count, const uint16_t *a, const uint16_t *b, uint16_t *y);
void mur_mve_products_f16(int32_t count, const uint16_t *a, const uint16_t *b, uint16_t *y);
void mur_mve_rectified_f16(int32_t count, const uint16_t *x, uint16_t *y);
/* what is below the first limit becomes that, then what is above the second that */
void mur_mve_limited_f16(int32_t count, const float *limits, const uint16_t *x, uint16_t *y);

#endif
