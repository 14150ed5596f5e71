/* image_batch.c - layers of several images: a function that calls the kernel of one for each. */
#include "targets/mcu/kernels/image_batch.h"

#include <inttypes.h>

#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/runtime_files.h"
#include "targets/mcu/tiles/tiles.h"

static uint64_t product(int32_t a, int32_t b, int32_t c)
{
    return (uint64_t)a * (uint64_t)b * (uint64_t)c;
}

bool muc_mcu_takes_images(const muc_mcu_lowering *l, const muc_tensor *x)
{
    return muc_mcu_is_static(l, x) &&
           (muc_mcu_dim(l, x, 0) == 1 ||
            (muc_mcu_dim(l, x, 0) > 1 && !muc_mcu_has_tiles(l->program->machine)));
}

uint32_t muc_mcu_images_of(const muc_mcu_lowering *l, const muc_node *node,
                           const mur_conv_shape *shape)
{
    return (uint32_t)(muc_mcu_most_elements(l, muc_mcu_output(l, node, 0)) /
                      product(shape->out_h, shape->out_w, shape->out_c));
}

uint32_t muc_mcu_join_images(mur_conv_shape *shape, uint32_t images)
{
    if (shape->in_h != 1 || shape->out_h != 1 || shape->kernel_h != 1 || shape->kernel_w != 1 ||
        shape->stride_w != 1 || shape->pad_top || shape->pad_left || shape->in_w != shape->out_w ||
        (uint64_t)images * (uint32_t)shape->in_w > INT32_MAX)
        return images;
    shape->in_w *= (int32_t)images;
    shape->out_w = shape->in_w;
    shape->in_pitch *= (int32_t)images;
    shape->out_pitch *= (int32_t)images;
    return 1;
}

/* What is written of an image must lie below all that is read of it and of those after it. */
static int64_t lead_of(const muc_mcu_images *call)
{
    int64_t lead = call->lead > 0 ? call->lead : 0;

    if (call->out_elements > call->in_elements)
        lead += (int64_t)(call->count - 1) * (int64_t)(call->out_elements - call->in_elements);
    return lead * call->element_bytes;
}

muc_status muc_mcu_end_images(muc_mcu_lowering *l, const muc_mcu_images *call)
{
    muc_text_add(&l->text,
                 "    for (uint32_t i = 0; i < %" PRIu32 "u; i++)\n"
                 "        %s(&layer, &a[i * %" PRIu64 "u], &y[i * %" PRIu64 "u]%s);\n",
                 call->count, call->function, call->in_elements, call->out_elements,
                 !call->has_scratch    ? ""
                 : call->scratch_bytes ? ", scratch"
                                       : ", NULL");
    MUC_TRY(muc_mcu_end_function(l, call->scratch_bytes, call->macs));
    if (call->overlaps)
        muc_mcu_may_overlap(l, 0, lead_of(call));
    return MUC_OK;
}

muc_status muc_mcu_write_conv_images(muc_mcu_lowering *l, const muc_node *node, uint32_t images,
                                     const muc_mcu_kernel *kernel, const mur_conv_s8 *layer,
                                     const mur_conv_plain *plain)
{
    const mur_conv_shape *s = &layer->shape;
    int32_t lead = 0;
    muc_mcu_images call = {
        .function = kernel->function,
        .count = images,
        .in_elements = product(s->in_h, s->in_w, s->in_c),
        .out_elements = product(s->out_h, s->out_w, s->out_c),
        .element_bytes = 1,
        .has_scratch = true,
        .scratch_bytes = kernel->scratch_bytes(layer),
        .macs = images * muc_mcu_conv_macs(s),
    };
    uint32_t packed;

    call.overlaps = muc_mcu_conv_lead(kernel, s, &lead);
    call.lead = lead;
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, kernel->function));
    MUC_TRY(muc_mcu_begin_function(l, node));
    MUC_TRY(muc_mcu_pack_conv(l, kernel, layer, plain, &packed));
    muc_text_add(&l->text, "    static const mur_conv_s8 layer = {");
    muc_mcu_print_conv(&l->text, layer, l->program->values[packed].name);
    muc_text_add(&l->text, "\n    };\n\n");
    return muc_mcu_end_images(l, &call);
}

muc_status muc_mcu_write_pool_images(muc_mcu_lowering *l, const muc_node *node,
                                     const char *function, const mur_pool_s8 *layer)
{
    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, function));
    MUC_TRY(muc_mcu_begin_function(l, node));
    muc_text_add(&l->text, "    static const mur_pool_s8 layer = {");
    muc_mcu_print_pool(&l->text, layer);
    muc_text_add(&l->text, "\n    };\n\n");
    return muc_mcu_end_images(
        l, &(muc_mcu_images){ .function = function,
                              .count = muc_mcu_dim(l, muc_mcu_input(l, node, 0), 0),
                              .in_elements = product(layer->in_h, layer->in_w, layer->c),
                              .out_elements = product(layer->out_h, layer->out_w, layer->c),
                              .element_bytes = 1 });
}
