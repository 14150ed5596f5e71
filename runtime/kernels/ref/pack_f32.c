/* pack_f32.c - weights for the kernels of mur_nn_f32.h, and what they and those of mur_nn_f16.h
 * need of memory. On the host. */
#include "mur_nn_f16.h"
#include "mur_nn_f32.h"

static int32_t taps_of(const mur_conv_shape *l)
{
    return l->kernel_h * l->kernel_w * (l->in_c / l->groups);
}

/* `channels` channels from c on, by fours */
static float *pack_channels(const float *weights, const float *bias, int32_t taps, int32_t c,
                            int32_t channels, float *out)
{
    for (int32_t end = c + channels; c < end; c += 4) {
        for (int32_t i = 0; i < 4; i++)
            *out++ = bias && c + i < end ? bias[c + i] : 0;
        for (int32_t k = 0; k < taps; k++)
            for (int32_t i = 0; i < 4; i++)
                *out++ = c + i < end ? weights[(c + i) * taps + k] : 0;
    }
    return out;
}

size_t mur_conv_f32_packed_elems(const mur_conv_shape *l)
{
    int32_t channels = l->out_c / l->groups;

    return (size_t)((channels + 3) / 4 * 4 * l->groups) * (size_t)(taps_of(l) + 1);
}

void mur_conv_f32_pack(const mur_conv_shape *l, const float *weights, const float *bias,
                       float *packed)
{
    int32_t channels = l->out_c / l->groups;

    for (int32_t group = 0; group < l->groups; group++)
        packed = pack_channels(weights, bias, taps_of(l), group * channels, channels, packed);
}

/* where the window of output (y, x) begins to read */
static int32_t first_read(const mur_conv_shape *l, int32_t y, int32_t x)
{
    int32_t row = y * l->stride_h - l->pad_top, column = x * l->stride_w - l->pad_left;

    return (row < 0 ? 0 : row) * l->in_pitch + (column < 0 ? 0 : column) * l->in_c;
}

/* Where the last of so many outputs from (y, x) on ends, all of one row or row after row. */
static int32_t last_written(const mur_conv_shape *l, int32_t y, int32_t x, int32_t pixels,
                            int in_row)
{
    int32_t left = in_row ? l->out_w - x : l->out_w * (l->out_h - y) - x;
    int32_t last = x + (pixels < left ? pixels : left) - 1;

    return (y + last / l->out_w) * l->out_pitch + (last % l->out_w + 1) * l->out_c;
}

/* What is written up to the end of so many pixels must lie below all that is read from their first
 * window on. */
static int32_t lead_of(const mur_conv_shape *l, int32_t pixels, int in_row)
{
    int32_t lead = INT32_MIN;

    for (int32_t y = 0; y < l->out_h; y++)
        for (int32_t x = 0; x < l->out_w; x++) {
            int32_t end = last_written(l, y, x, pixels, in_row), read = first_read(l, y, x);

            if (y + 1 < l->out_h && first_read(l, y + 1, 0) < read)
                read = first_read(l, y + 1, 0);
            if (end - read > lead)
                lead = end - read;
        }
    return lead;
}

int32_t mur_conv_f32_lead(const mur_conv_shape *l)
{
    return lead_of(l, 4, 1);
}

int32_t mur_mve_conv_f16_lead(const mur_conv_shape *l)
{
    return lead_of(l, mur_mve_conv_f16_pixels(l), 0);
}

int32_t mur_mve_depthwise_f16_lead(const mur_conv_shape *l)
{
    return lead_of(l, mur_mve_depthwise_f16_pixels(l), 1);
}

size_t mur_depthwise_f32_packed_elems(const mur_conv_shape *l)
{
    return (size_t)((l->out_c + 3) / 4 * 4) * (size_t)(taps_of(l) + 1);
}

void mur_depthwise_f32_pack(const mur_conv_shape *l, const float *weights, const float *bias,
                            float *packed)
{
    pack_channels(weights, bias, taps_of(l), 0, l->out_c, packed);
}

size_t mur_matmul_f32_scratch_bytes(const mur_matmul_f32 *l)
{
    int32_t columns = l->columns < MUR_MATMUL_F32_PANEL ? l->columns : MUR_MATMUL_F32_PANEL;

    return (size_t)((columns + 3) / 4 * 4) * ((size_t)l->depth + 1) * sizeof(float);
}

/* three more elements of each pixel are written behind the last */
size_t mur_mve_conv_f16_scratch_bytes(const mur_conv_shape *l)
{
    return (size_t)((taps_of(l) + 3) * mur_mve_conv_f16_pixels(l)) * sizeof(float);
}

/* of four channels */
size_t mur_mve_depthwise_f16_scratch_bytes(const mur_conv_shape *l)
{
    return (size_t)(l->kernel_h * mur_mve_depthwise_f16_columns(l)) * 4 * sizeof(float);
}
