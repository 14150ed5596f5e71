/* gpt2.h - GPT-2's names and orders of tensors, to ours and back. */
#ifndef MUC_HF_GPT2_H
#define MUC_HF_GPT2_H

#include "formats/format.h"

/* Gives the tensors of a GPT-2 folder our names and orders: Conv1D's matrices are transposed and
 * c_attn is parted, in copies of the arena; causal masks go. Tensors that have our names already
 * stay. config must be there. Fails with MUC_UNSUPPORTED for a name that GPT-2 does not have,
 * MUC_MALFORMED for a shape that cannot be parted. */
muc_status muc_hf_gpt2_read(muc_context *ctx, muc_checkpoint *checkpoint);

/* The inverse, for writing: views of our names (name, dtype, rank, dims, bytes, data) to those of
 * GPT2LMHeadModel, arena-owned. Types are of one element a block. */
muc_status muc_hf_gpt2_store(muc_context *ctx, const muc_model_config *config,
                             const muc_tensor_view *views, size_t count, muc_arena *arena,
                             muc_tensor_view **out, size_t *out_count);

#endif
