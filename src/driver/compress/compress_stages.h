/* compress_stages.h - what the stages of muc compress share. */
#ifndef MUC_DRIVER_COMPRESS_H
#define MUC_DRIVER_COMPRESS_H

#include "base/output_folder.h"
#include "run/opened_model.h"
#include "muc/compress.h"
#include "passes/weights/round_lowbit.h"

/* Writes model's folder (tensors: those of the checkpoint, or what became of them) with its
 * matrices as quantized; formats go to config.json. The tokenizer's file is copied if the model
 * came with one, or was given one. check and arg: as of muc_folder_commit. */
muc_status muc_compress_write(muc_context *ctx, const muc_model *model,
                              const muc_tensor_view *tensors, size_t tensor_count,
                              const muc_graph *graph, const muc_lowbit_options *formats,
                              const muc_lowbit_result *quantized, const char *out_path,
                              muc_folder_check *check, void *arg);

/* What training leaves. */
typedef struct muc_compress_trained {
    muc_arena *arena;         /* the caller's, which owns the rest */
    muc_tensor_view *tensors; /* float32, of the checkpoint's names */
    size_t tensor_count;
    muc_lowbit_result quantized; /* without error and energy */
    uint64_t tokens;             /* that were fed */
} muc_compress_trained;

/* Trains options->steps steps towards the formats of `rounded`, on options->data, or without it on
 * texts that the teacher writes: the model as it was given, what model was pruned from, or another.
 * out->arena is set, all else zero. Fails with MUC_UNSUPPORTED in a build without OpenBLAS. */
muc_status muc_compress_train(muc_context *ctx, const muc_model *model, const muc_model *teacher,
                              const muc_graph *graph, const muc_compress_options *options,
                              const muc_lowbit_result *rounded, muc_compress_trained *out);

#endif
