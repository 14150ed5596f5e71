/* float32_kernels.c - convolutions and linear layers on f32, or with Helium on f16, with constant
 * weights, by the runtime's kernels, together with the relu or clip behind them.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "mur_nn_f16.h"
#include "mur_nn_f32.h"
#include "targets/mcu/program/c_text.h"
#include "targets/mcu/kernels/image_batch.h"
#include "targets/mcu/kernels/int8_layer.h"
#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/runtime_files.h"
#include "targets/mcu/tiles/tiled_conv.h"

/* a constant of the file, which may lie anywhere, as floats; NULL stays NULL */
static muc_status copy_floats(muc_mcu_lowering *l, const muc_tensor *tensor, const float **out)
{
    size_t count = tensor ? (size_t)tensor->bytes / muc_dtype_get(tensor->dtype)->block_bytes : 0;
    float *copy;

    *out = NULL;
    if (!tensor)
        return MUC_OK;
    if (muc_graph_is_shape(l->graph, tensor)) {
        *out = (const float *)(const void *)tensor->data;
        return MUC_OK;
    }
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, count, &copy));
    if (tensor->dtype == MUC_F32)
        memcpy(copy, tensor->data, (size_t)tensor->bytes);
    else
        for (size_t i = 0; i < count; i++)
            copy[i] = muc_f32_of_f16(muc_load_u16(tensor->data + 2 * i));
    *out = copy;
    return MUC_OK;
}

static bool is_real(const muc_tensor *tensor)
{
    return tensor->dtype == MUC_F32 || tensor->dtype == MUC_F16;
}

static bool is_constant(const muc_tensor *tensor)
{
    return tensor->kind == MUC_TENSOR_CONST && is_real(tensor) && tensor->data;
}

static bool takes_weights(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0), *bias = muc_mcu_input(l, node, 2);

    return is_real(x) && muc_mcu_is_static(l, x) && is_constant(muc_mcu_input(l, node, 1)) &&
           (!bias || is_constant(bias));
}

/* ---- bounds ---- */

/* relu or clip that alone reads what a layer computes, and becomes part of its step */
typedef struct bounds {
    const muc_node *node; /* NULL: none */
    const float *least, *most;
} bounds;

/* a bound of relu or clip; *known becomes false if it is there but no finite constant */
static muc_status find_bound(muc_mcu_lowering *l, const muc_node *node, uint32_t i,
                             const float **out, bool *known)
{
    const muc_tensor *tensor = muc_mcu_input(l, node, i);

    if (tensor && !is_constant(tensor))
        *known = false;
    if (*known)
        MUC_TRY(copy_floats(l, tensor, out));
    if (*out && !isfinite(**out))
        *known = false;
    return MUC_OK;
}

static muc_status find_bounds(muc_mcu_lowering *l, const muc_node *node, bounds *out)
{
    uint32_t input;
    const muc_node *reader = muc_graph_only_reader(l->graph, node->outputs[0], &input);
    bool known = true, at_zero;

    *out = (bounds){ NULL, NULL, NULL };
    if (!reader || !muc_op_bounds(reader->op, &at_zero))
        return MUC_OK;
    MUC_TRY(find_bound(l, reader, 1, &out->least, &known));
    MUC_TRY(find_bound(l, reader, 2, &out->most, &known));
    if (known)
        out->node = reader;
    else
        *out = (bounds){ NULL, NULL, NULL };
    return MUC_OK;
}

static bool is_relu(const bounds *limits)
{
    bool at_zero;

    return limits->node && muc_op_bounds(limits->node->op, &at_zero) && at_zero;
}

static void print_limit(muc_text *text, const float *limit, const char *none)
{
    if (limit)
        muc_text_add(text, "%af, ", (double)*limit);
    else
        muc_text_add(text, "%s", none);
}

/* ---- kernels ---- */

typedef struct kernel {
    const char *function, *descriptor, *element;
    size_t (*packed_elems)(const mur_conv_shape *shape);
    void (*pack)(const mur_conv_shape *shape, const float *weights, const float *bias,
                 float *packed);
    int32_t (*lead)(const mur_conv_shape *shape);
    size_t (*scratch_bytes)(const mur_conv_shape *shape); /* NULL: no such parameter */
    uint32_t bytes;                                       /* of an element */
} kernel;

/* by half and depthwise */
static const kernel kernels[2][2] = {
    { { "mur_conv_f32_run", "mur_conv_f32", "float", mur_conv_f32_packed_elems, mur_conv_f32_pack,
        mur_conv_f32_lead, NULL, sizeof(float) },
      { "mur_depthwise_f32_run", "mur_conv_f32", "float", mur_depthwise_f32_packed_elems,
        mur_depthwise_f32_pack, mur_conv_f32_lead, NULL, sizeof(float) } },
    { { "mur_mve_conv_f16", "mur_conv_f16", "uint16_t", mur_conv_f32_packed_elems,
        mur_conv_f32_pack, mur_mve_conv_f16_lead, mur_mve_conv_f16_scratch_bytes,
        sizeof(uint16_t) },
      { "mur_mve_depthwise_f16", "mur_conv_f16", "uint16_t", mur_depthwise_f32_packed_elems,
        mur_depthwise_f32_pack, mur_mve_depthwise_f16_lead, mur_mve_depthwise_f16_scratch_bytes,
        sizeof(uint16_t) } },
};

