/* int8_kernels.c - nodes that carry quantization, by the runtime's kernels: descriptors, packed
 * weights.
 *
 * A kernel with weights exists for several instruction sets; of those of the machine the first row
 * of mur_nn.def that fits the layer is taken, else the plain one. Packing runs here, with the
 * runtime's own functions.
 */
#include <inttypes.h>
#include <string.h>

#include "graph/scales.h"
#include "mur_nn.h"
#include "mur_pool.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/kernels/image_batch.h"
#include "targets/mcu/kernels/int8_layer.h"
#include "targets/mcu/kernels/row_bands.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/loops/sums_int8.h"
#include "targets/mcu/program/runtime_files.h"
#include "targets/mcu/tiles/tiled_conv.h"

/* ---- quantization ---- */

static int8_t zero_of(const muc_tensor *tensor)
{
    return (int8_t)muc_zero_of(tensor);
}

/* ---- descriptors ---- */

/* of type mur_TYPE: "static const TYPE NAME = {", then fields, then "};"; in a piece "TYPE layer =
 * {"
 */
static void begin_descriptor(muc_mcu_lowering *l, const char *type)
{
    if (l->pieces)
        muc_text_add(&l->text, "    mur_%s layer = {", type);
    else
        muc_text_add(&l->text, "static const mur_%s %s = {", type, l->step->name);
}

static void add_field(muc_mcu_lowering *l, const char *name, int64_t value)
{
    muc_mcu_print_field(&l->text, name, value);
}

static void add_multiplier(muc_mcu_lowering *l, const char *mul, const char *shift,
                           muc_multiplier multiplier)
{
    add_field(l, mul, multiplier.mantissa);
    add_field(l, shift, multiplier.shift);
}

static void add_output(muc_mcu_lowering *l, const mur_output_s8 *output)
{
    muc_mcu_print_output(&l->text, output);
}

static void end_descriptor(muc_mcu_lowering *l)
{
    muc_text_add(&l->text, "\n};\n\n");
}

static muc_status pass_descriptor(muc_mcu_lowering *l)
{
    return muc_mcu_pass_text(l, "&%s", l->step->name);
}

/* ---- layers with weights ---- */

/* what patches need of a step */
static muc_status keep_layer(muc_mcu_lowering *l, const muc_mcu_layer *layer)
{
    muc_mcu_layer *copy;

    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, 1, &copy));
    *copy = *layer;
    l->step->layer = copy;
    return MUC_OK;
}

/* a multiplier for each output channel */
static muc_status make_factors(muc_mcu_lowering *l, const muc_node *node, uint32_t channels,
                               mur_conv_plain *plain)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *w = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    int32_t *mul, *shift;

    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, channels, &mul));
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, channels, &shift));
    for (uint32_t c = 0; c < channels; c++) {
        muc_multiplier factor = muc_scale_product(node, x, w, y, c);

        mul[c] = factor.mantissa;
        shift[c] = factor.shift;
    }
    plain->mul = mul;
    plain->shift = shift;
    return MUC_OK;
}

/* a layer's kernel and weights, of which tiles take some channels */
typedef struct packing {
    const muc_mcu_kernel *kernel;
    mur_conv_s8 layer;
    mur_conv_plain plain;
} packing;

static mur_conv_s8 part_of(const packing *p, const mur_conv_shape *shape)
{
    mur_conv_s8 part = p->layer;

    part.shape = *shape;
    return part;
}

static size_t part_bytes(const void *subject, const mur_conv_shape *shape)
{
    const packing *p = subject;
    const mur_conv_s8 part = part_of(p, shape);

    return p->kernel->packed_bytes(&part);
}

static bool pack_part(const void *subject, const mur_conv_shape *shape, uint32_t first,
                      void *packed)
{
    const packing *p = subject;
    const mur_conv_s8 part = part_of(p, shape);
    size_t inputs = muc_mcu_conv_weights(shape);
    const mur_conv_plain some = {
        .weights = p->plain.weights + first * inputs,
        .bias = p->plain.bias ? p->plain.bias + first : NULL,
        .mul = p->plain.mul + first,
        .shift = p->plain.shift + first,
    };

    if (!p->kernel->fits(&part, &some))
        return false;
    p->kernel->pack(&part, &some, packed);
    return true;
}

