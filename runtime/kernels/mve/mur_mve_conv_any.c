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

/* tap by tap */
static void gather(const mur_conv_s8 *layer, const int8_t *in, int32_t top, int32_t left,
                   int32_t is_inside, int8_t *x)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t groups = s->groups, depth = s->in_c / groups, inputs = mur_mve_inputs(layer), k = 0;
    int32_t tile_bytes = mur_mve_tile_bytes(inputs);

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