/* a layer's kernel and weights */
typedef struct packing {
    const kernel *kernel;
    const float *weights, *bias;
    bounds bounds;
} packing;

/* the descriptor `name` and its bounds */
static void describe(muc_mcu_lowering *l, const char *name, const mur_conv_shape *shape,
                     const packing *p, const char *packed)
{
    const bounds *limits = &p->bounds;
    bool limited = limits->least || limits->most;

    if (limited) {
        muc_text_add(&l->text, "static const float %s_limits[2] = { ", name);
        print_limit(&l->text, limits->least, "-1.0f / 0.0f, ");
        print_limit(&l->text, limits->most, "1.0f / 0.0f, ");
        muc_text_add(&l->text, "};\n");
    }
    muc_text_add(&l->text, "static const %s %s = {", p->kernel->descriptor, name);
    muc_mcu_print_shape(&l->text, shape);
    if (is_relu(limits))
        muc_text_add(&l->text, "\n    .relu = 1,");
    if (limited)
        muc_text_add(&l->text, "\n    .limits = %s_limits,", name);
    muc_text_add(&l->text, "\n    .packed = (const %s *)(const void *)%s,\n};\n\n",
                 p->kernel->element, packed);
}

static size_t part_bytes(const void *subject, const mur_conv_shape *shape)
{
    const packing *p = subject;

    return p->kernel->packed_elems(shape) * sizeof(float);
}

static bool pack_part(const void *subject, const mur_conv_shape *shape, uint32_t first,
                      void *packed)
{
    const packing *p = subject;
    size_t inputs = muc_mcu_conv_weights(shape);

    p->kernel->pack(shape, p->weights + first * inputs, p->bias ? p->bias + first : NULL, packed);
    return true;
}

/* one pixel by a matrix */
static bool is_vector(const mur_conv_shape *shape)
{
    return shape->groups == 1 && shape->in_h == 1 && shape->in_w == 1 && shape->kernel_h == 1 &&
           shape->kernel_w == 1 && shape->out_h == 1 && shape->out_w == 1;
}

static muc_status pack_whole(muc_mcu_lowering *l, const mur_conv_shape *shape, const packing *p,
                             uint32_t *packed)
{
    size_t count = p->kernel->packed_elems(shape), bytes = count * p->kernel->bytes;
    const uint8_t *zeros = muc_mcu_zeros(l, bytes);
    float *data;

    if (zeros)
        return muc_mcu_new_packed(l, "weights", zeros, bytes, packed);
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, count, &data));
    p->kernel->pack(shape, p->weights, p->bias, data);
    if (p->kernel->bytes == sizeof(uint16_t)) /* in place */
        for (size_t i = 0; i < count; i++)
            muc_store_u16((uint8_t *)data + 2 * i, muc_f16_of_f32(data[i]));
    return muc_mcu_new_packed(l, "weights", data, bytes, packed);
}

static muc_status write_whole(muc_mcu_lowering *l, const muc_node *node,
                              const mur_conv_shape *shape, const packing *p, uint64_t macs)
{
    static const char of_vector[] = "mur_linear_f32";
    const kernel *k = p->kernel;
    const char *function =
        k->bytes == sizeof(float) && is_vector(shape) && !p->bounds.least && !p->bounds.most
            ? of_vector
            : k->function;
    uint32_t packed;

    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    MUC_TRY(muc_mcu_begin_step(l, node, function));
    MUC_TRY(pack_whole(l, shape, p, &packed));
    if (function == of_vector) {
        MUC_TRY(muc_mcu_pass_constant(l, packed, MUC_F32));
        MUC_TRY(muc_mcu_pass_text(l, "%" PRId32 ", %" PRId32 ", %d", shape->in_c, shape->out_c,
                                  is_relu(&p->bounds)));
    } else {
        describe(l, l->step->name, shape, p, l->program->values[packed].name);
        MUC_TRY(muc_mcu_pass_text(l, "&%s", l->step->name));
    }
    MUC_TRY(muc_mcu_pass_input(l, 0));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    if (k->scratch_bytes)
        MUC_TRY(muc_mcu_pass_scratch(l, k->scratch_bytes(shape)));
    muc_mcu_may_overlap(l, 0, k->lead(shape) * (int64_t)k->bytes);
    return muc_mcu_end_step(l, macs);
}

