/* mur_fc.h - the kernels fc_s8, fc_coded_s8 and fc_each_s8 of all instruction sets: fully connected
 * layers of few vectors, whose channels have one multiplier, or shifts of their own and up to eight
 * multipliers, or one each.
 *
 * Inputs are read where they lie, without scratch. Packed are the multipliers, int32 [1],
 * [MUR_FC_MULS] or [out_c]; biases, int32 [out_c]; codes, one per channel, or one for all, filled
 * up to whole words; then weights as the instruction set wants them. A code is the multiplier's
 * number (0 where each channel has one) and, 8 times, the shift to the right. */
#ifndef MUR_FC_H
#define MUR_FC_H

#include "mur_nn.h"

enum { MUR_FC_MULS = 8, MUR_FC_ROWS = 3 }; /* at most: multipliers, vectors */

typedef enum mur_fc_form { MUR_FC_ONE, MUR_FC_CODED, MUR_FC_EACH } mur_fc_form;

typedef struct mur_fc {
    const int32_t *mul;
    const int32_t *bias; /* with -in_zero * the sum of the weights */
    const uint8_t *codes;
    const uint8_t *weights;
} mur_fc;

/* vectors, side by side in a row or one below the other */
static inline int32_t mur_fc_rows(const mur_conv_shape *shape)
{
    return shape->out_h * shape->out_w;
}

static inline int32_t mur_fc_muls(const mur_conv_s8 *layer, int32_t form)
{
    return form == MUR_FC_ONE ? 1 : form == MUR_FC_CODED ? MUR_FC_MULS : layer->shape.out_c;
}

static inline int32_t mur_fc_code_bytes(const mur_conv_s8 *layer, int32_t form)
{
    return ((form == MUR_FC_ONE ? 1 : layer->shape.out_c) + 3) & ~3;
}

/* the parts of what is packed at `packed` */
static inline mur_fc mur_fc_of(const mur_conv_s8 *layer, const void *packed, int32_t form)
{
    mur_fc fc;

    fc.mul = packed;
    fc.bias = fc.mul + mur_fc_muls(layer, form);
    fc.codes = (const uint8_t *)(fc.bias + layer->shape.out_c);
    fc.weights = fc.codes + mur_fc_code_bytes(layer, form);
    return fc;
}

/* the rest is for packing, on the host: pack_fc.c */

/* does a kernel without more demands take the layer? */
int mur_fc_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t form);
/* bytes before the weights */
size_t mur_fc_head_bytes(const mur_conv_s8 *layer, int32_t form);
/* Writes them; returns where the weights begin. */
uint8_t *mur_fc_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, int32_t form,
                     void *packed);

/* A kernel's functions of mur_nn.h, of three of its instruction set's:
 * int fc_fits(layer, plain): what it demands besides;
 * size_t fc_weight_bytes(layer); void fc_pack_weights(layer, plain, uint8_t *to) */
#define MUR_FC_KERNEL(isa, name, form) \
    int mur_##isa##_##name##_fits(const mur_conv_s8 *layer, const mur_conv_plain *plain) \
    { \
        return mur_fc_fits(layer, plain, form) && fc_fits(layer, plain); \
    } \
    size_t mur_##isa##_##name##_packed_bytes(const mur_conv_s8 *layer) \
    { \
        return mur_fc_head_bytes(layer, form) + fc_weight_bytes(layer); \
    } \
    void mur_##isa##_##name##_pack(const mur_conv_s8 *layer, const mur_conv_plain *plain, \
                                   void *packed) \
    { \
        fc_pack_weights(layer, plain, mur_fc_pack(layer, plain, form, packed)); \
    } \
    size_t mur_##isa##_##name##_scratch_bytes(const mur_conv_s8 *layer) \
    { \
        (void)layer; \
        return 0; \
    }

#endif
