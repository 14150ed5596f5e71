/* chosen_target.h - the target that a model is compiled for. */
#ifndef MUC_DRIVER_COMPILE_H
#define MUC_DRIVER_COMPILE_H

#include "muc/compile.h"
#include "run/network_int8.h"
#include "targets/target.h"

bool muc_target_takes(const muc_target *target, const muc_model *model);
/* The target that the options name; if they name none, the first that takes the model and, where
 * the machine is a built-in one, has it. Fails with MUC_USAGE if there is none, MUC_UNSUPPORTED if
 * it does not take the model. */
muc_status muc_target_find(muc_context *ctx, const muc_model *model,
                           const muc_compile_options *options, const muc_target **out);

/* A copy of a network with shapes alone of its large constants, as int8 if a guess is given, for a
 * target to plan; its graph is for the caller to free, and NULL if all constants have fewer than
 * least_bytes. Borrows the rest from the model. */
muc_status muc_outline_model(muc_context *ctx, const muc_model *model, uint64_t least_bytes,
                             const muc_int8_guess *int8, muc_model *out);

/* Before a network is calibrated for int8: refuses what muc_compile will refuse whatever the
 * samples are, an output that may not be written, operators that the target lacks or memories that
 * are too small, from shapes. keep: of muc_network_to_int8. */
muc_status muc_compile_precheck(muc_context *ctx, const muc_model *model,
                                const muc_compile_options *options, const char *keep,
                                const char *out_path);

#endif
