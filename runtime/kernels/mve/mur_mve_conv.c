/* mur_mve_conv.c - convolutions, pointwise and fully connected layers, four pixels at a time. */
#include "mur_mve_tile.h"

/* mur_mve_inputs without a division, for there is one group */
static inline int32_t inputs_of(const mur_conv_shape *s)
{
    return s->kernel_h * s->kernel_w * s->in_c;
}

#if MUR_HAVE_MVE

/* what is computed ahead takes registers from gathering */
#define GATHERS __attribute__((optimize("O2", "no-tree-pre")))

enum { NARROW = 128 }; /* most inputs of a pixel whose rows are gathered before they are spread */

/* rows of fewer bytes than a vector */
static inline void put_rows(int8_t *x, const int8_t *in, int32_t rows, int32_t width, int32_t pitch)
{
    int8_t bytes[NARROW];

    mur_mve_copy_runs(bytes, width, in, pitch, rows, width);
    mur_mve_put(x, 0, bytes, rows * width);
}

#else

#define GATHERS

enum { NARROW = 0 };

static inline void put_rows(int8_t *x, const int8_t *in, int32_t rows, int32_t width, int32_t pitch)
{
    (void)x, (void)in, (void)rows, (void)width, (void)pitch;
}

#endif

/* row by row, of which some columns may be outside the image */
static inline void gather(const mur_conv_s8 *layer, const int8_t *in, int32_t top, int32_t left,
                          int32_t is_inside, int8_t *x)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t rows = s->kernel_h, width = s->kernel_w * s->in_c, pitch = s->in_pitch;
    int32_t count = width, k = 0, end = rows * width;

    in += top * pitch + left * s->in_c;
    if (!is_inside) {
        int32_t before = mur_clamp(-left, 0, s->kernel_w), above = mur_clamp(-top, 0, rows);

        mur_mve_put_value(x, layer->in_zero, end);
        end = mur_clamp(s->in_h - top, 0, rows) * width;
        count = (mur_clamp(s->in_w - left, 0, s->kernel_w) - before) * s->in_c;
        k = above * width + before * s->in_c;
        in += above * pitch + before * s->in_c;
        if (count <= 0)
            return;
    } else if (width < MUR_MVE_BYTES && end <= NARROW) {
        put_rows(x, in, rows, width, pitch);
        return;
    }
    for (; k < end; k += width, in += pitch)
        mur_mve_put(x, k, in, count);
}

/* pixels of a row of a layer whose windows are of one row and inside, so that each is a run of
 * bytes */
static void run_row(const mur_conv_s8 *layer, const int8_t *from, int8_t *to, int32_t count,
                    int8_t *tile)
{
    int32_t depth = inputs_of(&layer->shape), channels = layer->shape.out_c;
    int32_t step = layer->shape.stride_w * layer->shape.in_c;
    const int8_t *w = layer->packed;
    const mur_mve_four *fours = (const void *)(w + MUR_MVE_FOUR * mur_mve_count(channels) * depth);

    if (depth <= MUR_MVE_BYTES) {
        int32_t together = count - (count % MUR_MVE_PIXELS == 1);

        mur_mve_run_narrow(layer, from, step, depth, fours, w, channels, to, together);
        from += together * step, to += together * channels, count -= together;
    }
    for (; count > 0; count -= MUR_MVE_PIXELS, to += MUR_MVE_PIXELS * channels) {
        int32_t pixels = count < MUR_MVE_PIXELS ? count : MUR_MVE_PIXELS;

        for (int32_t p = 0; p < pixels; p++, from += step)
            mur_mve_put(tile + p * MUR_MVE_BYTES, 0, from, depth);
        mur_mve_run_tile(layer, tile, depth, fours, w, channels, to, pixels);
    }
}

/* such a layer: rows without gaps are one; in little code, for little is done here */
static __attribute__((cold)) void run_lines(const mur_conv_s8 *layer, const int8_t *in, int8_t *out,
                                            int8_t *tile)
{
    const mur_conv_shape s = layer->shape;
    int32_t rows = s.out_h, count = s.out_w;

    if (s.stride_h == 1 && s.stride_w == 1 && s.in_pitch == count * s.in_c &&
        s.out_pitch == count * s.out_c)
        count *= rows, rows = 1;
    for (; rows > 0; rows--, in += s.stride_h * s.in_pitch, out += s.out_pitch)
        run_row(layer, in, out, count, tile);
}

GATHERS void mur_mve_conv_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    const mur_conv_shape *s = &layer->shape;

    mur_mve_end_tiles(inputs_of(s), 1, scratch);
    if (s->kernel_h == 1 && s->pad_top + s->pad_left == 0 &&
        (s->out_h - 1) * s->stride_h < s->in_h &&
        (s->out_w - 1) * s->stride_w + s->kernel_w <= s->in_w)
        run_lines(layer, in, out, scratch);
    else
        mur_mve_run_tiles(layer, in, out, scratch, 1, gather);
}
