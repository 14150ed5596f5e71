/* compile_decoder.h - a checkpoint becomes C for a microcontroller: int8 matrices and caches. */
#ifndef MUC_DRIVER_COMPILE_DECODER_H
#define MUC_DRIVER_COMPILE_DECODER_H

#include "driver/model.h"
#include "muc/compile.h"

/* muc_compile for target mcu: out_path becomes a folder. */
muc_status muc_compile_decoder(muc_context *ctx, const muc_model *model,
                               const muc_compile_options *options, const char *out_path,
                               muc_report **out);

#endif
