/* mur_tiles_layers.c - kernels on pieces of layers: each gets a descriptor of its piece. */
#include "mur_tiles.h"

#include <stddef.h>

/* rows of padding above a piece */
static uint16_t pad_above(uint32_t row, uint32_t stride, uint32_t pad)
{
    return (uint16_t)(row * (uint64_t)stride < pad ? pad - row * stride : 0);
}

/* is a column of pixels a row of them that was set upright? Only then scratch is that of a row. */
static int was_row(const mur_conv_shape *shape)
{
    return shape->in_w == 1 && shape->out_w == 1 && shape->in_h == shape->out_h &&
           shape->kernel_h == 1 && shape->kernel_w == 1 && shape->stride_h == 1 &&
           shape->stride_w == 1 && shape->pad_top == 0 && shape->pad_left == 0;
}

static void cut_conv(mur_conv_shape *shape, const mur_tiles_piece *piece)
{
    int row = was_row(shape);

    if (shape->groups > 1) /* depthwise: the input is cut with the result */
        shape->in_c = shape->groups = (int32_t)piece->channels;
    shape->out_c = (int32_t)piece->channels;
    shape->in_h = (int32_t)piece->data_rows[0];
    shape->out_h = (int32_t)piece->rows;
    shape->pad_top = pad_above(piece->row, shape->stride_h, shape->pad_top);
    if (row) {
        shape->in_w = shape->out_w = shape->out_h;
        shape->in_h = shape->out_h = 1;
    }
    shape->in_pitch = shape->in_w * shape->in_c;
    shape->out_pitch = shape->out_w * shape->out_c;
}

void mur_tiles_piece_of_conv_s8(const mur_tiles_piece *piece, const void *kernel)
{
    mur_tiles_conv_s8_kernel *const *run = kernel;
    mur_conv_s8 layer = *(const mur_conv_s8 *)piece->layer;

    cut_conv(&layer.shape, piece);
    layer.packed = piece->data[1];
    (*run)(&layer, (const int8_t *)piece->data[0], (int8_t *)piece->data[2], piece->scratch);
}

void mur_tiles_conv_s8(const mur_tiles *tiles, const mur_conv_s8 *layer,
                       mur_tiles_conv_s8_kernel *kernel, const int8_t *in, int8_t *out,
                       uint8_t *small)
{
    void *const data[MUR_TILES_OPERANDS] = { (void *)(uintptr_t)in,
                                             (void *)(uintptr_t)layer->packed, out, NULL };

    mur_tiles_run(tiles, layer, mur_tiles_piece_of_conv_s8, &kernel, data, small);
}

void mur_tiles_piece_of_conv_f32(const mur_tiles_piece *piece, const void *kernel)
{
    mur_tiles_conv_f32_kernel *const *run = kernel;
    mur_conv_f32 layer = *(const mur_conv_f32 *)piece->layer;

    cut_conv(&layer.shape, piece);
    layer.packed = (const float *)(const void *)piece->data[1];
    (*run)(&layer, (const float *)(const void *)piece->data[0], (float *)(void *)piece->data[2]);
}

void mur_tiles_conv_f32(const mur_tiles *tiles, const mur_conv_f32 *layer,
                        mur_tiles_conv_f32_kernel *kernel, const float *in, float *out,
                        uint8_t *small)
{
    void *const data[MUR_TILES_OPERANDS] = { (void *)(uintptr_t)in,
                                             (void *)(uintptr_t)layer->packed, out, NULL };

    mur_tiles_run(tiles, layer, mur_tiles_piece_of_conv_f32, &kernel, data, small);
}

void mur_tiles_piece_of_pool_s8(const mur_tiles_piece *piece, const void *kernel)
{
    mur_tiles_pool_s8_kernel *const *run = kernel;
    mur_pool_s8 layer = *(const mur_pool_s8 *)piece->layer;

    layer.c = (int32_t)piece->channels;
    layer.in_h = (int32_t)piece->data_rows[0];
    layer.out_h = (int32_t)piece->rows;
    layer.pad_top = pad_above(piece->row, layer.stride_h, layer.pad_top);
    layer.in_pitch = layer.in_w * layer.c;
    layer.out_pitch = layer.out_w * layer.c;
    (*run)(&layer, (const int8_t *)piece->data[0], (int8_t *)piece->data[1]);
}

void mur_tiles_pool_s8(const mur_tiles *tiles, const mur_pool_s8 *layer,
                       mur_tiles_pool_s8_kernel *kernel, const int8_t *in, int8_t *out,
                       uint8_t *small)
{
    void *const data[MUR_TILES_OPERANDS] = { (void *)(uintptr_t)in, out, NULL, NULL };

    mur_tiles_run(tiles, layer, mur_tiles_piece_of_pool_s8, &kernel, data, small);
}
