/* gguf_config.h - a GGUF file's metadata to a model's configuration. */
#ifndef MUC_GGUF_CONFIG_H
#define MUC_GGUF_CONFIG_H

#include "formats/gguf/gguf.h"

/* Fills config from the metadata, and from tensors where they say it (vocabulary, biases, factors
 * of RoPE). What no graph of ours does is MUC_UNSUPPORTED by name. Sizes are checked by
 * muc_checkpoint_check_config. */
muc_status muc_gguf_read_config(const muc_gguf *gguf, muc_checkpoint *checkpoint);

/* Whether a tensor of this name is a part of the configuration alone: factors of RoPE. */
bool muc_gguf_is_rope(const char *name);

#endif
