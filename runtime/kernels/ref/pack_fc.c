/* pack_fc.c - what the kernels of mur_fc.h have in common. On the host. */
#include "mur_fc.h"

#include <string.h>

static int is_vectors(const mur_conv_shape *s)
{
    return s->kernel_h == 1 && s->kernel_w == 1 && s->groups == 1 && s->in_h == s->out_h &&
           s->in_w == s->out_w && (s->stride_h == 1 || s->out_h == 1) &&
           (s->stride_w == 1 || s->out_w == 1) && s->pad_top == 0 && s->pad_left == 0 &&
           (s->out_h == 1 ||
            (s->in_pitch == s->in_w * s->in_c && s->out_pitch == s->out_w * s->out_c)) &&
           mur_fc_rows(s) <= MUR_FC_ROWS;
}

/* the number of `mul` among the first *count, which grows; MUR_FC_MULS: they are too many */
static int32_t number_of(int32_t *muls, int32_t *count, int32_t mul)
{
    int32_t i = 0;

    while (i < *count && muls[i] != mul)
        i++;
    if (i == *count && i < MUR_FC_MULS)
        muls[(*count)++] = mul;
    return i;
}

int mur_fc_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t form)
{
    int32_t muls[MUR_FC_MULS], count = 0;

    if (!is_vectors(&layer->shape) || layer->output.kind != MUR_REQUANT_Q31 ||
        layer->weight_zero != 0)
        return 0;
    for (int32_t c = 0; c < layer->shape.out_c; c++) {
        if (plain->shift[c] > 0)
            return 0;
        if (form == MUR_FC_EACH)
            continue;
        if (number_of(muls, &count, plain->mul[c]) == MUR_FC_MULS)
            return 0;
        if (form == MUR_FC_ONE && (count > 1 || plain->shift[c] != plain->shift[0]))
            return 0;
    }
    return 1;
}

size_t mur_fc_head_bytes(const mur_conv_s8 *layer, int32_t form)
{
    size_t words = (size_t)(layer->shape.out_c + mur_fc_muls(layer, form));

    return words * sizeof(int32_t) + (size_t)mur_fc_code_bytes(layer, form);
}

uint8_t *mur_fc_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t form,
                     void *packed)
{
    int32_t *muls = packed, *bias = muls + mur_fc_muls(layer, form), count = 0, number = 0;
    uint8_t *codes = (uint8_t *)(bias + layer->shape.out_c);
    const int8_t *w = plain->weights;

    memset(packed, 0, mur_fc_head_bytes(layer, form));
    for (int32_t c = 0; c < layer->shape.out_c; c++) {
        if (form == MUR_FC_EACH)
            muls[c] = plain->mul[c];
        else
            number = number_of(muls, &count, plain->mul[c]);
        codes[form == MUR_FC_ONE ? 0 : c] = (uint8_t)(number - MUR_FC_MULS * plain->shift[c]);
        bias[c] = plain->bias ? plain->bias[c] : 0;
        for (int32_t k = 0; k < layer->shape.in_c; k++)
            bias[c] -= layer->in_zero * *w++;
    }
    return codes + mur_fc_code_bytes(layer, form);
}

/* Vector i is still read while its outputs are written. */
int32_t mur_fc_s8_lead(const mur_conv_shape *layer)
{
    int32_t last = mur_fc_rows(layer) - 1, step = layer->out_c - layer->in_c;

    return layer->out_c + (step > 0 ? last * step : 0);
}
