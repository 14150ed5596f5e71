/* mur_nn_f32.h - convolutions on binary32. The same bits on every machine: products and sums are
 * each rounded once (compile with -ffp-contract=off) and added in a written order.
 *
 * An output is s within its bounds, where s begins as the bias, to which weight * input is added
 * for each tap inside the image, by kernel row, kernel column, input channel. A NaN stays one, but
 * before relu one whose sign is set may become 0. Helium takes numbers below 2^-126 as zeros.
 *
 * Data are NHWC, one image a call; in: float [in_h][in_pitch], out: float [out_h][out_pitch]. out
 * may overlap in as far as mur_conv_f32_lead tells. Alignment: 4 bytes. Nothing is allocated; only
 * products of two computed matrices need scratch. */
#ifndef MUR_NN_F32_H
#define MUR_NN_F32_H

#include "mur_nn.h"

typedef struct mur_conv_f32 {
    mur_conv_shape shape;
    int32_t relu;        /* what is not above 0 becomes +0 */
    const float *limits; /* then what is below [0] becomes that, above [1] that; NULL: none */
    const float *packed; /* what the kernel's _pack wrote */
} mur_conv_f32;

/* convolutions, pointwise and fully connected layers (n vectors: an image of n pixels) */
void mur_conv_f32_run(const mur_conv_f32 *layer, const float *in, float *out);
/* One vector by a matrix, packed as for mur_conv_f32_run: a pixel of `inputs` channels above 0. */
void mur_linear_f32(const float *packed, int32_t inputs, int32_t outputs, int32_t relu,
                    const float *in, float *out);
/* groups = in_c = out_c */
void mur_depthwise_f32_run(const mur_conv_f32 *layer, const float *in, float *out);

/* Products of two matrices that a run computes: out[i][j] is the sum of a[i][k] * b[k][j], from 0
 * on, by k. Of a and out a row's elements lie side by side, of b a row's or a column's; all in
 * elements. depth: at least 1. out overlaps neither a nor b. */
typedef struct mur_matmul_f32 {
    int32_t rows, columns, depth;
    int32_t a_pitch, b_row, b_column, out_pitch;
} mur_matmul_f32;

enum { MUR_MATMUL_F32_PANEL = 8 }; /* columns of b in scratch at a time */

void mur_matmul_f32_run(const mur_matmul_f32 *layer, const float *a, const float *b, float *out,
                        void *scratch);
/* on the host; rows count for nothing */
size_t mur_matmul_f32_scratch_bytes(const mur_matmul_f32 *layer);

/* The fewest elements by which `in` must start after `out` for either kernel to overwrite its
 * input: negative if it may start before, INT32_MIN if anything goes. On the host. */
int32_t mur_conv_f32_lead(const mur_conv_shape *shape);

/* On the host. Both kernels take weights [out_c][kernel_h][kernel_w][in_c / groups] and bias
 * [out_c] or NULL; both sizes are in elements. */
size_t mur_conv_f32_packed_elems(const mur_conv_shape *shape);
void mur_conv_f32_pack(const mur_conv_shape *shape, const float *weights, const float *bias,
                       float *packed);
size_t mur_depthwise_f32_packed_elems(const mur_conv_shape *shape);
void mur_depthwise_f32_pack(const mur_conv_shape *shape, const float *weights, const float *bias,
                            float *packed);

#endif
