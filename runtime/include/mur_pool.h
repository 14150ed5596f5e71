/* mur_pool.h - the windows of pools: what kernels of all instruction sets walk over. */
#ifndef MUR_POOL_H
#define MUR_POOL_H

#include "mur_nn_arith.h"

/* The part of a window that lies inside the image. */
typedef struct mur_pool_window {
    const int8_t *in;  /* its first pixel */
    const int8_t *end; /* behind the image */
    int32_t rows, columns, pitch, step;
} mur_pool_window;

/* all channels of a window to a pixel of the output */
typedef void mur_pool_pixel(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out);

/* the average of so many elements, halves away from zero */
static inline int32_t mur_pool_divide(int32_t sum, int32_t count)
{
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/* Sums of so few int8 never leave 16 bits. */
enum { MUR_POOL_SMALL = 256 };

/* whether 16 bits hold a place in a row, as kernels of some elements of a row want it */
static inline int mur_pool_has_short_rows(const mur_pool_s8 *layer)
{
    return layer->in_w * layer->c <= 0xffff;
}

/* whether 16 bits hold all of a row of averages */
static inline int mur_pool_is_small(const mur_pool_s8 *layer)
{
    return layer->kernel_h * layer->kernel_w <= MUR_POOL_SMALL && mur_pool_has_short_rows(layer);
}

/* where a window of one dimension begins, and its extent, inside the image */
static inline int32_t mur_pool_inside(int32_t at, int32_t kernel, int32_t size, int32_t *extent)
{
    int32_t from = at < 0 ? 0 : at, to = at + kernel > size ? size : at + kernel;

    *extent = to > from ? to - from : 0;
    return from;
}

static inline __attribute__((always_inline)) void
mur_pool_run(const mur_pool_s8 *layer, const int8_t *in, int8_t *out, mur_pool_pixel *of)
{
    mur_pool_window w;

    w.pitch = layer->in_pitch;
    w.step = layer->c;
    w.end = in + (layer->in_h - 1) * layer->in_pitch + layer->in_w * layer->c;
    for (int32_t y = 0; y < layer->out_h; y++) {
        int32_t top = mur_pool_inside(y * layer->stride_h - layer->pad_top, layer->kernel_h,
                                      layer->in_h, &w.rows);

        for (int32_t x = 0; x < layer->out_w; x++) {
            int32_t left = mur_pool_inside(x * layer->stride_w - layer->pad_left, layer->kernel_w,
                                           layer->in_w, &w.columns);

            w.in = in + top * layer->in_pitch + left * layer->c;
            of(&w, layer, out + y * layer->out_pitch + x * layer->c);
        }
    }
}

/* the plain way of vectors, for machines without them */
static inline void mur_pool_greatest(const mur_pool_window *w, const mur_pool_s8 *layer,
                                     int8_t *out)
{
    for (int32_t c = 0; c < layer->c; c++) {
        int32_t best = layer->min;

        for (int32_t y = 0; y < w->rows; y++)
            for (int32_t x = 0; x < w->columns; x++) {
                int32_t q = w->in[y * w->pitch + x * w->step + c];

                best = q > best ? q : best;
            }
        out[c] = (int8_t)(best > layer->max ? layer->max : best);
    }
}

static inline void mur_pool_average(const mur_pool_window *w, const mur_pool_s8 *layer, int8_t *out)
{
    for (int32_t c = 0; c < layer->c; c++) {
        int32_t sum = 0, count = w->rows * w->columns;

        for (int32_t y = 0; y < w->rows; y++)
            for (int32_t x = 0; x < w->columns; x++)
                sum += w->in[y * w->pitch + x * w->step + c];
        out[c] =
            (int8_t)mur_clamp(count > 0 ? mur_pool_divide(sum, count) : 0, layer->min, layer->max);
    }
}

/* a layer of mur_mean_s8 */
static inline void mur_mean_plain(const mur_mean_s8 *layer, const int8_t *in, int8_t *out)
{
    const mur_mean_s8 l = *layer; /* in registers: out might be anything */
    int32_t zeros = l.pixels * l.in_zero;

    for (int32_t left = l.c, some; left > 0; left -= some, in += some) {
        int32_t sums[4] = { -zeros, -zeros, -zeros, -zeros };
        const int8_t *p = in;

        some = left >= 4 ? 4 : 1;
        if (some == 1)
            for (int32_t i = 0; i < l.pixels; i++, p += l.c)
                sums[0] += *p;
        else
            for (int32_t i = 0; i < l.pixels; i++, p += l.c)
                sums[0] += p[0], sums[1] += p[1], sums[2] += p[2], sums[3] += p[3];
        for (int32_t i = 0; i < some; i++)
            *out++ = mur_requant(sums[i], l.mul, l.shift, &l.output);
    }
}

#endif
