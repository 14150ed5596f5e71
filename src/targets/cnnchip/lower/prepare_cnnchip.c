/* prepare_cnnchip.c - the passes that a network goes through before it is lowered for the chip. */
#include "passes/integer/fold_qdq.h"
#include "passes/simplify/batch.h"
#include "passes/simplify/canonical.h"
#include "passes/simplify/fold.h"
#include "targets/target.h"

/* that a network may make of its constants: FILTER holds 4 GiB */
#define MOST_CONSTANT_BYTES ((uint64_t)2 << 30)

muc_status muc_prepare_cnnchip(muc_context *ctx, muc_graph *graph)
{
    uint32_t images;

    /* ONNX's operators on bytes become pairs of steps, as most exporters write them */
    MUC_TRY(muc_split_qlinear(ctx, graph));
    /* one form of integers: tensors that carry quantization */
    MUC_TRY(muc_fold_quantization(ctx, graph));
    /* what stayed real has real weights */
    MUC_TRY(muc_dequantize_constants(ctx, graph));
    /* the chip computes no constants */
    MUC_TRY(muc_fold_up_to(ctx, graph, MOST_CONSTANT_BYTES));
    /* runs take one image at a time */
    MUC_TRY(muc_take_one_image(ctx, graph, &images));
    /* fusion looks for neighbours; norms stay, for the DSP stage does them */
    MUC_TRY(muc_canonicalise(ctx, graph));
    MUC_TRY(muc_fuse_but_norms(ctx, graph));
    /* the chip's frames have channels last */
    return muc_lay_channels_last(ctx, graph);
}
