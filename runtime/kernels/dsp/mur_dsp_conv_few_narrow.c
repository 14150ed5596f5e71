/* mur_dsp_conv_few_narrow.c - layers of few inputs, most of whose windows reach over an edge. */
#include "mur_dsp_few.h"

void mur_dsp_conv_few_narrow_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out,
                                void *scratch)
{
    mur_dsp_run_few(layer, in, out, scratch, 1);
}
