/* muc/synth.h - checkpoints of known shapes with random weights, to try and to time what is to run
 * on models that are not at hand. */
#ifndef MUC_SYNTH_H
#define MUC_SYNTH_H

#include "muc/report.h"

MUC_API_BEGIN

typedef struct muc_synth_options {
    const char *shape; /* a name of driver/synth/shapes.def, or the path of a config.json */
    uint64_t seed;
    uint32_t layers; /* in place of the shape's; 0: as many as it has */
} muc_synth_options;

/* Writes a Hugging Face folder: config.json, model.safetensors in BF16, and a tokenizer.json of 512
 * pieces (of a vocabulary of fewer than 260 tokens: none). The same options give the same bytes on
 * every machine. Weights have statistics like trained ones: rows of different scales, heavy tails,
 * channels that stand out, gains of norms. What the model says means nothing. Memory stays small
 * whatever the size.
 *
 * MUC_USAGE for an unknown name, naming the known ones; MUC_UNSUPPORTED for a family whose folders
 * store tensors together or transposed. Keys: file, shape, seed, parameters, bytes, layers. */
muc_status muc_synth(muc_context *ctx, const muc_synth_options *options, const char *out_path,
                     muc_report **out);

MUC_API_END

#endif
