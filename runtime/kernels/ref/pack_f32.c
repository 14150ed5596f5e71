/* pack_f32.c - weights for the kernels of mur_nn_f32.h. On the host. */
#include "mur_nn_f32.h"

static int32_t taps_of(const mur_conv_f32 *l)
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

size_t mur_conv_f32_packed_elems(const mur_conv_f32 *l)
{
    int32_t channels = l->out_c / l->groups;

    return (size_t)((channels + 3) / 4 * 4 * l->groups) * (size_t)(taps_of(l) + 1);
}

void mur_conv_f32_pack(const mur_conv_f32 *l, const float *weights, const float *bias,
                       float *packed)
{
    int32_t channels = l->out_c / l->groups;

    for (int32_t group = 0; group < l->groups; group++)
        packed = pack_channels(weights, bias, taps_of(l), group * channels, channels, packed);
}

size_t mur_depthwise_f32_packed_elems(const mur_conv_f32 *l)
{
    return (size_t)((l->out_c + 3) / 4 * 4) * (size_t)(taps_of(l) + 1);
}

void mur_depthwise_f32_pack(const mur_conv_f32 *l, const float *weights, const float *bias,
                            float *packed)
{
    pack_channels(weights, bias, taps_of(l), 0, l->out_c, packed);
}
