/* mur_mve_fc.c - fully connected layers of few vectors: inputs where they lie, four channels at a
 * time. */
#include "mur_fc.h"
#include "mur_mve_sums.h"

#if MUR_HAVE_MVE

/* outputs of one vector; what fours read behind the last channel lies within what is packed */
static inline __attribute__((always_inline)) void
run_vector(const mur_conv_s8 *layer, const mur_fc *fc, const int8_t *in, int8_t *out, int32_t form)
{
    mur_mve_clamp clamp = mur_mve_clamp_of(&layer->output);
    uint32_t vectors = (uint32_t)layer->shape.in_c / MUR_MVE_BYTES;
    uint32_t rest = (uint32_t)layer->shape.in_c % MUR_MVE_BYTES;
    int8x16_t last = vldrbq_z_s8(in + vectors * MUR_MVE_BYTES, vctp8q(rest));
    const int8_t *w = (const int8_t *)fc->weights;
    const int32_t *bias = fc->bias, *muls = fc->mul;
    const uint8_t *codes = fc->codes;
    int32x4_t mul = vdupq_n_s32(*fc->mul), shift = vdupq_n_s32(-(*codes / MUR_FC_MULS));

    for (int32_t left = layer->shape.out_c; left > 0; left -= 4, bias += 4, out += 4) {
        int32x4_t y = mur_mve_sums(in, vectors, last, rest, bias, w);

        w += 4 * layer->shape.in_c;
        if (form != MUR_FC_ONE) {
            uint32x4_t code = vldrbq_u32(codes);

            codes += 4;
            if (form == MUR_FC_EACH)
                mul = vldrwq_s32(muls), muls += 4;
            else
                mul = vldrwq_gather_shifted_offset_s32(
                    fc->mul, vandq_u32(code, vdupq_n_u32(MUR_FC_MULS - 1)));
            shift = vnegq_s32(vreinterpretq_s32_u32(vshrq_n_u32(code, 3)));
        }
        y = vaddq_n_s32(mur_mve_scale(y, mul, shift), clamp.zero);
        vstrbq_p_s32(out, vminq_s32(vmaxq_s32(y, clamp.min), clamp.max), vctp32q((uint32_t)left));
    }
}

#else

static inline __attribute__((always_inline)) void
run_vector(const mur_conv_s8 *layer, const mur_fc *fc, const int8_t *in, int8_t *out, int32_t form)
{
    int32_t inputs = layer->shape.in_c;
    const int8_t *w = (const int8_t *)fc->weights;

    for (int32_t c = 0; c < layer->shape.out_c; c++) {
        int32_t code = fc->codes[form == MUR_FC_ONE ? 0 : c];
        int32_t mul = fc->mul[form == MUR_FC_EACH ? c : code % MUR_FC_MULS];
        int32_t sum = fc->bias[c] + mur_mve_sum(in, inputs, w + (c & ~3) * inputs, c & 3);

        out[c] = mur_requant(sum, mul, -(code / MUR_FC_MULS), &layer->output);
    }
}

#endif

static inline __attribute__((always_inline)) void run(const mur_conv_s8 *layer, const int8_t *in,
                                                      int8_t *out, int32_t form)
{
    const mur_fc fc = mur_fc_of(layer, layer->packed, form);

    for (int32_t i = 0; i < mur_fc_rows(&layer->shape); i++)
        run_vector(layer, &fc, in + i * layer->shape.in_c, out + i * layer->shape.out_c, form);
}

void mur_mve_fc_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    (void)scratch;
    run(layer, in, out, MUR_FC_ONE);
}

void mur_mve_fc_coded_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    (void)scratch;
    run(layer, in, out, MUR_FC_CODED);
}

void mur_mve_fc_each_s8(const mur_conv_s8 *layer, const int8_t *in, int8_t *out, void *scratch)
{
    (void)scratch;
    run(layer, in, out, MUR_FC_EACH);
}
