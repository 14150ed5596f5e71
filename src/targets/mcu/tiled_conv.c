/* tiled_conv.c - layers with windows and weights, cut into rows and channels. */
#include "targets/mcu/tiled_conv.h"

#include <inttypes.h>
#include <string.h>

/* what the layer of some of the channels is */
static mur_conv_shape cut_channels(const mur_conv_shape *layer, uint32_t channels)
{
    mur_conv_shape part = *layer;

    part.out_c = (int32_t)channels;
    if (part.groups > 1)
        part.groups = part.in_c = part.out_c;
    return part;
}

static uint64_t packed_bytes_of(const void *subject, uint32_t channels)
{
    const muc_mcu_tiled_conv *conv = subject;
    const mur_conv_shape part = cut_channels(&conv->shape, channels);

    return conv->packer->packed_bytes(conv->packer->subject, &part);
}

/* every row needs some of the input, and channels are independent of each other or share all of it
 */
static bool can_be_cut(const mur_conv_shape *layer)
{
    int32_t window = (layer->kernel_h - 1) * layer->dilation_h + 1;

    return (layer->groups == 1 || (layer->groups == layer->in_c && layer->out_c == layer->in_c)) &&
           layer->pad_top < window &&
           (layer->out_h - 1) * layer->stride_h - layer->pad_top < layer->in_h;
}

/* vectors and pointwise layers are rows of one pixel, so that they can be cut anywhere */
static mur_conv_shape stand_upright(const mur_conv_shape *layer)
{
    mur_conv_shape upright = *layer;

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
static muc_status pack_parts(muc_mcu_lowering *l, const muc_mcu_tiled_conv *conv, uint32_t *out)
{
    const muc_mcu_conv_packer *packer = conv->packer;
    const mur_tiles *tiles = &conv->tiling.tiles;
    uint32_t channels = (uint32_t)conv->shape.out_c;
    uint32_t parts = (channels + tiles->part - 1) / tiles->part;
    size_t part_bytes = tiles->operands[1].part_bytes;
    uint8_t *data;

    MUC_TRY(muc_arena_new(l->ctx, &l->program->arena, parts, part_bytes, (void **)&data));
    memset(data, 0, parts * part_bytes);
    for (uint32_t p = 0; p < parts; p++) {
        uint32_t first = p * tiles->part, count = channels - first;
        const mur_conv_shape part =
            cut_channels(&conv->shape, count < tiles->part ? count : tiles->part);

        if (!packer->pack(packer->subject, &part, first, data + p * part_bytes))
            return muc_fail(l->ctx, MUC_BUG, "mcu", MUC_NO_OFFSET,
                            "the kernel of %s does not take its channels from %" PRIu32 " on",
                            l->step->name, first);
    }
    l->step->packed_bytes = parts * part_bytes;
    return muc_mcu_new_constant(l, "weights", data, parts * part_bytes, out);
}

static muc_mcu_tile_layer tiles_of(const muc_mcu_tiled_conv *conv, const char *name)
{
    const mur_conv_shape *layer = &conv->shape;
    uint32_t bytes = conv->packer->element_bytes;
    bool is_depthwise = layer->groups > 1;
    enum { CHANNELS_TOGETHER = 4 }; /* of the kernels */

    return (muc_mcu_tile_layer){
        .name = name,
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
                        .pixel_bytes = (uint32_t)layer->in_c * bytes,
                        .channel_bytes = is_depthwise ? bytes : 0 },
                      { .name = "weights",
                        .rows = 1,
                        .pixels = 1,
                        .is_weights = true,
                        .is_constant = true },
                      { .name = "out",
                        .rows = (uint32_t)layer->out_h,
                        .stride = 1,
                        .window = 1,
                        .pixels = (uint32_t)layer->out_w,
                        .pixel_bytes = (uint32_t)layer->out_c * bytes,
                        .channel_bytes = bytes } },
        .work = (uint64_t)layer->out_w * layer->kernel_h * layer->kernel_w *
                (uint64_t)(layer->in_c / layer->groups),
        .scratch_bytes = conv->packer->scratch_bytes,
        .packed_bytes = packed_bytes_of,
        .subject = conv,
    };
}

muc_status muc_mcu_find_conv_tiles(muc_mcu_lowering *l, const muc_node *node,
                                   const mur_conv_shape *whole, const muc_mcu_conv_packer *packer,
                                   muc_mcu_tiled_conv *out, bool *fits)
{
    muc_mcu_tile_layer layer;

    *fits = muc_mcu_has_tiles(l->program->machine) && can_be_cut(whole);
    if (!*fits)
        return MUC_OK;
    *out = (muc_mcu_tiled_conv){ .shape = stand_upright(whole), .packer = packer };
    layer = tiles_of(out, node->name);
    return muc_mcu_find_tiles(l, &layer, &out->tiling, fits);
}

muc_status muc_mcu_use_conv_tiles(muc_mcu_lowering *l, const muc_mcu_tiled_conv *conv,
                                  uint32_t *packed)
{
    const muc_mcu_tile_layer layer = tiles_of(conv, l->step->name);
    uint64_t offset;

    MUC_TRY(muc_mcu_use_tiles(l, &layer, &conv->tiling, &l->text));
    MUC_TRY(pack_parts(l, conv, packed));
    l->program->values[muc_mcu_root(l->program, *packed, &offset)].used = true;
    return MUC_OK;
}

/* ---- pooling ---- */

static muc_mcu_tile_layer tiles_of_pool(const mur_pool_s8 *layer, const char *name)
{
    uint32_t c = (uint32_t)layer->c;

    return (muc_mcu_tile_layer){
        .name = name,
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
        .work = (uint64_t)layer->out_w * layer->kernel_h * layer->kernel_w,
    };
}

muc_status muc_mcu_find_pool_tiles(muc_mcu_lowering *l, const muc_node *node,
                                   const mur_pool_s8 *layer, muc_mcu_tiling *out, bool *fits)
{
    const muc_mcu_tile_layer tiles = tiles_of_pool(layer, node->name);

    *fits = muc_mcu_has_tiles(l->program->machine) && layer->pad_top < layer->kernel_h &&
            (layer->out_h - 1) * layer->stride_h - layer->pad_top < layer->in_h;
    return *fits ? muc_mcu_find_tiles(l, &tiles, out, fits) : MUC_OK;
}

muc_status muc_mcu_use_pool_tiles(muc_mcu_lowering *l, const mur_pool_s8 *layer,
                                  const muc_mcu_tiling *tiling)
{
    const muc_mcu_tile_layer tiles = tiles_of_pool(layer, l->step->name);

    return muc_mcu_use_tiles(l, &tiles, tiling, &l->text);
}
