/* mur_mve_conv_any.c - convolutions with groups or dilation.
 *
 * A pixel's inputs are gathered tap by tap, group by group, each group filled up to whole vectors;
 * then four output channels at a time, as mur_mve_conv_s8 does. */
#include "mur_mve_sums.h"

/* the inputs of the pixel whose window begins at (top, left) */
static void gather(const mur_conv_s8 *layer, const int8_t *in, int32_t top, int32_t left, int8_t *x)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t depth = s->in_c / s->groups, padded = mur_mve_padded(mur_mve_inputs(layer) / s->groups);

    for (int32_t group = 0; group < s->groups; group++, in += depth, x += padded) {
        int8_t *to = x;

        for (int32_t i = 0; i < s->kernel_h; i++)
            for (int32_t j = 0; j < s->kernel_w; j++, to += depth) {
                int32_t row = top + i * s->dilation_h, column = left + j * s->dilation_w;

                if (row >= 0 && row < s->in_h && column >= 0 && column < s->in_w)
                    mur_mve_copy(to, in + row * s->in_pitch + column * s->in_c, depth);
                else
                    mur_mve_fill(to, layer->in_zero, depth);
            }
        mur_mve_fill(to, 0, (int32_t)(x + padded - to));
    }
}

#if MUR_HAVE_MVE

/* a group's inputs x to its channels; returns what is packed for the next */
static const uint8_t *run_group(const mur_conv_s8 *layer, const int8_t *x, const uint8_t *packed,
                                int8_t *out)
{
    mur_mve_clamp clamp = mur_mve_clamp_of(&layer->output);
    uint32_t inputs = (uint32_t)(mur_mve_inputs(layer) / layer->shape.groups);
    uint32_t vectors = inputs / MUR_MVE_BYTES, rest = inputs % MUR_MVE_BYTES;
    int8x16_t last = rest > 0 ? vldrbq_s8(x + vectors * MUR_MVE_BYTES) : vdupq_n_s8(0);

    for (int32_t left = layer->shape.out_c / layer->shape.groups; left > 0; left -= 4, out += 4) {
        const mur_mve_four *four = (const void *)packed;
        const int8_t *w = (const int8_t *)(four + 1);
        int32x4_t sums = mur_mve_sums(x, vectors, last, rest, four->bias, w);

        vstrbq_p_s32(out, mur_mve_output(sums, four, &clamp), vctp32q((uint32_t)left));
        packed += sizeof(*four) + 4 * inputs;
    }
    return packed;
}

#else

static const uint8_t *run_group(const mur_conv_s8 *layer, const int8_t *x, const uint8_t *packed,
                                int8_t *out)
{
    int32_t inputs = mur_mve_inputs(layer) / layer->shape.groups;
    int32_t channels = layer->shape.out_c / layer->shape.groups;

    for (int32_t c = 0; c < channels; c++) {
        const mur_mve_four *four = (const void *)packed;
        int32_t sum = mur_mve_sum(x, inputs, (const int8_t *)(four + 1), c & 3);

        out[c] = mur_mve_output(sum + four->bias[c & 3], four, c & 3, &layer->output);
        if ((c & 3) == 3 || c + 1 == channels)
            packed += sizeof(*four) + 4 * (size_t)inputs;
    }
    return packed;
}

#endif

void mur_mve_conv_any_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t channels = s->out_c / s->groups,
            padded = mur_mve_padded(mur_mve_inputs(layer) / s->groups);

    for (int32_t y = 0; y < s->out_h; y++)
        for (int32_t x = 0; x < s->out_w; x++) {
            int8_t *to = out + y * s->out_pitch + x * s->out_c;
            const uint8_t *packed = layer->packed;

            gather(layer, in, y * s->stride_h - s->pad_top, x * s->stride_w - s->pad_left, scratch);
            for (int32_t group = 0; group < s->groups; group++, to += channels)
                packed = run_group(layer, (const int8_t *)scratch + group * padded, packed, to);
        }
}
