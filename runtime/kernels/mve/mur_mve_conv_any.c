/* mur_mve_conv_any.c - convolutions with groups or dilation, four pixels at a time. */
#include "mur_mve_tile.h"

/* tap by tap, group by group */
static void gather(const mur_conv_s8 *layer, const int8_t *in, int32_t top, int32_t left, int8_t *x)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t depth = s->in_c / s->groups, inputs = mur_mve_inputs(layer);

    for (int32_t group = 0; group < s->groups; group++, in += depth) {
        int32_t k = 0;

        mur_mve_put_value(x, layer->in_zero, inputs);
        for (int32_t i = 0; i < s->kernel_h; i++)
            for (int32_t j = 0; j < s->kernel_w; j++, k += depth) {
                int32_t row = top + i * s->dilation_h, column = left + j * s->dilation_w;

                if (row >= 0 && row < s->in_h && column >= 0 && column < s->in_w)
                    mur_mve_put(x, k, in + row * s->in_pitch + column * s->in_c, depth);
            }
        x += mur_mve_tile_bytes(inputs);
    }
}

void mur_mve_conv_any_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    mur_mve_end_tiles(layer, scratch);
    mur_mve_run_tiles(layer, in, out, scratch, gather);
}
