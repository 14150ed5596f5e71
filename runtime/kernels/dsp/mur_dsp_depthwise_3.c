/* mur_dsp_depthwise_3.c - depthwise convolutions 3x3 in TensorFlow Lite's arithmetic.
 *
 * A channel of the input is copied to a padded plane of int16 in scratch, so the output may
 * overwrite the input. The border of the plane is filled once. */
#include "mur_dsp_block.h"
#include "mur_dsp_depthwise.h"
#include "mur_nn_arith.h"

static void set_block(const mur_conv_s8 *layer, const mur_word *x, int8_t *out,
                      mur_dsp_block *block)
{
    const mur_conv_shape *s = &layer->shape;

    block->x = x;
    block->pitch = mur_dsp_plane_rows(layer) * 4;
    block->x_step = block->pitch * s->stride_w;
    block->rows = (s->out_h > 1 ? s->out_h >> 1 : 1) * 8 * s->stride_h;
    block->odd = s->out_h > 1 ? (s->out_h & 1) * 4 * s->stride_h : 0;
    block->up = s->out_h > 1 ? -s->out_pitch : 0;
    block->pairs = (s->out_w + 1) >> 1;
    block->last_step = s->out_w & 1 ? 0 : s->out_c;
    block->out_step = s->out_c;
    block->out = out - block->up;
    block->head = layer->packed;
    block->tail = (const int8_t *)(block->head + MUR_DSP_PLANE_WORDS * s->in_c);
    block->zero = 2 * layer->output.zero + 1;
    block->channels = s->in_c;
}

/* the part of the image that windows touch, at its place in the plane */
static void set_columns(const mur_conv_s8 *layer, mur_word *x, mur_dsp_columns *image)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t rows = mur_dsp_plane_rows(layer), odd = s->pad_left & 1, down;

    image->rows = mur_clamp(rows - s->pad_top, 0, s->in_h);
    image->columns = mur_clamp(mur_dsp_plane_columns(layer) - s->pad_left, 0, s->in_w);
    if (image->columns == 0) { /* a column of nothing */
        image->rows = 0;
        image->columns = 1;
    }
    down = 4 * image->rows;
    image->to = (int16_t *)(void *)(x + (s->pad_left >> 1) * rows + s->pad_top) + odd;
    image->step = s->in_pitch;
    image->rest = (odd ? 4 * rows - 2 : 2) - down;
    image->rests = 4 * rows - 2 * down;
    image->from_rest = s->in_c - image->rows * s->in_pitch;
}

void mur_dsp_depthwise_3_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    int32_t words = mur_dsp_plane_rows(layer) * mur_dsp_plane_columns(layer) / 2;
    uint32_t border = ((uint32_t)layer->in_zero & 0xffff) * 0x10001;
    mur_word *x = scratch;
    mur_dsp_block block;

    set_block(layer, x, out, &block);
    set_columns(layer, x, &block.image);
    block.image.from = in;
    for (int32_t i = 0; i < words; i++)
        x[i] = border;
    mur_dsp_run_blocks(&block);
    mur_dsp_clamp(layer, out);
}