static muc_status write_tiled_layer(muc_mcu_lowering *l, const muc_node *node, const packing *p,
                                    const muc_mcu_tiled_conv *conv, uint64_t macs)
{
    static const char function[] = "mur_tiles_conv_s8";
    const char *kernel = p->kernel->function;
    const mur_conv_s8 upright = part_of(p, &conv->shape);
    uint32_t packed;

    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, kernel));
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    MUC_TRY(muc_mcu_begin_step(l, node, function));
    MUC_TRY(muc_mcu_use_conv_tiles(l, conv, "mur_tiles_piece_of_conv_s8",
                                   "mur_tiles_conv_s8_kernel", kernel, &packed));
    begin_descriptor(l, "conv_s8");
    muc_mcu_print_conv(&l->text, &upright, l->program->values[packed].name);
    end_descriptor(l);
    MUC_TRY(muc_mcu_pass_text(l, "&%s_tiles", l->step->name));
    MUC_TRY(pass_descriptor(l));
    MUC_TRY(muc_mcu_pass_text(l, "%s", kernel));
    MUC_TRY(muc_mcu_pass_input(l, 0));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    MUC_TRY(muc_mcu_pass_text(l, "tile_memory"));
    muc_mcu_name_conv_values(l, packed);
    return muc_mcu_end_step(l, macs);
}

/* the step at hand calls a kernel for the whole layer: its descriptor, and what patches need */
static muc_status describe_layer(muc_mcu_lowering *l, const mur_conv_s8 *image,
                                 const mur_conv_s8 *layer, const mur_conv_plain *plain,
                                 const muc_mcu_kernel *kernel)
{
    uint32_t packed;

    MUC_TRY(muc_mcu_pack_conv(l, kernel, layer, plain, &packed));
    begin_descriptor(l, "conv_s8");
    muc_mcu_print_conv(&l->text, layer, l->program->values[packed].name);
    end_descriptor(l);
    return keep_layer(l, &(muc_mcu_layer){ .kind = MUC_MCU_LAYER_CONV,
                                           .in_h = image->shape.in_h,
                                           .in_w = image->shape.in_w,
                                           .in_c = image->shape.in_c,
                                           .out_h = image->shape.out_h,
                                           .out_w = image->shape.out_w,
                                           .out_c = image->shape.out_c,
                                           .as.conv = *image,
                                           .plain = *plain,
                                           .packed = packed });
}

/* also of the parts that tiles may cut it into */
static const muc_mcu_kernel *find_kernel(const muc_mcu_lowering *l, const mur_conv_s8 *layer,
                                         const mur_conv_plain *plain)
{
    mur_conv_s8 layers[1 + MUC_MCU_CONV_PARTS] = { *layer };
    mur_conv_shape parts[MUC_MCU_CONV_PARTS];
    uint32_t count = muc_mcu_conv_parts(l->program->machine, &layer->shape, parts);
    const muc_mcu_kernel *kernel;

    for (uint32_t i = 0; i < count; i++) {
        layers[1 + i] = *layer;
        layers[1 + i].shape = parts[i];
    }
    kernel = muc_mcu_find_conv(l->isa, layers, 1 + count, plain);
    return muc_mcu_find_linked(l->program, kernel, layers, 1 + count, plain);
}

muc_status muc_mcu_write_layer(muc_mcu_lowering *l, const muc_node *node, const mur_conv_s8 *image,
                               const mur_conv_plain *plain)
{
    const uint32_t all = muc_mcu_images_of(l, node, &image->shape);
    const uint64_t macs = all * muc_mcu_conv_macs(&image->shape);
    mur_conv_s8 layer = *image;
    const muc_mcu_kernel *kernel;
    const muc_mcu_tiled_conv *tiled;
    muc_mcu_bands bands;
    packing *subject;
    uint32_t images;
    int32_t lead;

    muc_mcu_flatten_conv(&layer.shape);
    images = muc_mcu_join_images(&layer.shape, all);
    kernel = find_kernel(l, &layer, plain);
    if (images > 1)
        return muc_mcu_write_conv_images(l, node, images, kernel, &layer, plain);
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, 1, &subject));
    *subject = (packing){ kernel, layer, *plain };
    MUC_TRY(muc_mcu_find_conv_tiles(
        l, node, &layer.shape,
        &(muc_mcu_conv_packer){ subject, 1, part_bytes, pack_part, kernel->scratch_bytes(&layer) },
        &tiled));
    if (tiled)
        return write_tiled_layer(l, node, subject, tiled, macs);
    muc_mcu_find_bands(kernel, &layer, plain, &bands);
    if (bands.count > 1)
        return muc_mcu_write_bands(l, node, kernel, &bands, plain);
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, kernel->function));
    MUC_TRY(muc_mcu_begin_step(l, node, kernel->function));
    MUC_TRY(describe_layer(l, image, &layer, plain, kernel));
    l->step->layer = all > 1 ? NULL : l->step->layer; /* patches are of one image */
    MUC_TRY(pass_descriptor(l));
    MUC_TRY(muc_mcu_pass_input(l, 0));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    MUC_TRY(muc_mcu_pass_scratch(l, kernel->scratch_bytes(&layer)));
    if (muc_mcu_conv_lead(kernel, &layer.shape, &lead))
        muc_mcu_may_overlap(l, 0, lead);
    return muc_mcu_end_step(l, macs);
}