static muc_status write_images(muc_mcu_lowering *l, const muc_node *node, uint32_t images,
                               const mur_conv_shape *s, const packing *p, uint64_t macs)
{
    uint32_t packed;

    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, p->kernel->function));
    MUC_TRY(muc_mcu_begin_function(l, node));
    MUC_TRY(pack_whole(l, s, p, &packed));
    describe(l, "layer", s, p, l->program->values[packed].name);
    return muc_mcu_end_images(
        l, &(muc_mcu_images){ .function = p->kernel->function,
                              .count = images,
                              .in_elements = (uint64_t)s->in_h * (uint64_t)s->in_pitch,
                              .out_elements = (uint64_t)s->out_h * (uint64_t)s->out_pitch,
                              .element_bytes = p->kernel->bytes,
                              .has_scratch = p->kernel->scratch_bytes,
                              .scratch_bytes =
                                  p->kernel->scratch_bytes ? p->kernel->scratch_bytes(s) : 0,
                              .overlaps = true,
                              .lead = p->kernel->lead(s),
                              .macs = macs });
}

static muc_status write_tiled(muc_mcu_lowering *l, const muc_node *node,
                              const muc_mcu_tiled_conv *conv, const packing *p, uint64_t macs)
{
    static const char in_tiles[] = "mur_tiles_conv_f32";
    uint32_t packed;

    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, in_tiles));
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, p->kernel->function));
    MUC_TRY(muc_mcu_begin_step(l, node, in_tiles));
    MUC_TRY(muc_mcu_use_conv_tiles(l, conv, "mur_tiles_piece_of_conv_f32",
                                   "mur_tiles_conv_f32_kernel", p->kernel->function, &packed));
    describe(l, l->step->name, &conv->shape, p, l->program->values[packed].name);
    MUC_TRY(muc_mcu_pass_text(l, "&%s_tiles", l->step->name));
    MUC_TRY(muc_mcu_pass_text(l, "&%s", l->step->name));
    MUC_TRY(muc_mcu_pass_text(l, "%s", p->kernel->function));
    MUC_TRY(muc_mcu_pass_input(l, 0));
    MUC_TRY(muc_mcu_pass_output(l, 0));
    MUC_TRY(muc_mcu_pass_text(l, "tile_memory"));
    muc_mcu_name_conv_values(l, packed);
    return muc_mcu_end_step(l, macs);
}

static bool is_depthwise(const mur_conv_shape *shape)
{
    return shape->groups > 1 && shape->groups == shape->in_c && shape->groups == shape->out_c;
}

static muc_status write_layer(muc_mcu_lowering *l, const muc_node *node, mur_conv_shape shape)
{
    const muc_mcu_tiled_conv *tiled;
    uint32_t images = muc_mcu_images_of(l, node, &shape);
    uint64_t macs = images * muc_mcu_conv_macs(&shape);
    muc_node *bounded;
    packing *p;

    muc_mcu_flatten_conv(&shape);
    images = muc_mcu_join_images(&shape, images);
    MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, 1, &p));
    p->kernel = &kernels[muc_mcu_input(l, node, 0)->dtype == MUC_F16][is_depthwise(&shape)];
    MUC_TRY(copy_floats(l, muc_mcu_input(l, node, 1), &p->weights));
    MUC_TRY(copy_floats(l, muc_mcu_input(l, node, 2), &p->bias));
    MUC_TRY(find_bounds(l, node, &p->bounds));
    if (p->bounds.node) {
        MUC_TRY(MUC_ARENA_NEW(l->ctx, &l->program->arena, 1, &bounded));
        *bounded = *node;
        bounded->name = p->bounds.node->name;
        bounded->outputs = p->bounds.node->outputs;
        node = bounded;
    }
    if (p->kernel->bytes == sizeof(float))
        l->program->uses_f32 = true;
    else
        l->program->uses_f16 = true;
    if (images > 1)
        return write_images(l, node, images, &shape, p, macs);
    MUC_TRY(muc_mcu_find_conv_tiles(
        l, node, &shape, &(muc_mcu_conv_packer){ p, sizeof(float), part_bytes, pack_part, 0 },
        &tiled));
    return tiled ? write_tiled(l, node, tiled, p, macs) : write_whole(l, node, &shape, p, macs);
}

bool muc_mcu_takes_conv_f32(const muc_mcu_lowering *l, const muc_node *node)
{
    const muc_tensor *x = muc_mcu_input(l, node, 0);
    int64_t groups = muc_node_integer_or(node, MUC_KEY_GROUPS, 1);

    return takes_weights(l, node) && x->rank == 4 && muc_mcu_takes_images(l, x) &&
           muc_node_integer_or(node, MUC_KEY_CHANNELS_LAST, 0) &&
           (groups == 1 || !muc_mcu_has_tiles(l->program->machine) ||
            (groups == muc_mcu_dim(l, x, 3) &&
             groups == muc_mcu_dim(l, muc_mcu_output(l, node, 0), 3)));
}

muc_status muc_mcu_write_conv_f32(muc_mcu_lowering *l, const muc_node *node)
{
    return write_layer(l, node, muc_mcu_conv_shape(l, node));
}

bool muc_mcu_takes_linear_f32(const muc_mcu_lowering *l, const muc_node *node)
{
    return takes_weights(l, node) && muc_mcu_input(l, node, 0)->rank > 0;
}

muc_status muc_mcu_write_linear_f32(muc_mcu_lowering *l, const muc_node *node)
{
    return write_layer(l, node, muc_mcu_linear_shape(l, node));
}
