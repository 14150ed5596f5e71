/* mur_single_conv.c - convolutions and pointwise layers for cores that issue one instruction at a
 * time: Cortex-M4 and M33. */
#include "mur_dsp_quads.h"

void mur_single_conv_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    mur_dsp_run_quad_layer(layer, in, out, scratch, 0);
}
