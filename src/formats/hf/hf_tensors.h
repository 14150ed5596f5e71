/* hf_tensors.h - the names and orders that families give their tensors, to ours and back. */
#ifndef MUC_HF_TENSORS_H
#define MUC_HF_TENSORS_H

#include "formats/format.h"

/* Gives the tensors of a folder our names and orders by the rows of hf_tensors.def: what is stored
 * otherwise is parted, transposed or reordered in copies of the arena; causal masks go. Names
 * without a row stay, but where a family names every tensor otherwise they are MUC_UNSUPPORTED.
 * config must be there. Fails with MUC_MALFORMED for a shape that cannot be parted. */
muc_status muc_hf_rename(muc_context *ctx, muc_checkpoint *checkpoint);

/* Where a family stores a tensor of llama_tensors.def in a row of its own or, without one, under
 * our name: the pattern, with %u for a layer; *less_one: a gain is stored less one. NULL: it is
 * stored together with others, or in another order. */
const char *muc_hf_stored_name(const muc_model_config *config, unsigned id, bool *less_one);

/* What a tensor of our name is called in a folder that muc writes: as the family stores it, or,
 * where the family calls all of its tensors otherwise, as we do, which muc_hf_rename takes too;
 * `name` may be another. Arena-owned; *less_one as above. NULL where muc_hf_stored_name gives it.
 */
muc_status muc_hf_written_name(muc_context *ctx, muc_arena *arena, const muc_model_config *config,
                               const char *name, const char **out, bool *less_one);
/* Whether every tensor can be written so. */
bool muc_hf_stores_whole(const muc_model_config *config);

/* Whether files leave a tensor out, because all its elements are 1: gains of Llama 4's norms of
 * heads.
 */
bool muc_hf_is_left_out(const muc_model_config *config, unsigned id);

/* The inverse for a GPT-2, for writing: views of our names (name, dtype, rank, dims, bytes, data)
 * to those of GPT2LMHeadModel, arena-owned. Types are of one element a block. */
muc_status muc_hf_gpt2_store(muc_context *ctx, const muc_model_config *config,
                             const muc_tensor_view *views, size_t count, muc_arena *arena,
                             muc_tensor_view **out, size_t *out_count);

#endif
