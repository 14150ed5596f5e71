/* chip_integers.h - a graph of int8 in the arithmetic of the CNN chip: the golden model of
 * src/targets/cnnchip/SPEC.md section 4, which knows nothing of instructions.
 *
 * Sums of products are those of TFLite; a result is rounded once, halves to even, behind factors in
 * binary32, where TFLite has fixed-point multipliers.
 */
#ifndef MUC_REF_CHIP_INTEGERS_H
#define MUC_REF_CHIP_INTEGERS_H

#include "ref/ref.h"

/* As muc_ref_open; the nodes marked in on_chip [node_count], borrowed, are computed as the chip
 * does, the others as without it. */
muc_status muc_ref_open_chip(muc_context *ctx, muc_graph *graph, const bool *on_chip,
                             muc_ref **out);

#endif
