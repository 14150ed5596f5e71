/* target.h - what the driver knows of a target: a row of targets.def, and the functions that are
 * named after it. */
#ifndef MUC_DRIVER_TARGET_H
#define MUC_DRIVER_TARGET_H

#include "driver/model.h"
#include "muc/compile.h"

/* muc_compile of a model of a kind that the target takes. out_path NULL: a network is planned, and
 * nothing is written or reported. */
typedef muc_status muc_target_compile(muc_context *ctx, const muc_model *model,
                                      const muc_compile_options *options, const char *out_path,
                                      muc_report **out);

/* Each is defined in a file of its own; a row of targets.def without one here does not compile. */
muc_target_compile muc_compile_uthinker; /* compile.c */
muc_target_compile muc_compile_mcu;      /* compile_mcu.c */
muc_target_compile muc_compile_cnnchip;  /* compile_cnnchip.c */

typedef struct muc_target {
    const char *name, *meaning;
    unsigned takes; /* bit k: models of muc_model_kind k */
    muc_status (*precheck)(muc_context *ctx, const char *path); /* before the work */
    muc_target_compile *compile;
} muc_target;

/* Before a network is calibrated for int8: refuses what muc_compile will refuse whatever the
 * samples are, an output that may not be written, operators that the target lacks or memories that
 * are too small, from shapes. keep: of muc_network_to_int8. */
muc_status muc_compile_precheck(muc_context *ctx, const muc_model *model,
                                const muc_compile_options *options, const char *keep,
                                const char *out_path);

/* NULL after the last. */
const muc_target *muc_target_get(size_t i);

#endif
