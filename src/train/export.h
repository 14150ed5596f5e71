/* export.h - between a Hugging Face folder and the flat buffer. */
#ifndef MUC_TRAIN_EXPORT_H
#define MUC_TRAIN_EXPORT_H

#include "train/params.h"
#include "train/train_real.h"

/* Fills weights, [shape->elements], from a checkpoint of the same configuration. */
muc_status muc_train_import(muc_context *ctx, const muc_train_shape *shape,
                            const muc_checkpoint *checkpoint, muc_scalar *weights);

/* Writes config.json and model.safetensors (F32) to folder, which is made if need be. A tokenizer
 * is the caller's to copy. */
muc_status muc_train_export(muc_context *ctx, const muc_train_shape *shape,
                            const muc_scalar *weights, const char *folder);

#endif
