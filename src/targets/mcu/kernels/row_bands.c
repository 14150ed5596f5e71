/* row_bands.c - depthwise layers in bands of rows: how many, and a function that calls the kernel
 * for each. */
#include "targets/mcu/kernels/row_bands.h"

#include <inttypes.h>

#include "targets/mcu/loops/loop_nest.h"
#include "targets/mcu/program/runtime_files.h"

static int64_t in_bytes(const mur_conv_shape *s)
{
    return (int64_t)s->in_h * s->in_pitch;
}

static int64_t out_bytes(const mur_conv_shape *s)
{
    return (int64_t)s->out_h * s->out_pitch;
}

/* output rows [first, end) of a layer */
static void cut_band(const mur_conv_s8 *layer, int32_t first, int32_t end, muc_mcu_bands *bands)
{
    const mur_conv_shape *whole = &layer->shape;
    int32_t top = first * whole->stride_h - whole->pad_top, skipped = top > 0 ? top : 0;
    mur_conv_s8 *band = &bands->layer[bands->count];

    *band = *layer;
    band->shape.out_h = end - first;
    band->shape.in_h = whole->in_h - skipped;
    band->shape.pad_top = (uint16_t)(skipped - top);
    bands->in[bands->count] = (int64_t)skipped * whole->in_pitch;
    bands->out[bands->count] = (int64_t)first * whole->out_pitch;
    bands->count++;
}

/* What a band writes must lie below all that it reads and those after it do; but the first may
 * overwrite its input as a whole image may, if the others keep that without a lead. */
static int64_t lead_of(const muc_mcu_kernel *kernel, const mur_conv_shape *whole,
                       const muc_mcu_bands *bands)
{
    int64_t most = 0, later = 0;
    int32_t lead;

    for (uint32_t i = 0; i < bands->count; i++) {
        int64_t ahead = bands->out[i] + out_bytes(&bands->layer[i].shape) - bands->in[i];

        most = ahead > most ? ahead : most;
        later = i > 0 && ahead > later ? ahead : later;
    }
    return later == 0 && muc_mcu_conv_lead(kernel, whole, &lead) ? lead : most;
}

static bool cut(const muc_mcu_kernel *kernel, const mur_conv_s8 *layer, const mur_conv_plain *plain,
                int32_t rows, muc_mcu_bands *bands)
{
    bands->count = 0;
    bands->scratch_bytes = 0;
    for (int32_t first = 0; first < layer->shape.out_h; first += rows) {
        const mur_conv_s8 *band = &bands->layer[bands->count];
        uint64_t scratch;

        cut_band(layer, first,
                 first + rows < layer->shape.out_h ? first + rows : layer->shape.out_h, bands);
        if (band->shape.in_h <= 0 || !kernel->fits(band, plain))
            return false;
        scratch = kernel->scratch_bytes(band);
        bands->scratch_bytes = scratch > bands->scratch_bytes ? scratch : bands->scratch_bytes;
    }
    bands->lead = lead_of(kernel, &layer->shape, bands);
    return true;
}

static bool is_small(const muc_mcu_bands *bands, const mur_conv_shape *whole)
{
    int64_t in = in_bytes(whole), out = out_bytes(whole);
    int64_t both = bands->lead + in > out ? bands->lead + in : out;

    both += (int64_t)bands->scratch_bytes;
    return both <= in + out || (bands->count == 1 && both <= MUR_CONV_SMALL);
}

void muc_mcu_find_bands(const muc_mcu_kernel *kernel, const mur_conv_s8 *layer,
                        const mur_conv_plain *plain, muc_mcu_bands *bands)
{
    const mur_conv_shape *s = &layer->shape;

    for (int32_t count = 1; muc_mcu_is_depthwise(kernel) && count <= MUC_MCU_MOST_BANDS; count++)
        if (cut(kernel, layer, plain, (s->out_h + count - 1) / count, bands) && is_small(bands, s))
            return;
    bands->count = 1;
}

muc_status muc_mcu_write_bands(muc_mcu_lowering *l, const muc_node *node,
                               const muc_mcu_kernel *kernel, const muc_mcu_bands *bands,
                               const mur_conv_plain *plain)
{
    uint64_t macs = 0;
    uint32_t packed;

    MUC_TRY(muc_mcu_need_function(l->ctx, l->program, kernel->function));
    MUC_TRY(muc_mcu_begin_function(l, node));
    MUC_TRY(muc_mcu_pack_conv(l, kernel, &bands->layer[0], plain, &packed));
    for (uint32_t i = 0; i < bands->count; i++) {
        muc_text_add(&l->text, "    static const mur_conv_s8 band_%" PRIu32 " = {", i);
        muc_mcu_print_conv(&l->text, &bands->layer[i], l->program->values[packed].name);
        muc_text_add(&l->text, "\n    };\n");
        macs += muc_mcu_conv_macs(&bands->layer[i].shape);
    }
    muc_text_add(&l->text, "\n");
    for (uint32_t i = 0; i < bands->count; i++)
        muc_text_add(&l->text,
                     "    %s(&band_%" PRIu32 ", &a[%" PRId64 "], &y[%" PRId64 "], scratch);\n",
                     kernel->function, i, bands->in[i], bands->out[i]);
    MUC_TRY(muc_mcu_end_function(l, bands->scratch_bytes, macs));
    muc_mcu_may_overlap(l, 0, bands->lead);
    return MUC_OK;
}
