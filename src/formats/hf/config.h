/* config.h - config.json of a Hugging Face folder. */
#ifndef MUC_HF_CONFIG_H
#define MUC_HF_CONFIG_H

#include "formats/checkpoint.h"

/* Fills checkpoint->config from the file's bytes. What the Llama graph does not do (another
 * architecture, sliding windows, experts, other RoPE scalings or activations, ...) is
 * MUC_UNSUPPORTED by name. Sizes are checked by muc_checkpoint_settle. */
muc_status muc_hf_read_config(muc_context *ctx, muc_bytes bytes, muc_checkpoint *checkpoint);

#endif
