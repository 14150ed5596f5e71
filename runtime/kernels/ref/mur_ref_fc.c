/* mur_ref_fc.c - fully connected layers of few vectors in plain C: inputs where they lie, four
 * channels at a time. */
#include "mur_fc.h"
#include "mur_ref.h"

/* outputs of one vector */
static inline __attribute__((always_inline)) void
run_vector(const mur_conv_s8 *layer, const mur_fc *fc, const int8_t *in, int8_t *out, int32_t form)
{
    const mur_ref_output output = mur_ref_output_of(&layer->output, 1);
    const int8_t *w = (const int8_t *)fc->weights, *end = in + layer->shape.in_c;

    for (int32_t first = 0; first < layer->shape.out_c; first += MUR_REF_CHANNELS) {
        int32_t a = 0, b = 0, c = 0, d = 0, sums[MUR_REF_CHANNELS];
        const int8_t *x = in;

        if (layer->shape.out_c - first <= 2) { /* the others are not there */
            for (; x != end; x++, w += 4)
                a += *x * w[0], b += *x * w[1];
        } else if (layer->shape.in_c & 1) {
            a = *x * w[0], b = *x * w[1], c = *x * w[2], d = *x * w[3];
            x++, w += 4;
        }
        for (; x != end; x += 2, w += 8) {
            int32_t x0 = x[0], x1 = x[1];

            a += x0 * w[0], b += x0 * w[1], c += x0 * w[2], d += x0 * w[3];
            a += x1 * w[4], b += x1 * w[5], c += x1 * w[6], d += x1 * w[7];
        }
        sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
        for (int32_t i = 0; i < MUR_REF_CHANNELS && first + i < layer->shape.out_c; i++) {
            int32_t code = fc->codes[form == MUR_FC_ONE ? 0 : first + i];
            const mur_ref_channel channel = { 0, fc->mul[code % MUR_FC_MULS],
                                              -(code / MUR_FC_MULS) };

            sums[i] += fc->bias[first + i];
            mur_ref_finish(&output, &channel, &sums[i], 1, out++, 1);
        }
    }
}

static inline __attribute__((always_inline)) void run(const mur_conv_s8 *layer, const int8_t *in,
                                                      int8_t *out, int32_t form)
{
    const mur_fc fc = mur_fc_of(layer, layer->packed, form);

    for (int32_t i = 0; i < mur_fc_rows(&layer->shape); i++)
        run_vector(layer, &fc, in + i * layer->shape.in_c, out + i * layer->shape.out_c, form);
}

void mur_ref_fc_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    (void)scratch;
    run(layer, in, out, MUR_FC_ONE);
}

void mur_ref_fc_coded_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    (void)scratch;
    run(layer, in, out, MUR_FC_CODED);
}
