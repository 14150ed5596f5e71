/* eval_parts.h - what an evaluation sums up, item by item, whole or in shards, and its report. */
#ifndef MUC_DRIVER_EVAL_PARTS_H
#define MUC_DRIVER_EVAL_PARTS_H

#include <stdbool.h>

#include "muc/eval.h"
#include "run/engine.h"

/* Of the predicted tokens of a document or a window, or of one choice. */
typedef struct muc_eval_sums {
    uint64_t tokens; /* predicted; of a choice 1 */
    uint64_t agreed; /* with the reference's likeliest; of a choice 1: right by the mean */
    uint64_t right;  /* of a choice 1: right by the sum */
    double nll, nll_squared, reference_nll, kl;
} muc_eval_sums;

/* What the report says besides the sums; all that parts of one evaluation have in common. */
typedef struct muc_eval_facts {
    const char *items; /* what is counted: "documents", "windows" or "choices" */
    const char *arithmetic;
    double bits_per_weight; /* 0: not told */
    uint32_t window, stride;
    bool bos, has_reference;
    uint32_t tokenizer_crc32, text_crc32;
} muc_eval_facts;

/* The facts of a model and its options; items, window, stride and text_crc32 are the caller's. */
void muc_eval_describe(const muc_model *model, const muc_eval_options *options,
                       const muc_engine_facts *engine, muc_eval_facts *out);

/* Whether item i is of the shard that options ask for. */
bool muc_eval_is_mine(const muc_eval_options *options, size_t i);

/* The report of sums[count], added up in their order; of a shard the sums themselves, for
 * muc_merge_parts. path is for messages. */
muc_status muc_eval_report(muc_context *ctx, const char *path, const muc_eval_facts *facts,
                           const muc_eval_options *options, const muc_eval_sums *sums, size_t count,
                           muc_report **out);

/* A text in windows, or the windows of a file of logits (options->stride, save_logits, kl). */
muc_status muc_eval_windows(muc_context *ctx, const muc_model *model, const char *path,
                            const muc_eval_options *options, muc_report **out);

#endif
