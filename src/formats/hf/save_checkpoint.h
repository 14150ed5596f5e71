/* save_checkpoint.h - writes what hf.c reads. */
#ifndef MUC_HF_SAVE_H
#define MUC_HF_SAVE_H

#include "base/text.h"
#include "formats/format.h"

/* config.json of a configuration. members: further ones, each as "\"key\": value,\n", or "". Heads
 * and neurons are lists where layers differ in them. */
void muc_hf_add_config(const muc_model_config *config, const char *members, muc_text *text);

/* A safetensors file of views (name, dtype, rank, dims, bytes, data; nothing else counts), in
 * their order. Types are F32, F16, BF16, I8 and U8. */
muc_status muc_safetensors_print(muc_context *ctx, const muc_tensor_view *views, size_t count,
                                 muc_text *text);
/* What comes before the tensors' bytes, which follow in this order without gaps. */
muc_status muc_safetensors_print_head(muc_context *ctx, const muc_tensor_view *views, size_t count,
                                      muc_text *text);

#endif
