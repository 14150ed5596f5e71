/* hf_lowbit.h - matrices in few bits as they lie in a Hugging Face folder.
 *
 * A matrix NAME [n][k] is I8 [n, k] (int8) or U8 [n, bytes of a row's indices], and beside it lies
 * NAME_scale, F16 [n], or NAME_codebook, F16 [n, groups, 4]. config.json's "quantization_config"
 * names the format of the embedding and the head, and that of all other matrices, and lists under
 * "finer" those that have int4 where the others have int2; rows that are not a whole number of
 * bytes are int8.
 */
#ifndef MUC_HF_LOWBIT_H
#define MUC_HF_LOWBIT_H

#include "formats/format.h"

#define MUC_HF_LOWBIT_METHOD "muc"
#define MUC_HF_FINER "finer"
#define MUC_HF_SCALE "_scale"
#define MUC_HF_CODEBOOK "_codebook"

/* Whether a tensor of this name has the embedding's format. */
bool muc_hf_is_embedding(const char *name);

/* Of a checkpoint whose formats config.json told: matrices with scales become i8 with scales, those
 * with codebooks f16; what lay beside them goes. Fails with MUC_MALFORMED where shapes do not
 * belong together, or a scale is not above 0 and finite. */
muc_status muc_hf_unpack(muc_context *ctx, muc_checkpoint *checkpoint);

#endif
