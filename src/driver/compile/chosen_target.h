/* chosen_target.h - the target that a model is compiled for. */
#ifndef MUC_DRIVER_COMPILE_H
#define MUC_DRIVER_COMPILE_H

#include "muc/compile.h"
#include "targets/target.h"

/* Before a network is calibrated for int8: refuses what muc_compile will refuse whatever the
 * samples are, an output that may not be written, operators that the target lacks or memories that
 * are too small, from shapes. keep: of muc_network_to_int8. */
muc_status muc_compile_precheck(muc_context *ctx, const muc_model *model,
                                const muc_compile_options *options, const char *keep,
                                const char *out_path);

#endif
