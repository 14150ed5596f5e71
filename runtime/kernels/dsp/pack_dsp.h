/* pack_dsp.h - what pack_dsp*.c have in common: an output channel as the kernels shall see it. On
 * the host. */
#ifndef PACK_DSP_H
#define PACK_DSP_H

#include "mur_nn.h"

typedef struct mur_dsp_view {
    const int8_t *weights; /* NULL: all zeros */
    int32_t count;
    int32_t bias; /* with -in_zero * the sum of the weights */
    int32_t mul, shift;
    int64_t least, most; /* the sum, bias included, over all inputs */
} mur_dsp_view;

typedef mur_dsp_view mur_dsp_viewer(const mur_conv_s8 *, const mur_conv_plain *, int32_t channel);

/* a channel as it is */
mur_dsp_viewer mur_dsp_plain_view;
/* or, if it says the same whatever it sees, as that bias */
mur_dsp_viewer mur_dsp_view_of;

/* are all channels' sums within `bits` of two's complement, and their shifts at most `shift`? */
int mur_dsp_are_simple(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t bits,
                       int32_t shift);

#endif
