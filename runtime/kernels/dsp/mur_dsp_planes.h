/* mur_dsp_planes.h - depthwise convolutions channel by channel, for mur_dsp_depthwise_s8 and
 * mur_dsp_depthwise_wide_s8.
 *
 * A channel of the input is copied to a padded plane of int16 in scratch, so an unaligned pair of
 * neighbours is one word; then the output may overwrite the input. The border of the plane is
 * filled once. */
#ifndef MUR_DSP_PLANES_H
#define MUR_DSP_PLANES_H

#include "mur_dsp_depthwise.h"
#include "mur_dsp_plane.h"

static inline int32_t mur_dsp_least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static void mur_dsp_run_plane(const mur_conv_s8 *layer, const mur_dsp_plane *plane)
{
    static void (*const loops[3][2])(const mur_dsp_plane *) = {
#ifdef MUR_DSP_PLANE_SUMS
        { mur_dsp_plane_3_1, mur_dsp_plane_3_2 },
#else
        { NULL, NULL },
#endif
        { mur_dsp_plane_5_1, mur_dsp_plane_5_2 },
        { mur_dsp_plane_7_1, mur_dsp_plane_7_2 },
    };

    loops[layer->shape.kernel_h / 2 - 1][layer->shape.stride_w - 1](plane);
}

/* From a plane, set up but for what the channel's numbers are, to the channel's outputs at out.
 * head: its words; tail: its bytes. */
typedef void mur_dsp_run_channel(const mur_conv_s8 *layer, const uint32_t *head, const int8_t *tail,
                                 mur_dsp_plane *plane, int8_t *out);

/* words: of a channel */
static void mur_dsp_run_planes(const mur_conv_s8 *layer, const int8_t *in, int8_t *out,
                               void *scratch, int32_t words, mur_dsp_run_channel *run)
{
    int32_t lead = mur_dsp_plane_lead(words), taps = layer->shape.kernel_h * layer->shape.kernel_w;
    const uint32_t *head = layer->packed;
    const int8_t *tail = (const int8_t *)(head + words * layer->shape.in_c);
    int32_t columns = mur_dsp_plane_columns(layer), rows = mur_dsp_plane_rows(layer);
    uint32_t *weights = scratch;
    int16_t *x = (int16_t *)(weights + MUR_DSP_PLANE_WEIGHTS);
    mur_dsp_channel image;
    mur_dsp_plane plane;

    image.to = x + layer->shape.pad_top * columns + layer->shape.pad_left;
    image.step = layer->shape.in_c;
    image.rows = mur_dsp_least(layer->shape.in_h, rows - layer->shape.pad_top);
    image.columns = mur_dsp_least(layer->shape.in_w, columns - layer->shape.pad_left);
    image.to_rest = (columns - image.columns) * 2;
    image.from_rest = layer->shape.in_pitch - image.columns * layer->shape.in_c;
    plane.x = x;
    plane.row_step = layer->shape.stride_h * columns * 2;
    plane.pitch = columns * 2;
    plane.rows = layer->shape.out_h;
    plane.x_end = x + layer->shape.out_w * layer->shape.stride_w;
    plane.out_step = layer->shape.out_c;
    plane.zero = layer->output.zero;
    plane.out_pitch = layer->shape.out_pitch;
    plane.weights = weights;
    for (int32_t i = 0; i < rows * columns; i++)
        x[i] = layer->in_zero;
    for (int32_t c = 0; c < layer->shape.in_c; c++) {
        image.from = in + c;
        if (image.rows > 0)
            mur_dsp_gather(&image);
        mur_dsp_expand(weights, tail + lead, layer->shape.kernel_h, layer->shape.stride_w,
                       words == MUR_DSP_PLANE_WORDS ? 0 : layer->weight_zero);
        plane.bias = (int32_t)head[0];
        run(layer, head, tail, &plane, out + c);
        head += words;
        tail += lead + taps;
    }
}

#endif
