/* mur_single_conv_narrow.c - convolutions most of whose windows reach over an edge of the image. */
#include "mur_dsp_quads.h"

void mur_single_conv_narrow_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out,
                               void *scratch)
{
    mur_dsp_run_quad_layer(layer, in, out, scratch, 1);
}
