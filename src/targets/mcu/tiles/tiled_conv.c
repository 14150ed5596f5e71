/* tiled_conv.c - layers with windows and weights, cut into rows and channels. */
#include "targets/mcu/tiles/tiled_conv.h"

#include <inttypes.h>
#include <string.h>

/* what the layer of some of the channels is, in tiles: its rows are dense */
static mur_conv_shape cut_channels(const mur_conv_shape *layer, uint32_t channels)
{
    mur_conv_shape part = *layer;

    part.out_c = (int32_t)channels;
    if (part.groups > 1)
        part.groups = part.in_c = part.out_c;
    part.in_pitch = part.in_w * part.in_c;
    part.out_pitch = part.out_w * part.out_c;
    return part;
}

static uint64_t packed_bytes_of(const void *subject, uint32_t channels)
{
    const muc_mcu_tiled_conv *conv = subject;
    const mur_conv_shape part = cut_channels(&conv->shape, channels);

    return conv->packer.packed_bytes(conv->packer.subject, &part);
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

static uint32_t fewest_channels(const mur_conv_shape *layer)
{
    enum { CHANNELS_TOGETHER = 4 }; /* of the kernels */

    return layer->out_c < CHANNELS_TOGETHER ? (uint32_t)layer->out_c : CHANNELS_TOGETHER;
}

uint32_t muc_mcu_conv_parts(const muc_mcu_machine *machine, const mur_conv_shape *whole,
                            mur_conv_shape parts[MUC_MCU_CONV_PARTS])
{
    const mur_conv_shape upright = stand_upright(whole);
    uint32_t channels = (uint32_t)whole->out_c, fewest = fewest_channels(whole);
    uint32_t last = channels % fewest;

    if (!muc_mcu_has_tiles(machine) || !can_be_cut(whole))
        return 0;
    parts[0] = cut_channels(&upright, channels);
    parts[1] = cut_channels(&upright, fewest);
    parts[2] = cut_channels(&upright, last ? last : fewest);
    return MUC_MCU_CONV_PARTS;
}

/* weights as tiles fetch them: a part of the channels after another, each packed by itself */
static muc_status pack_parts(muc_context *ctx, muc_mcu_program *program, const muc_mcu_step *step,
                             const muc_mcu_tiled_conv *conv, const mur_tiles *tiles, uint8_t **out,
                             uint64_t *bytes)
{
    const muc_mcu_conv_packer *packer = &conv->packer;
    uint32_t channels = (uint32_t)conv->shape.out_c;
    uint32_t parts = (channels + tiles->part - 1) / tiles->part;
    size_t part_bytes = tiles->operands[1].part_bytes;

    MUC_TRY(muc_arena_new(ctx, &program->arena, parts, part_bytes, (void **)out));
    memset(*out, 0, parts * part_bytes);
    for (uint32_t p = 0; p < parts; p++) {
        uint32_t first = p * tiles->part, count = channels - first;
        const mur_conv_shape part =
            cut_channels(&conv->shape, count < tiles->part ? count : tiles->part);

        if (!packer->pack(packer->subject, &part, first, *out + p * part_bytes))
            return muc_fail(ctx, MUC_BUG, "mcu", MUC_NO_OFFSET,
                            "the kernel of %s does not take its channels from %" PRIu32 " on",
                            step->name, first);
    }
    *bytes = parts * part_bytes;
    return MUC_OK;
}

static muc_status pack_again(muc_context *ctx, muc_mcu_program *program, muc_mcu_step *step,
                             const mur_tiles *tiles)
{
    muc_mcu_value *value = &program->values[step->tiled->values[1]];
    uint8_t *data;

    MUC_TRY(
        pack_parts(ctx, program, step, step->tiled->layer.subject, tiles, &data, &value->bytes));
    value->data = data;
    step->packed_bytes = value->bytes;
    return MUC_OK;
}

static muc_mcu_tile_layer tiles_of(const muc_mcu_tiled_conv *conv, const char *name)
{
    const mur_conv_shape *layer = &conv->shape;
    uint32_t bytes = conv->packer.element_bytes;
    bool is_depthwise = layer->groups > 1;

    return (muc_mcu_tile_layer){
        .name = name,
        .rows = (uint32_t)layer->out_h,
        .channels = (uint32_t)layer->out_c,
        .multiple = fewest_channels(layer),
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
        .scratch_bytes = conv->packer.scratch_bytes,
        .packed_bytes = packed_bytes_of,
        .subject = conv,
    };
}

muc_status muc_mcu_find_conv_tiles(muc_mcu_lowering *l, const muc_node *node,
                                   const mur_conv_shape *whole, const muc_mcu_conv_packer *packer,
                                   const muc_mcu_tiled_conv **out)
{
    muc_mcu_tile_layer layer;
    muc_mcu_tiled_conv *conv;
    bool fits;

    *out = NULL;
    if (!muc_mcu_has_tiles(l->program->machine) || !can_be_cut(whole))
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, 1, &conv));
    *conv = (muc_mcu_tiled_conv){ .shape = stand_upright(whole), .packer = *packer };
    layer = tiles_of(conv, node->name);
    MUC_TRY(muc_mcu_find_tiles(l, &layer, &conv->tiling, &fits));
    *out = fits ? conv : NULL;
    return MUC_OK;
}

muc_status muc_mcu_use_conv_tiles(muc_mcu_lowering *l, const muc_mcu_tiled_conv *conv,
                                  const char *compute, const char *kernel_type, const char *kernel,
                                  uint32_t *packed)
{
    const muc_mcu_tile_layer layer = tiles_of(conv, l->step->name);
    uint64_t bytes;
    uint8_t *data;

    MUC_TRY(muc_mcu_use_tiles(l, &layer, &conv->tiling, compute));
    l->step->tiled->kernel_type = kernel_type;
    l->step->tiled->kernel = kernel;
    l->step->tiled->pack = pack_again;
    MUC_TRY(pack_parts(l->ctx, l->program, l->step, conv, &conv->tiling.tiles, &data, &bytes));
    MUC_TRY(muc_mcu_new_packed(l, "weights", data, bytes, packed));
    return muc_arena_format(l->ctx, &l->program->arena, &l->step->tiled->descriptor, "&%s",
                            l->step->name);
}

void muc_mcu_name_conv_values(muc_mcu_lowering *l, uint32_t packed)
{
    const muc_node *node = l->step->node;
    uint32_t *values = l->step->tiled->values;

    values[0] = l->program->value_of[node->inputs[0]];
    values[1] = packed;
    values[2] = l->program->value_of[node->outputs[0]];
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
                                  const muc_mcu_tiling *tiling, const char *kernel)
{
    const muc_mcu_tile_layer tiles = tiles_of_pool(layer, l->step->name);
    uint32_t *values;

    MUC_TRY(muc_mcu_use_tiles(l, &tiles, tiling, "mur_tiles_piece_of_pool_s8"));
    l->step->tiled->kernel_type = "mur_tiles_pool_s8_kernel";
    l->step->tiled->kernel = kernel;
    values = l->step->tiled->values;
    MUC_TRY(muc_mcu_input_value(l, l->step->node, 0, &values[0]));
    values[1] = l->program->value_of[l->step->node->outputs[0]];
    return muc_arena_format(l->ctx, &l->program->arena, &l->step->tiled->descriptor, "&%s",
                            l->step->name);
}
