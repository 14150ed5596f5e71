/* mur_dsp_depthwise.c - depthwise convolutions 5x5 and 7x7 in TensorFlow Lite's arithmetic. */
#include "mur_dsp_planes.h"

static void clamp(const mur_conv_s8 *layer, int8_t *out)
{
    for (int32_t y = 0; y < layer->shape.out_h; y++)
        for (int32_t x = 0; x < layer->shape.out_w; x++) {
            int8_t *q = out + y * layer->shape.out_pitch + x * layer->shape.out_c;

            *q = *q < layer->output.min   ? layer->output.min
                 : *q > layer->output.max ? layer->output.max
                                          : *q;
        }
}

static void run_channel(const mur_conv_s8 *layer, const uint32_t *head, const int8_t *tail,
                        mur_dsp_plane *plane, int8_t *out)
{
    plane->mul = (int32_t)head[1];
    plane->shift = *tail;
    plane->out = out;
    mur_dsp_run_plane(layer, plane);
    if (layer->output.min != INT8_MIN || layer->output.max != INT8_MAX)
        clamp(layer, out);
}

void mur_dsp_depthwise_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    mur_dsp_run_planes(layer, in, out, scratch, MUR_DSP_PLANE_WORDS, run_channel);
}
