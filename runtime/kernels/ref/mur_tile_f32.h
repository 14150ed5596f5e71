/* mur_tile_f32.h - four or one pixels by fours of channels of convolutions on binary32: the core of
 * mur_conv_f32.c, in C and by Helium; mur_tile_vfp.h has it for Arm's floating-point unit.
 *
 * The part of a pixel's window that lies inside the image is `rows` rows of `taps` runs. A run is
 * elements that lie side by side in the input and (times four channels) in the weights; of a
 * depthwise layer it is one element of each channel. */
#ifndef MUR_TILE_F32_H
#define MUR_TILE_F32_H

#include "mur_f32.h"

/* Runs, steps and jumps are in bytes. The assembly knows where the members lie. */
typedef struct mur_tile_f32 {
    const float *x[4];      /* each pixel's first run; tiles of depthwise layers move them */
    int32_t run;            /* of input, above 0; not of depthwise layers */
    int32_t taps, tap_jump; /* from a run's end to the row's next one */
    int32_t rows, row_jump; /* from a row's last jump to the next row; rows may be 0 */
    int32_t w_skip;         /* from a block's biases to its first weight */
    int32_t w_jump;         /* from a row's end to the next one */
    int32_t w_rest;         /* from the last row's jump to the next block */
    int32_t out_step;       /* from pixel to pixel */
    int32_t relu;           /* what is not above 0 becomes +0 */
    int32_t tap_step;       /* of a depthwise layer, from a tap to the row's next one */
    int32_t blocks;         /* of four channels, above 0 */
} mur_tile_f32;

#if MUR_HAVE_VFP

#include "mur_tile_vfp.h"

#else

/* Returns the weights of the next block, as all of these do. */
MUR_APART const float *mur_tile4_f32(const mur_tile_f32 *t, const float *w, float *out)
{
    int32_t out_step = t->out_step / (int32_t)sizeof(*out);

    for (int32_t block = 0; block < t->blocks; block++, out += 4) {
        const float *x0 = t->x[0], *x1 = t->x[1], *x2 = t->x[2], *x3 = t->x[3];
        mur_four_f32 a = mur_load_f32(w), b = a, c = a, d = a;

        w = mur_moved(w + 4, t->w_skip);
        for (int32_t row = 0; row < t->rows; row++) {
            for (int32_t tap = 0; tap < t->taps; tap++) {
                for (const float *end = mur_moved(x0, t->run); x0 != end; w += 4) {
                    mur_four_f32 four = mur_load_f32(w);

                    a = mur_add_scaled_f32(a, four, *x0++);
                    b = mur_add_scaled_f32(b, four, *x1++);
                    c = mur_add_scaled_f32(c, four, *x2++);
                    d = mur_add_scaled_f32(d, four, *x3++);
                }
                x0 = mur_moved(x0, t->tap_jump);
                x1 = mur_moved(x1, t->tap_jump);
                x2 = mur_moved(x2, t->tap_jump);
                x3 = mur_moved(x3, t->tap_jump);
            }
            x0 = mur_moved(x0, t->row_jump);
            x1 = mur_moved(x1, t->row_jump);
            x2 = mur_moved(x2, t->row_jump);
            x3 = mur_moved(x3, t->row_jump);
            w = mur_moved(w, t->w_jump);
        }
        w = mur_moved(w, t->w_rest);
        mur_store_f32(a, t->relu, out);
        mur_store_f32(b, t->relu, out + out_step);
        mur_store_f32(c, t->relu, out + 2 * out_step);
        mur_store_f32(d, t->relu, out + 3 * out_step);
    }
    return w;
}

/* the first pixel alone */
MUR_APART const float *mur_tile1_f32(const mur_tile_f32 *t, const float *w, float *out)
{
    for (int32_t block = 0; block < t->blocks; block++, out += 4) {
        const float *x = t->x[0];
        mur_four_f32 sum = mur_load_f32(w);

        w = mur_moved(w + 4, t->w_skip);
        for (int32_t row = 0; row < t->rows; row++) {
            for (int32_t tap = 0; tap < t->taps; tap++) {
                for (const float *end = mur_moved(x, t->run); x != end; w += 4)
                    sum = mur_add_scaled_f32(sum, mur_load_f32(w), *x++);
                x = mur_moved(x, t->tap_jump);
            }
            x = mur_moved(x, t->row_jump);
            w = mur_moved(w, t->w_jump);
        }
        w = mur_moved(w, t->w_rest);
        mur_store_f32(sum, t->relu, out);
    }
    return w;
}

/* the same for depthwise layers, 4 or 1 pixels */
MUR_APART const float *mur_depthwise_tile_f32(mur_tile_f32 *t, const float *w, int32_t pixels,
                                              float *out)
{
    int32_t out_step = t->out_step / (int32_t)sizeof(*out);

    for (int32_t block = 0; block < t->blocks; block++, out += 4) {
        const float *next = w;

        for (int32_t i = 0; i < pixels; i++) {
            const float *x = t->x[i];
            mur_four_f32 sum = mur_load_f32(w);

            next = mur_moved(w + 4, t->w_skip);
            for (int32_t row = 0; row < t->rows; row++) {
                for (int32_t tap = 0; tap < t->taps; tap++, next += 4) {
                    sum = mur_add_product_f32(sum, mur_load_f32(next), mur_load_f32(x));
                    x = mur_moved(x, t->tap_step);
                }
                x = mur_moved(x, t->row_jump);
                next = mur_moved(next, t->w_jump);
            }
            mur_store_f32(sum, t->relu, out + i * out_step);
            t->x[i] += 4;
        }
        w = mur_moved(next, t->w_rest);
    }
    return w;
}

static inline const float *mur_depthwise4_f32(mur_tile_f32 *t, const float *w, float *out)
{
    return mur_depthwise_tile_f32(t, w, 4, out);
}

static inline const float *mur_depthwise1_f32(mur_tile_f32 *t, const float *w, float *out)
{
    return mur_depthwise_tile_f32(t, w, 1, out);
}

#endif

#endif
