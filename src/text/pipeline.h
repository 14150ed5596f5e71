/* pipeline.h - what happens to text before and after merging, as tokenizer.json says it. */
#ifndef MUC_TEXT_PIPELINE_H
#define MUC_TEXT_PIPELINE_H

#include "base/json.h"
#include "text/vocabulary.h"

/* Sets alphabet, prefix, nfc and rules of the vocabulary from the parts "normalizer",
 * "pre_tokenizer" and "decoder" of root. Strings of the vocabulary are arena-owned afterwards. What
 * the compiled form cannot say is refused by name with MUC_UNSUPPORTED. */
muc_status muc_pipeline_read(muc_context *ctx, const json_t *root, muc_arena *arena,
                             muc_vocabulary *out);

#endif
