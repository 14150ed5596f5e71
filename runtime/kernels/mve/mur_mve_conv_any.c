/* mur_mve_conv_any.c - convolutions with groups or dilation, four pixels at a time. */
#include "mur_mve_tile.h"

/* Inputs k.. of a pixel, `depth` of each group, which lie side by side from `from` on. */
static inline void put_groups(int8_t *x, int32_t k, const int8_t *from, int32_t depth,
                              int32_t groups, int32_t tile_bytes)
{
#if MUR_HAVE_MVE
    if ((k & (MUR_MVE_BYTES - 1)) + depth <= MUR_MVE_BYTES) { /* within a block */
        mur_mve_copy_runs(x + mur_mve_tile_at(k), tile_bytes, from, depth, groups, depth);
        return;
    }
#endif
    for (; groups > 0; groups--, from += depth, x += tile_bytes)
        mur_mve_put(x, k, from, depth);
}

#if MUR_HAVE_MVE

enum { NARROW = 128 }; /* most inputs of a pixel whose taps are gathered before they are spread */

/* taps of fewer bytes than a vector, of a window inside the image: side by side first */
static int put_taps(const mur_conv_shape *s, const int8_t *in, int8_t *x)
{
    const int32_t depth = s->in_c, inputs = s->kernel_h * s->kernel_w * depth;
    const int32_t row_step = s->dilation_h * s->in_pitch;
    int32_t taps = s->kernel_w, step = s->dilation_w * depth;
    int8_t bytes[NARROW], *to = inputs <= MUR_MVE_BYTES ? x : bytes, *end = to + inputs;

    if (depth >= MUR_MVE_BYTES || inputs > NARROW)
        return 0;
    if (taps == 1) /* a column, as the row that it is */
        taps = s->kernel_h, step = row_step;
    for (; to < end; to += taps * depth, in += row_step)
        mur_mve_copy_runs(to, depth, in, step, taps, depth);
    if (inputs > MUR_MVE_BYTES)
        mur_mve_put(x, 0, bytes, inputs);
    return 1;
}

#else

static inline int put_taps(const mur_conv_shape *s, const int8_t *in, int8_t *x)
{
    (void)s, (void)in, (void)x;
    return 0;
}

#endif

/* tap by tap */
static void gather(const mur_conv_s8 *layer, const int8_t *in, int32_t top, int32_t left,
                   int32_t is_inside, int8_t *x)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t groups = s->groups, depth, inputs, tile_bytes, k = 0;

    if (is_inside && groups == 1 && put_taps(s, in + top * s->in_pitch + left * s->in_c, x))
        return;
    depth = s->in_c / groups;
    inputs = mur_mve_inputs(layer);
    tile_bytes = mur_mve_tile_bytes(inputs);
    for (int32_t group = 0; !is_inside && group < groups; group++)
        mur_mve_put_value(x + group * tile_bytes, layer->in_zero, inputs);
    for (int32_t i = 0; i < s->kernel_h; i++)
        for (int32_t j = 0; j < s->kernel_w; j++, k += depth) {
            int32_t row = top + i * s->dilation_h, column = left + j * s->dilation_w;

            if (is_inside || (row >= 0 && row < s->in_h && column >= 0 && column < s->in_w))
                put_groups(x, k, in + row * s->in_pitch + column * s->in_c, depth, groups,
                           tile_bytes);
        }
}

void mur_mve_conv_any_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    int32_t groups = layer->shape.groups;

    mur_mve_end_tiles(mur_mve_inputs(layer), groups, scratch);
    mur_mve_run_tiles(layer, in, out, scratch, groups, gather);
}