static bool has_plain_weights(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *w = muc_mcu_input(l, node, 1), *bias = muc_mcu_input(l, node, 2);

    if (w->kind != MUC_TENSOR_CONST || w->dtype != MUC_I8 || !w->quantization || !w->data)
        return false;
    for (uint32_t i = 0; i < w->quantization->count; i++)
        if (w->quantization->zero_points[i] != zero_of(w))
            return false;
    return !bias || (bias->kind == MUC_TENSOR_CONST && bias->dtype == MUC_I32 && bias->data);
}

/* the bias may lie anywhere in the file */
static muc_status copy_bias(muc_mcu_lowering *l, const muc_tensor *bias, const int32_t **out)
{
    int32_t *copy;

    *out = NULL;
    if (!bias)
        return MUC_OK;
    MUC_TRY(muc_arena_new(l->ctx, &l->program->arena, (size_t)bias->bytes, 1, (void **)&copy));
    memcpy(copy, bias->data, (size_t)bias->bytes);
    *out = copy;
    return MUC_OK;
}

bool muc_mcu_takes_conv_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);

    return muc_mcu_is_s8(x) && muc_mcu_is_s8(muc_mcu_output(l, node, 0)) && x->rank == 4 &&
           muc_mcu_takes_images(l, x) && muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) &&
           has_plain_weights(l, node);
}

static muc_status write_shape(muc_mcu_lowering *l, const muc_node *node, mur_conv_shape shape)
{
    mur_conv_s8 layer = { .shape = shape };
    mur_conv_plain plain = { .weights = (const int8_t *)muc_mcu_input(l, node, 1)->data };

    layer.in_zero = zero_of(muc_mcu_input(l, node, 0));
    layer.weight_zero = zero_of(muc_mcu_input(l, node, 1));
    layer.output = muc_mcu_output_of(l, node);
    MUC_TRY(make_factors(l, node, (uint32_t)shape.out_c, &plain));
    MUC_TRY(copy_bias(l, muc_mcu_input(l, node, 2), &plain.bias));
    return muc_mcu_write_layer(l, node, &layer, &plain);
}

muc_status muc_mcu_write_conv_s8(muc_mcu_lowering *l, const muc_node *node)
{
    return write_shape(l, node, muc_mcu_conv_shape(l, node));
}

bool muc_mcu_takes_linear_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);

    return muc_mcu_is_s8(x) && muc_mcu_is_s8(muc_mcu_output(l, node, 0)) &&
           muc_mcu_is_static(l, x) && has_plain_weights(l, node);
}

muc_status muc_mcu_write_linear_s8(muc_mcu_lowering *l, const muc_node *node)
{
    return write_shape(l, node, muc_mcu_linear_shape(l, node));
}

/* ---- layers without weights ---- */

/* a step that calls a kernel of one name with a descriptor of a type, on pieces of the layer if
 * they fit */
static muc_status begin_typed_kernel(muc_mcu_lowering *l, const muc_node *node, const char *name,
                                     const char *type, const muc_mcu_tile_layer *layer)
{
    const char *function = muc_mcu_find_kernel(l->isa, name)->function;
    bool fits;

    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    MUC_TRY(muc_mcu_begin_tiled_function(l, node, layer, &fits));
    if (!fits)
        MUC_TRY(muc_mcu_begin_step(l, node, function));
    begin_descriptor(l, type);
    return MUC_OK;
}

