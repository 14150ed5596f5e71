/* pack_f32.c - weights for the kernels of mur_nn_f32.h. On the host. */
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

/* What is written up to the end of four pixels must lie below all that is read from their first
 * window on. */
int32_t mur_conv_f32_lead(const mur_conv_shape *l)
{
    int32_t lead = INT32_MIN;

    for (int32_t y = 0; y < l->out_h; y++)
        for (int32_t x = 0; x < l->out_w; x++) {
            int32_t end = x + 4 < l->out_w ? x + 4 : l->out_w, read = first_read(l, y, x);

            if (y + 1 < l->out_h && first_read(l, y + 1, 0) < read)
                read = first_read(l, y + 1, 0);
            if (y * l->out_pitch + end * l->out_c - read > lead)
                lead = y * l->out_pitch + end * l->out_c - read;
        }
    return lead;
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
