/* hybrid_decoder.h - a decoder's matrices and caches become int8; what is computed between them
 * stays binary32, so that nothing has to be calibrated. Arithmetic: runtime/include/mur_decoder.h.
 */
#ifndef MUC_HYBRID_H
#define MUC_HYBRID_H

#include "graph/graph.h"

typedef struct muc_hybrid_result {
    double error, energy; /* sums of (w - v)^2 and w^2 */
} muc_hybrid_result;

/* What matrices become: any int8 numbers, or those of BlockDialect's blocks (muc_bd_row_levels); of
 * a graph whose constants have no data, for a plan, types and shapes alone. */
typedef enum muc_hybrid_levels {
    MUC_HYBRID_INT8,
    MUC_HYBRID_BLOCKS,
    MUC_HYBRID_SHAPES
} muc_hybrid_levels;

/* Changes the graph in place: every constant matrix that a LINEAR multiplies by or an EMBED looks
 * up becomes i8 with a scale a row, v = scale * q, q in -127..127 (a row of 0 and one magnitude is
 * kept exactly, with q in -1..1), unless it came so; the caches of
 * every ATTENTION become i8 with new states "NAME.scales", f32 [context, kv_heads], after them. The
 * graph owns the new bytes; all other constants of real numbers become f32. Fails with
 * MUC_UNSUPPORTED on a weight that is not finite or a matrix without data. */
muc_status muc_hybrid_quantize(muc_context *ctx, muc_graph *graph, muc_hybrid_levels levels,
                               muc_hybrid_result *out);

#endif