/* the same of the kernel's own type */
static muc_status begin_kernel(muc_mcu_lowering *l, const muc_node *node, const char *name,
                               const muc_mcu_tile_layer *layer)
{
    return begin_typed_kernel(l, node, name, name, layer);
}

/* piece: what a piece changes of the layer */
static muc_status end_kernel(muc_mcu_lowering *l, const char *name, unsigned inputs,
                             const char *piece)
{
    if (l->pieces) {
        muc_text_add(&l->text, "\n    };\n\n    %s\n    %s(&layer, a, %sy);\n", piece,
                     muc_mcu_find_kernel(l->isa, name)->function, inputs > 1 ? "b, " : "");
        return muc_mcu_end_function(l, 0, 0);
    }
    end_descriptor(l);
    MUC_TRY(pass_descriptor(l));
    for (unsigned i = 0; i < inputs; i++)
        MUC_TRY(muc_mcu_pass_input(l, i));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    return muc_mcu_end_step(l, 0);
}

/* the greatest of bytes is that whatever they mean */
static bool is_pool_of_bytes(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);

    if (muc_op_has(node->op, MUC_OP_SELECTS) && x->dtype == MUC_I8 && !x->quantization)
        return true;
    return muc_mcu_is_s8(x) && muc_mcu_is_s8(y) &&
           muc_scale_is_same(x->quantization, y->quantization);
}

mur_pool_s8 muc_mcu_pool_of(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    const mur_output_s8 all = { .min = INT8_MIN, .max = INT8_MAX };
    const mur_output_s8 output = y->quantization ? muc_mcu_output_of(l, node) : all;
    int32_t c = (int32_t)muc_mcu_dim(l, x, 3);

    return (mur_pool_s8){
        .in_h = (int32_t)muc_mcu_dim(l, x, 1),
        .in_w = (int32_t)muc_mcu_dim(l, x, 2),
        .c = c,
        .out_h = (int32_t)muc_mcu_dim(l, y, 1),
        .out_w = (int32_t)muc_mcu_dim(l, y, 2),
        .in_pitch = (int32_t)muc_mcu_dim(l, x, 2) * c,
        .out_pitch = (int32_t)muc_mcu_dim(l, y, 2) * c,
        .kernel_h = (uint16_t)muc_node_item_or(node, MUC_KEY_KERNEL, 0, 1),
        .kernel_w = (uint16_t)muc_node_item_or(node, MUC_KEY_KERNEL, 1, 1),
        .stride_h = (uint16_t)muc_node_item_or(node, MUC_KEY_STRIDES, 0, 1),
        .stride_w = (uint16_t)muc_node_item_or(node, MUC_KEY_STRIDES, 1, 1),
        .pad_top = (uint16_t)muc_node_item_or(node, MUC_KEY_PADS, 0, 0),
        .pad_left = (uint16_t)muc_node_item_or(node, MUC_KEY_PADS, 1, 0),
        .min = output.min,
        .max = output.max,
    };
}

/* Windows of one column, side by side: columns are channels, and rows are columns of one row.
 * Windows of whole rows: of one row, too, in which they follow one another. */
static mur_pool_s8 flatten_pool(mur_pool_s8 layer)
{
    const bool is_column = layer.kernel_w == 1 && layer.stride_w == 1 && layer.in_w == layer.out_w;
    const bool is_whole_row = layer.kernel_w == layer.in_w && layer.out_w == 1;
    const int32_t row = is_column ? 1 : layer.in_w; /* in columns of the one row */
    mur_pool_s8 flat = layer;

    if (!(is_column || is_whole_row) || layer.pad_left != 0 ||
        (int64_t)row * (layer.kernel_h + layer.stride_h + layer.pad_top) > UINT16_MAX)
        return layer;
    flat.c = layer.in_w * layer.c / row;
    flat.in_h = flat.out_h = 1;
    flat.in_w = row * layer.in_h, flat.out_w = layer.out_h;
    flat.in_pitch *= layer.in_h, flat.out_pitch *= layer.out_h;
    flat.kernel_h = flat.stride_h = 1, flat.kernel_w = (uint16_t)(row * layer.kernel_h);
    flat.stride_w = (uint16_t)(row * layer.stride_h);
    flat.pad_top = 0, flat.pad_left = (uint16_t)(row * layer.pad_top);
    return flat;
}

