/* mur_dsp_depthwise_3.c - depthwise convolutions 3x3 in TensorFlow Lite's arithmetic.
 *
 * A channel of the input is copied to a padded plane of int16 in scratch, so the output may
 * overwrite the input. The border of the plane is filled once. */
#include "mur_dsp_block.h"
#include "mur_dsp_depthwise.h"
#include "mur_nn_arith.h"

static uint32_t two(int32_t low, int32_t high)
{
    return (uint16_t)low | (uint32_t)(uint16_t)high << 16;
}

/* a channel's numbers, out of its words at head and its bytes at tail */
static void set_channel(const mur_conv_s8 *layer, const uint32_t *head, const int8_t *tail,
                        mur_dsp_block *block)
{
    int32_t shift = *tail++ - 1;

    block->bias = 2 * (int32_t)head[0];
    block->mul = (int32_t)(head[1] >> 1);
    block->shift = layer->output.zero == INT8_MIN ? shift : INT32_MIN + shift;
    block->round = (2 * layer->output.zero + 1) * (1 << shift);
    for (int32_t i = 0; i < 3; i++, tail += 3) {
        block->w[i][0] = two(2 * tail[0], 2 * tail[1]);
        block->w[i][1] = two(2 * tail[1], 2 * tail[2]);
    }
}

static void set_block(const mur_conv_s8 *layer, const mur_word *x, mur_dsp_block *block)
{
    const mur_conv_shape *s = &layer->shape;

    block->x = x;
    block->pitch = mur_dsp_plane_rows(layer) * 4;
    block->rows = (s->out_h >> 1) * 8 * s->stride_h;
    block->last_row = (s->out_h & 1) * 8 * s->stride_h;
    block->pairs = (s->out_w + 1) >> 1;
    block->last_step = s->out_w & 1 ? 0 : s->out_c;
    block->out_step = s->out_c;
    block->out_pitch = s->out_pitch;
}

/* the part of the image that windows touch, at its place in the plane */
static void set_columns(const mur_conv_s8 *layer, mur_word *x, mur_dsp_columns *image)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t rows = mur_dsp_plane_rows(layer), odd = s->pad_left & 1, down;

    image->rows = mur_clamp(rows - s->pad_top, 0, s->in_h);
    image->columns = mur_clamp(mur_dsp_plane_columns(layer) - s->pad_left, 0, s->in_w);
    down = 4 * image->rows;
    image->to = (int16_t *)(void *)(x + (s->pad_left >> 1) * rows + s->pad_top) + odd;
    image->step = s->in_pitch;
    image->rest = (odd ? 4 * rows - 2 : 2) - down;
    image->other_rest = (odd ? 2 : 4 * rows - 2) - down;
    image->from_rest = s->in_c - image->rows * s->in_pitch;
}

static void clamp(const mur_conv_s8 *layer, int8_t *out)
{
    for (int32_t y = 0; y < layer->shape.out_h; y++, out += layer->shape.out_pitch)
        for (int32_t i = 0; i < layer->shape.out_w * layer->shape.out_c; i++)
            out[i] = (int8_t)mur_clamp(out[i], layer->output.min, layer->output.max);
}

void mur_dsp_depthwise_3_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    const mur_conv_shape *s = &layer->shape;
    const uint32_t *head = layer->packed;
    const int8_t *tail = (const int8_t *)(head + MUR_DSP_PLANE_WORDS * s->in_c);
    void (*run)(const mur_dsp_block *) = s->stride_w == 1 ? mur_dsp_block_1 : mur_dsp_block_2;
    int32_t words = mur_dsp_plane_rows(layer) * mur_dsp_plane_columns(layer) / 2;
    mur_word *x = scratch;
    mur_dsp_columns image;
    mur_dsp_block block;

    set_block(layer, x, &block);
    set_columns(layer, x, &image);
    for (int32_t i = 0; i < words; i++)
        x[i] = two(layer->in_zero, layer->in_zero);
    for (int32_t c = 0; c < s->in_c; c++, head += MUR_DSP_PLANE_WORDS, tail += 10) {
        image.from = in + c;
        if (image.rows > 0 && image.columns > 0)
            mur_dsp_gather_columns(&image);
        set_channel(layer, head, tail, &block);
        block.out = out + c;
        run(&block);
    }
    if (layer->output.min != INT8_MIN || layer->output.max != INT8_MAX)
        clamp(layer, out);
}
