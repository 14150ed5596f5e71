/* window.h - convolutions and pools: where windows lie, in one to three dimensions alike. */
#ifndef MUC_REF_WINDOW_H
#define MUC_REF_WINDOW_H

#include "ref/walk.h"

enum { MUC_REF_SPATIAL = 3 };

/* Dimensions that a node does not have come first, with 1 element and a kernel of 1. */
typedef struct muc_ref_window {
    bool channels_last;
    size_t batch, channels, out_channels; /* of x and of the output */
    size_t in[MUC_REF_SPATIAL], out[MUC_REF_SPATIAL];
    size_t kernel[MUC_REF_SPATIAL], stride[MUC_REF_SPATIAL], dilation[MUC_REF_SPATIAL];
    size_t begin[MUC_REF_SPATIAL], end[MUC_REF_SPATIAL]; /* padding */
    size_t positions, out_positions, taps;               /* the products of in, out, kernel */
} muc_ref_window;

/* Of a node whose attributes are conv's or a pool's; weights NULL: the kernel is an attribute.
 * MUC_UNSUPPORTED for a kernel of more than 2^28 elements. */
muc_status muc_ref_window_of(const muc_ref_call *call, const muc_ref_value *x,
                             const muc_ref_value *weights, const muc_ref_value *out,
                             muc_ref_window *w);
/* The positions in x, or -1 in the padding, of the taps [w->taps] of output position `at`. */
void muc_ref_window_taps(const muc_ref_window *w, size_t at, ptrdiff_t *taps);

/* How many of these taps a mean is of: those in x, or all before the end of the padding. */
size_t muc_ref_window_counted(const muc_ref_window *w, size_t at, const ptrdiff_t *taps,
                              bool counts_padding);

/* Convolution of x [batch, channels, ..] with weights [out, channels / groups, ..], or with the
 * channels last, all of one type: F32, F64, I32 or I64; adds bias [out], of reals, unless NULL. */
muc_status muc_ref_convolve(const muc_ref_call *call, const muc_ref_window *w, muc_dtype dtype,
                            size_t groups, const void *x, const void *weights, const void *bias,
                            void *out);

#endif