/* that of small windows or of rows of few channels, which few instruction sets have, or of any */
static const char *pool_function(const muc_mcu_lowering *l, const muc_node *node,
                                 const mur_pool_s8 *layer)
{
    const bool is_max = muc_op_has(node->op, MUC_OP_SELECTS);
    const muc_mcu_kernel *small =
        muc_mcu_find_kernel(l->isa, is_max ? "max_pool_small_s8" : "average_pool_small_s8");
    const int32_t few_channels = 8, few_pixels = 3, few_taps = 22;
    const bool is_few = layer->c < few_channels && layer->out_w >= few_pixels;

    if (small && (is_max ? is_few && mur_pool_has_short_rows(layer)
                         : (is_few || layer->kernel_h * layer->kernel_w <= few_taps) &&
                               mur_pool_is_small(layer)))
        return small->function;
    return muc_mcu_find_kernel(l->isa, is_max ? "max_pool_s8" : "average_pool_s8")->function;
}

/* all windows inside the image */
static bool is_whole(const mur_pool_s8 *p)
{
    return p->pad_top == 0 && p->pad_left == 0 &&
           (p->out_h - 1) * p->stride_h + p->kernel_h <= p->in_h &&
           (p->out_w - 1) * p->stride_w + p->kernel_w <= p->in_w;
}

/* Without vectors a pixel of few channels takes a kernel about 6 instructions a tap and 100 more,
 * loops 7 a tap of each channel; and averages of so few taps take loops 15 a channel, a kernel 24.
 * Only kernels run in patches, which large images may need. */
static bool is_for_kernels(const muc_mcu_lowering *l, const muc_node *node)
{
    const int32_t few_taps = 4, few_bytes = 8192;
    const muc_mcu_isa isa = muc_mcu_find_kernel(l->isa, "max_pool_s8")->isa;
    const mur_pool_s8 layer = muc_mcu_pool_of(l, node), flat = flatten_pool(layer);
    const int32_t taps = layer.kernel_h * layer.kernel_w;

    if (isa != MUC_MCU_ISA_NONE && isa != MUC_MCU_ISA_DSP)
        return true;
    if (!muc_op_has(node->op, MUC_OP_SELECTS) && taps <= few_taps && is_whole(&layer) &&
        layer.in_h * layer.in_pitch <= few_bytes)
        return false;
    return flat.c >= 4 || taps * (7 * flat.c - 6) > 100;
}

bool muc_mcu_is_dense_pool(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);

    return x->rank == 4 && muc_mcu_takes_images(l, x) && node->output_count == 1 &&
           muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) &&
           muc_node_item_or(node, MUC_KEY_DILATIONS, 0, 1) == 1 &&
           muc_node_item_or(node, MUC_KEY_DILATIONS, 1, 1) == 1 && !muc_node_counts_padding(node);
}

bool muc_mcu_takes_pool_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    return is_pool_of_bytes(l, node) && !muc_node_attribute(node, MUC_KEY_ROUNDING) &&
           muc_mcu_is_dense_pool(l, node) && is_for_kernels(l, node);
}

muc_status muc_mcu_write_pool_s8(muc_mcu_lowering *l, const muc_node *node)
{
    static const char in_tiles[] = "mur_tiles_pool_s8";
    const mur_pool_s8 layer = muc_mcu_pool_of(l, node), flat = flatten_pool(layer);
    const char *function = pool_function(l, node, &flat);
    muc_mcu_tiling tiling;
    bool fits;

    if (muc_mcu_dim(l, muc_mcu_input(l, node, 0), 0) > 1)
        return muc_mcu_write_pool_images(l, node, function, &flat);
    MUC_TRY(muc_mcu_find_pool_tiles(l, node, &layer, &tiling, &fits));
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    if (fits)
        MUC_TRY(muc_mcu_need_function(l->ctx, l->program, in_tiles));
    MUC_TRY(muc_mcu_begin_step(l, node, fits ? in_tiles : function));
    begin_descriptor(l, "pool_s8");
    muc_mcu_print_pool(&l->text, fits ? &layer : &flat);
    end_descriptor(l);
    if (fits) {
        MUC_TRY(muc_mcu_use_pool_tiles(l, &layer, &tiling, function));
        MUC_TRY(muc_mcu_pass_text(l, "&%s_tiles", l->step->name));
    } else {
        MUC_TRY(keep_layer(l, &(muc_mcu_layer){ .kind = MUC_MCU_LAYER_POOL,
                                                .in_h = layer.in_h,
                                                .in_w = layer.in_w,
                                                .in_c = layer.c,
                                                .out_h = layer.out_h,
                                                .out_w = layer.out_w,
                                                .out_c = layer.c,
                                                .as.pool = layer }));
    }
    MUC_TRY(pass_descriptor(l));
    if (fits)
        MUC_TRY(muc_mcu_pass_text(l, "%s", function));
    MUC_TRY(muc_mcu_pass_input(l, 0));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    if (fits)
        MUC_TRY(muc_mcu_pass_text(l, "tile_memory"));
    return muc_mcu_end_step(l, 0);
}

