/* prepare_mcu.c - the passes that a network goes through before C code is made of it. */
#include "passes/integer/fold_qdq.h"
#include "passes/integer/fuse_requantize.h"
#include "passes/integer/shift_unsigned.h"
#include "passes/layout/idle_channels.h"
#include "passes/layout/pixel_windows.h"
#include "passes/simplify/canonical.h"
#include "passes/simplify/fold.h"
#include "passes/simplify/patterns.h"
#include "targets/mcu/lower/lower_nodes.h"
#include "targets/target.h"

muc_status muc_prepare_mcu(muc_context *ctx, muc_graph *graph)
{
    /* ONNX's operators on bytes become pairs of steps, as most exporters write them */
    MUC_TRY(muc_split_qlinear(ctx, graph));
    /* operators that exporters wrote out in steps stand between integers as one */
    MUC_TRY(muc_recognise(ctx, graph));
    /* one form of integers: tensors that carry quantization, of i8 where they were u8 */
    MUC_TRY(muc_fold_quantization(ctx, graph));
    MUC_TRY(muc_shift_quantized(ctx, graph));
    /* what stayed real is computed in f32: its weights, and 16-bit floats and f64 */
    MUC_TRY(muc_dequantize_constants(ctx, graph));
    MUC_TRY(muc_compute_in_f32(ctx, graph));
    /* what constants alone decide is computed here */
    MUC_TRY(muc_fold(ctx, graph));
    /* patterns and fusion look for neighbours: nothing idle stands between them */
    MUC_TRY(muc_canonicalise(ctx, graph));
    MUC_TRY(muc_recognise(ctx, graph));
    MUC_TRY(muc_fuse(ctx, graph));
    /* QuantLib's sums of 32 bits go into what requantizes them, which alone can give i8 for u8 */
    MUC_TRY(muc_fuse_requantizations(ctx, graph));
    MUC_TRY(muc_shift_requantized(ctx, graph));
    /* again: a lookup that shifts and the lookup beside it are one table */
    MUC_TRY(muc_fuse_requantizations(ctx, graph));
    /* kernels read channels last, and windows over two dimensions; no kernel spreads in groups */
    MUC_TRY(muc_split_groups(ctx, graph));
    MUC_TRY(muc_lay_channels_last(ctx, graph));
    MUC_TRY(muc_lay_windows(ctx, graph));
    /* what training has left dead takes no time */
    MUC_TRY(muc_drop_idle_channels(ctx, graph));
    /* again: transposes and views that met cancel out */
    MUC_TRY(muc_canonicalise(ctx, graph));
    /* again: norms over channels have their axis last only now */
    return muc_recognise(ctx, graph);
}

/* the same for the code and for what it is compared with */
muc_status muc_mcu_prepare(muc_context *ctx, muc_graph *graph, muc_mcu_core core, bool has_tiles)
{
    MUC_TRY(muc_prepare_mcu(ctx, graph));
    return has_tiles ? MUC_OK : muc_mcu_keep_halves(ctx, graph, core);
}
