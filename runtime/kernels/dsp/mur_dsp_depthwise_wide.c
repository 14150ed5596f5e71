/* mur_dsp_depthwise_wide.c - depthwise convolutions 3x3, 5x5 and 7x7 with any requantization: a row
 * of sums at a time. */
#define MUR_DSP_PLANE_SUMS
#include "mur_dsp_planes.h"
#include "mur_nn_arith.h"

static void run_channel(const mur_conv_s8 *layer, const uint32_t *head, const int8_t *tail,
                        mur_dsp_plane *plane, int8_t *out)
{
    mur_dsp_plane row = *plane;
    int32_t *sums = mur_dsp_plane_sums(layer, (uint32_t *)(uintptr_t)plane->weights);

    (void)tail;
    row.rows = 1;
    row.out = (int8_t *)(void *)sums;
    for (int32_t y = 0; y < layer->shape.out_h; y++) {
        mur_dsp_run_plane(layer, &row);
        row.x += row.row_step / 2;
        row.x_end += row.row_step / 2;
        for (int32_t x = 0; x < layer->shape.out_w; x++)
            out[y * layer->shape.out_pitch + x * layer->shape.out_c] =
                mur_requant(sums[x], (int32_t)head[1], (int32_t)head[2], &layer->output);
    }
}

void mur_dsp_depthwise_wide_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out,
                               void *scratch)
{
    mur_dsp_run_planes(layer, in, out, scratch, MUR_DSP_PLANE_WIDE_WORDS, run_channel);
}