bool muc_mcu_is_over_pixels(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_attribute *axes = muc_node_attribute(node, MUC_KEY_AXES);
    const muc_tensor *x = muc_mcu_input(l, node, 0);

    return x->rank == 4 && muc_mcu_is_static(l, x) && muc_mcu_dim(l, x, 0) == 1 &&
           axes->value.integers.count == 2 && axes->value.integers.items[0] == 1 &&
           axes->value.integers.items[1] == 2;
}

bool muc_mcu_takes_mean_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    return muc_mcu_is_s8(muc_mcu_input(l, node, 0)) && muc_mcu_is_s8(muc_mcu_output(l, node, 0)) &&
           muc_mcu_is_over_pixels(l, node);
}

muc_status muc_mcu_write_mean_s8(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);
    const mur_output_s8 output = muc_mcu_output_of(l, node);
    uint32_t pixels = muc_mcu_dim(l, x, 1) * muc_mcu_dim(l, x, 2), c = muc_mcu_dim(l, x, 3);
    const muc_mcu_tile_layer cut = {
        .name = node->name,
        .rows = 1,
        .channels = c,
        .multiple = 1,
        .operand_count = 2,
        .operands = { { "a", .rows = 1, .pixels = pixels, .pixel_bytes = c, .channel_bytes = 1 },
                      { "y", .rows = 1, .pixels = 1, .pixel_bytes = c, .channel_bytes = 1 } },
        .work = pixels,
    };

    MUC_TRY(begin_kernel(l, node, "mean_s8", &cut));
    add_field(l, "pixels", pixels);
    add_field(l, "c", c);
    add_multiplier(l, "mul", "shift", muc_scale_reduction(node->op, x, y, pixels));
    add_field(l, "in_zero", zero_of(x));
    add_output(l, &output);
    return end_kernel(l, "mean_s8", 1, "layer.c = (int32_t)channels;");
}

/* b's elements repeat along a's: b's shape is the end of a's */
static bool repeats(const muc_mcu_lowering *l, const muc_tensor *a, const muc_tensor *b)
{
    uint32_t from = 0;

    if (b->rank > a->rank)
        return false;
    while (from < b->rank && muc_mcu_dim(l, b, from) == 1)
        from++;
    for (uint32_t i = from; i < b->rank; i++)
        if (a->dims[a->rank - b->rank + i] != b->dims[i])
            return false;
    return true;
}

static bool is_better_as_loops(const muc_mcu_lowering *l, const muc_node *node)
{
    mur_add_s8 line;
    int32_t mask;

    if (muc_mcu_takes_table_s8(l, node))
        return true;
    if (node->op == MUC_OP_MUL)
        return muc_mcu_find_kernel(l->isa, "mul_s8")->isa == MUC_MCU_ISA_NONE;
    return muc_mcu_find_kernel(l->isa, "add_s8")->isa != MUC_MCU_ISA_RVV &&
           muc_mcu_find_near_line(l, node, &line, &mask);
}

bool muc_mcu_takes_pair_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *a = muc_mcu_input(l, node, 0), *b = muc_mcu_input(l, node, 1);
    const muc_tensor *y = muc_mcu_output(l, node, 0);

    return muc_mcu_is_s8(a) && muc_mcu_is_s8(b) && muc_mcu_is_s8(y) && muc_mcu_is_static(l, a) &&
           muc_mcu_is_static(l, b) && repeats(l, a, b) &&
           muc_mcu_most_elements(l, a) == muc_mcu_most_elements(l, y) &&
           (muc_mcu_has_vectors(l->isa) || !is_better_as_loops(l, node));
}

