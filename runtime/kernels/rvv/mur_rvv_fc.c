/* mur_rvv_fc.c - fully connected layers of few vectors: inputs where they lie, times the channels
 * of a vector. */
#include "mur_rvv_tile.h"

MUR_RVV_MULTIPLY(multiply, 1, 1)

static void run(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, int32_t coded)
{
    const mur_fc fc = mur_fc_of(layer, layer->packed, coded);
    int32_t inputs = layer->shape.in_c, channels = layer->shape.out_c;

    for (int32_t i = mur_fc_rows(&layer->shape); i > 0; i--, in += inputs) {
        mur_rvv_channels some = { fc.bias, fc.mul, fc.codes, coded, 0 };

        for (int32_t done = 0; done < channels; done += some.count) {
            some.count = mur_rvv_count(channels - done);
            multiply(&layer->output, &some, in, 0, inputs, (const int8_t *)fc.weights + done,
                     channels, out, 0);
            some.bias += some.count, some.right += coded ? some.count : 0;
            out += some.count;
        }
    }
}

void mur_rvv_fc_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    (void)scratch;
    run(layer, in, out, 0);
}

void mur_rvv_fc_coded_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    (void)scratch;
    run(layer, in, out, 1);
}
