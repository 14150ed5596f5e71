/* tiled_s8.c - int8 layers with weights, cut into rows and channels. */
#include "targets/mcu/tiled_s8.h"

#include <inttypes.h>
#include <string.h>

/* what the layer of some of the channels is */
static mur_conv_s8 cut_channels(const mur_conv_s8 *layer, uint32_t channels)
{
    mur_conv_s8 part = *layer;

    part.out_c = (int32_t)channels;
    if (part.groups > 1)
        part.groups = part.in_c = part.out_c;
    return part;
}

typedef struct tiled_conv {
    const mur_conv_s8 *layer;
    const muc_mcu_conv_kernel *kernel;
} tiled_conv;

static uint64_t packed_bytes_of(const void *subject, uint32_t channels)
{
    const tiled_conv *conv = subject;
    const mur_conv_s8 part = cut_channels(conv->layer, channels);

    return conv->kernel->packed_bytes(&part);
}

bool muc_mcu_conv_s8_fits_tiles(const muc_mcu_lowering *l, const mur_conv_s8 *layer)
{
    int32_t window = (layer->kernel_h - 1) * layer->dilation_h + 1;

    return muc_mcu_has_tiles(l->program->machine) &&
           (layer->groups == 1 || (layer->groups == layer->in_c && layer->out_c == layer->in_c)) &&
           layer->pad_top < window &&
           (layer->out_h - 1) * layer->stride_h - layer->pad_top < layer->in_h;
}

/* vectors and pointwise layers are rows of one pixel, so that they can be cut anywhere */
static mur_conv_s8 stand_upright(const mur_conv_s8 *layer)
{
    mur_conv_s8 upright = *layer;

    if (layer->in_h == 1 && layer->kernel_h == 1 && layer->kernel_w == 1 && layer->stride_h == 1 &&
        layer->stride_w == 1 && layer->pad_left == 0 && layer->out_w == layer->in_w) {
        upright.in_h = upright.out_h = layer->in_w;
        upright.in_w = upright.out_w = 1;
        upright.in_pitch = upright.in_c;
        upright.out_pitch = upright.out_c;
    }
    return upright;
}

/* weights as tiles fetch them: a part of the channels after another, each packed by itself */
static muc_status pack_parts(muc_mcu_lowering *l, const tiled_conv *conv,
                             const mur_conv_plain *plain, const mur_tiles *tiles, uint32_t *out)
{
    uint32_t channels = (uint32_t)conv->layer->out_c;
    uint32_t parts = (channels + tiles->part - 1) / tiles->part;
    size_t part_bytes = tiles->operands[1].part_bytes;
    size_t channel_weights = (size_t)conv->layer->kernel_h * conv->layer->kernel_w *
                             (size_t)(conv->layer->in_c / conv->layer->groups);
    uint8_t *data;

    MUC_TRY(muc_arena_new(l->ctx, &l->program->arena, parts, part_bytes, (void **)&data));
    memset(data, 0, parts * part_bytes);
    for (uint32_t p = 0; p < parts; p++) {
        uint32_t first = p * tiles->part, count = channels - first;
        const mur_conv_s8 part =
            cut_channels(conv->layer, count < tiles->part ? count : tiles->part);
        const mur_conv_plain some = {
            .weights = plain->weights + first * channel_weights,
            .bias = plain->bias ? plain->bias + first : NULL,
            .mul = plain->mul + first,
            .shift = plain->shift + first,
        };

        if (!conv->kernel->fits(&part, &some))
            return muc_fail(l->ctx, MUC_BUG, "mcu", MUC_NO_OFFSET,
                            "%s takes %s, but not its channels from %" PRIu32 " on",
                            conv->kernel->function, l->step->name, first);
        conv->kernel->pack(&part, &some, data + p * part_bytes);
    }
    l->step->packed_bytes = parts * part_bytes;
    return muc_mcu_new_constant(l, "weights", data, parts * part_bytes, out);
}