/* rows: an element, or as many as b repeats over */
static muc_mcu_tile_layer cut_pair(const muc_mcu_lowering *l, const muc_node *node)
{
    uint64_t count = muc_mcu_most_elements(l, muc_mcu_input(l, node, 0));
    uint64_t b_count = muc_mcu_most_elements(l, muc_mcu_input(l, node, 1));
    bool repeats_b = b_count < count;

    return muc_mcu_rows_layer(node, 2, repeats_b ? count / b_count : count, repeats_b ? b_count : 1,
                              repeats_b);
}

static muc_status end_pair(muc_mcu_lowering *l, const muc_node *node, const char *name)
{
    bool repeats_b = cut_pair(l, node).operands[1].window == 0;

    MUC_TRY(end_kernel(l, name, 2,
                       repeats_b ? "layer.count = (int32_t)rows * layer.b_count;"
                                 : "layer.count = layer.b_count = (int32_t)rows;"));
    for (uint32_t i = 0; i < 2; i++)
        if (muc_mcu_input(l, node, i)->kind != MUC_TENSOR_CONST &&
            muc_mcu_most_elements(l, muc_mcu_input(l, node, i)) ==
                muc_mcu_most_elements(l, muc_mcu_output(l, node, 0)))
            muc_mcu_may_overlap(l, i, 0);
    return MUC_OK;
}

/* A sum, if the layer is one and the instruction set has a kernel for them: Helium's takes a b as
 * long as a. */
static const char *find_addition(const muc_mcu_lowering *l, const muc_node *node, mur_add_s8 *layer)
{
    static const char name[] = "add_s8", line[] = "line_s8";
    const mur_add_s8 add = muc_mcu_add_of(l, node);
    const muc_mcu_isa isa = muc_mcu_find_kernel(l->isa, line)->isa;

    *layer = add;
    return isa == muc_mcu_find_kernel(l->isa, name)->isa &&
                   (isa != MUC_MCU_ISA_MVE || add.b_count == add.count) &&
                   muc_mcu_find_line(&add, layer)
               ? line
               : name;
}

static muc_status write_add(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *y = muc_mcu_output(l, node, 0);
    const muc_mcu_tile_layer cut = cut_pair(l, node);
    mur_add_s8 layer;
    const char *name = find_addition(l, node, &layer);

    MUC_TRY(begin_typed_kernel(l, node, name, "add_s8", &cut));
    if (!l->pieces && y->rank == 4 && muc_mcu_dim(l, y, 0) == 1 && layer.count == layer.b_count)
        MUC_TRY(keep_layer(l, &(muc_mcu_layer){ .kind = MUC_MCU_LAYER_ADD,
                                                .in_h = (int32_t)muc_mcu_dim(l, y, 1),
                                                .in_w = (int32_t)muc_mcu_dim(l, y, 2),
                                                .in_c = (int32_t)muc_mcu_dim(l, y, 3),
                                                .out_h = (int32_t)muc_mcu_dim(l, y, 1),
                                                .out_w = (int32_t)muc_mcu_dim(l, y, 2),
                                                .out_c = (int32_t)muc_mcu_dim(l, y, 3),
                                                .as.add = layer }));
    muc_mcu_print_add(&l->text, &layer);
    return end_pair(l, node, name);
}

static muc_status write_mul(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_mcu_tile_layer cut = cut_pair(l, node);

    MUC_TRY(begin_kernel(l, node, "mul_s8", &cut));
    muc_mcu_print_mul(l, node);
    return end_pair(l, node, "mul_s8");
}

muc_status muc_mcu_write_pair_s8(muc_mcu_lowering *l, const muc_node *node)
{
    return node->op == MUC_OP_MUL ? write_mul(l, node) : write_add(l, node);
}

bool muc_mcu_takes_softmax_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);

    return muc_mcu_is_s8(x) && muc_mcu_is_s8(y) && x->rank > 0 && muc_mcu_is_static(l, x) &&
           muc_node_integer(node, MUC_KEY_AXIS) == x->rank - 1 && muc_scale_of(y) == 1 / 256.0f &&
           zero_of(y) == INT8_MIN;
}

