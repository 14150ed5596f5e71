/* compile_decoder.h - a checkpoint becomes C for a microcontroller: int8 matrices and caches. */
#ifndef MUC_MCU_COMPILE_DECODER_H
#define MUC_MCU_COMPILE_DECODER_H

#include "run/opened_model.h"
#include "graph/graph.h"
#include "muc/compile.h"
#include "passes/weights/hybrid_decoder.h"
#include "targets/target.h"

/* muc_compile for target mcu: out_path becomes a folder. */
muc_status muc_compile_decoder(muc_context *ctx, const muc_model *model,
                               const muc_compile_options *options, const char *out_path,
                               muc_report **out);

/* muc_fit_mcu of a checkpoint. */
muc_status muc_fit_decoder(muc_context *ctx, const muc_model *model,
                           const muc_compile_options *options, muc_target_need *out);

/* The graph of a checkpoint that a program is made of, or with levels NULL that in float32; the
 * logits are those of a call's last token, "head". */
muc_status muc_decoder_graph(muc_context *ctx, const muc_model *model, uint32_t context,
                             const muc_hybrid_levels *levels, muc_graph **out);

#endif
