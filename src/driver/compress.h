/* compress.h - what the stages of muc compress share. */
#ifndef MUC_DRIVER_COMPRESS_H
#define MUC_DRIVER_COMPRESS_H

#include "driver/model.h"
#include "passes/lowbit.h"

/* Writes model's folder with its matrices as quantized; formats go to config.json. The tokenizer's
 * file is copied if the model came with one. */
muc_status muc_compress_write(muc_context *ctx, const muc_model *model, const muc_graph *graph,
                              const muc_lowbit_options *formats, const muc_lowbit_result *quantized,
                              const char *tokenizer_path, const char *out_path);

#endif