/* the exponentials of all differences, 1 KiB */
static muc_status add_exponentials(muc_mcu_lowering *l, const muc_softmax_scales *scales)
{
    enum { DIFFERENCES = 256 };
    uint32_t constant;
    int32_t *exps;

    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, DIFFERENCES, &exps));
    for (int32_t d = 0; d < DIFFERENCES; d++)
        exps[d] = -d < scales->least ? 0 : muc_fixed_exp(muc_multiply(-d, scales->difference));
    MUC_TRY(muc_mcu_new_packed(l, "exps", exps, DIFFERENCES * sizeof(*exps), &constant));
    muc_text_add(&l->text, "\n    .exps = (const int32_t *)(const void *)%s,",
                 l->program->values[constant].name);
    return MUC_OK;
}

/* Vectors have one kernel for layers with a table and without. */
static const char *softmax_of(muc_mcu_isa isa, bool with_table)
{
    return with_table && !muc_mcu_has_vectors(isa) ? "softmax_exps_s8" : "softmax_s8";
}

muc_status muc_mcu_write_softmax_s8(muc_mcu_lowering *l, const muc_node *node)
{
    const uint64_t many = 64; /* then a table saves three quarters of the instructions */
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    const muc_softmax_scales scales = muc_scale_softmax(x, muc_node_real_or(node, MUC_KEY_BETA, 1));
    uint64_t rows = muc_mcu_elements(l, x, 0, x->rank - 1);
    uint32_t columns = muc_mcu_dim(l, x, x->rank - 1);
    const muc_mcu_tile_layer cut = muc_mcu_rows_layer(node, 1, rows, columns, false);
    const bool with_table = rows * columns >= many;
    const char *kernel = softmax_of(l->isa, with_table);

    MUC_TRY(begin_typed_kernel(l, node, kernel, "softmax_s8", &cut));
    add_field(l, "rows", (int64_t)rows);
    add_field(l, "columns", columns);
    add_multiplier(l, "mul", "shift", scales.difference);
    add_field(l, "diff_min", scales.least);
    if (with_table)
        MUC_TRY(add_exponentials(l, &scales));
    MUC_TRY(end_kernel(l, kernel, 1, "layer.rows = (int32_t)rows;"));
    muc_mcu_may_overlap(l, 0, 0);
    return MUC_OK;
}

/* ---- to and from real numbers ---- */

bool muc_mcu_takes_quantize_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);

    return muc_mcu_is_s8(y) && muc_mcu_is_static(l, x) &&
           (x->dtype == MUC_F32 ||
            (muc_mcu_is_s8(x) && muc_scale_is_same(x->quantization, y->quantization)));
}

/* scale, zero point and count as arguments */
static muc_status convert(muc_mcu_lowering *l, const muc_node *node, const char *function,
                          const muc_tensor *integers)
{
    muc_text scale = { 0 };
    muc_status status;

    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    MUC_TRY(muc_mcu_begin_step(l, node, function));
    muc_mcu_print_real(&scale, (double)muc_scale_of(integers), false);
    status = muc_text_status(l->ctx, &scale);
    if (status == MUC_OK)
        status = muc_mcu_pass_text(l, "%s", scale.data);
    muc_text_free(&scale);
    MUC_TRY(status);
    MUC_TRY(muc_mcu_pass_text(l, "%d", zero_of(integers)));
    MUC_TRY(muc_mcu_pass_text(l, "%" PRIu64, muc_mcu_most_elements(l, integers)));
    MUC_TRY(muc_mcu_pass_input(l, 0));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    return muc_mcu_end_step(l, 0);
}

muc_status muc_mcu_write_quantize_s8(muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *y = muc_mcu_output(l, node, 0);

    if (x->dtype == MUC_F32)
        return convert(l, node, "mur_ref_quantize_f32", y);
    return muc_mcu_make_view(l, node, 0);
}

bool muc_mcu_takes_dequantize_s8(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);

    return muc_mcu_is_s8(x) && muc_mcu_is_static(l, x);
}

muc_status muc_mcu_write_dequantize_s8(muc_mcu_lowering *l, const muc_node *node)
{
    return convert(l, node, "mur_ref_dequantize_s8", muc_mcu_input(l, node, 0));
}