static muc_mcu_tile_layer tiles_of(const tiled_conv *conv)
{
    const mur_conv_s8 *layer = conv->layer;
    bool is_depthwise = layer->groups > 1;
    enum { CHANNELS_TOGETHER = 4 }; /* of the kernels */

    return (muc_mcu_tile_layer){
        .rows = (uint32_t)layer->out_h,
        .channels = (uint32_t)layer->out_c,
        .multiple = layer->out_c < CHANNELS_TOGETHER ? (uint32_t)layer->out_c : CHANNELS_TOGETHER,
        .operand_count = 3,
        .operands = { { .name = "in",
                        .rows = (uint32_t)layer->in_h,
                        .stride = layer->stride_h,
                        .window = (layer->kernel_h - 1u) * layer->dilation_h + 1u,
                        .pad = layer->pad_top,
                        .pixels = (uint32_t)layer->in_w,
                        .pixel_bytes = (uint32_t)layer->in_c,
                        .channel_bytes = is_depthwise },
                      { .name = "weights", .rows = 1, .pixels = 1, .is_weights = true },
                      { .name = "out",
                        .rows = (uint32_t)layer->out_h,
                        .stride = 1,
                        .window = 1,
                        .pixels = (uint32_t)layer->out_w,
                        .pixel_bytes = (uint32_t)layer->out_c,
                        .channel_bytes = 1 } },
        .work = (uint64_t)layer->out_w * layer->kernel_h * layer->kernel_w *
                (uint64_t)(layer->in_c / layer->groups),
        .scratch_bytes = conv->kernel->scratch_bytes(layer),
        .packed_bytes = packed_bytes_of,
        .subject = conv,
    };
}

muc_status muc_mcu_tile_conv_s8(muc_mcu_lowering *l, const mur_conv_s8 *whole,
                                const mur_conv_plain *plain, const muc_mcu_conv_kernel *kernel,
                                mur_conv_s8 *layer, uint32_t *packed)
{
    const tiled_conv conv = { layer, kernel };
    muc_mcu_tile_layer tile_layer;
    mur_tiles tiles;

    *layer = stand_upright(whole);
    tile_layer = tiles_of(&conv);
    MUC_TRY(muc_mcu_plan_tiles(l, &tile_layer, &tiles));
    return pack_parts(l, &conv, plain, &tiles, packed);
}

/* ---- pooling ---- */

bool muc_mcu_pool_s8_fits_tiles(const muc_mcu_lowering *l, const mur_pool_s8 *layer)
{
    return muc_mcu_has_tiles(l->program->machine) && layer->pad_top < layer->kernel_h &&
           (layer->out_h - 1) * layer->stride_h - layer->pad_top < layer->in_h;
}

muc_status muc_mcu_tile_pool_s8(muc_mcu_lowering *l, const mur_pool_s8 *layer)
{
    uint32_t c = (uint32_t)layer->c;
    const muc_mcu_tile_layer tile_layer = {
        .rows = (uint32_t)layer->out_h,
        .channels = c,
        .multiple = 1,
        .operand_count = 2,
        .operands = { { .name = "in",
                        .rows = (uint32_t)layer->in_h,
                        .stride = layer->stride_h,
                        .window = layer->kernel_h,
                        .pad = layer->pad_top,
                        .pixels = (uint32_t)layer->in_w,
                        .pixel_bytes = c,
                        .channel_bytes = 1 },
                      { .name = "out",
                        .rows = (uint32_t)layer->out_h,
                        .stride = 1,
                        .window = 1,
                        .pixels = (uint32_t)layer->out_w,
                        .pixel_bytes = c,
                        .channel_bytes = 1 } },
        .work = (uint64_t)layer->out_w * layer->kernel_h,
    };
    mur_tiles tiles;

    return muc_mcu_plan_tiles(l, &tile_layer, &tiles);
}
