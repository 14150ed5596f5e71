/* hf_config.h - config.json of a Hugging Face folder. */
#ifndef MUC_HF_CONFIG_H
#define MUC_HF_CONFIG_H

#include "formats/checkpoint.h"

/* Fills checkpoint->config from the file's bytes. What our graph does not do (another
 * architecture, sliding windows, experts, other RoPE scalings or activations, ...) is
 * MUC_UNSUPPORTED by name. Sizes are checked by muc_checkpoint_finish. */
muc_status muc_hf_read_config(muc_context *ctx, muc_bytes bytes, muc_checkpoint *checkpoint);

/* What a family calls a number that all of them have; NULL: it has no such key. */
typedef struct muc_hf_keys {
    const char *dim, *layers, *ffn_dim, *heads, *kv_heads, *context, *older_context, *epsilon;
    const char *activation;
} muc_hf_keys;

const muc_hf_keys *muc_hf_keys_of(muc_family family);

#endif
