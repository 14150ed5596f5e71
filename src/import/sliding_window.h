/* sliding_window.h - the windows of convolutions and pools: kernel, steps and padding. */
#ifndef MUC_SLIDING_WINDOW_H
#define MUC_SLIDING_WINDOW_H

#include "import/attributes.h"

enum { MUC_WINDOW_MAX_SPATIAL = 3 };

/* How a file asks for padding that follows from sizes. */
typedef enum muc_padding {
    MUC_PADDING_GIVEN, /* pads as they are */
    MUC_PADDING_VALID, /* none */
    MUC_PADDING_SAME,  /* a window for each stride that begins inside; the odd element behind */
    MUC_PADDING_SAME_LOWER, /* the same, the odd element in front */
    MUC_PADDING_CAUSAL,     /* as SAME with stride 1, all in front */
} muc_padding;

/* Lists have an item for each spatial dimension, pads those in front and then those behind. */
typedef struct muc_window {
    uint32_t spatial;
    int64_t kernel[MUC_WINDOW_MAX_SPATIAL], strides[MUC_WINDOW_MAX_SPATIAL];
    int64_t dilations[MUC_WINDOW_MAX_SPATIAL], pads[2 * MUC_WINDOW_MAX_SPATIAL];
} muc_window;

/* Elements of the input from the first to the last that a window reads along dimension i. */
int64_t muc_window_span(const muc_window *w, uint32_t i);
/* The pads along dimension i, of so many elements, that the kind of padding asks for. */
void muc_window_pad(muc_window *w, uint32_t i, int64_t size, muc_padding padding);
/* A total, or 0 where it is less, in front of and behind dimension i. */
void muc_window_share(muc_window *w, uint32_t i, int64_t total, muc_padding padding);
/* The pads of a transposed convolution of an input of `size` elements along dimension i that gives
 * `wanted`; *more, output padding asked for, grows where windows do not reach that far. */
void muc_window_pad_transposed(muc_window *w, uint32_t i, int64_t size, int64_t wanted,
                               muc_padding padding, int64_t *more);
/* Strides, and dilations and pads where they are not 1 and 0, or are wanted in any case: a graph's
 * text, and the fingerprint of what is compiled from it, stay what they were in each format. */
void muc_window_set(const muc_window *w, muc_attributes *a, bool dilations, bool pads);

#endif
