/* muc/eval.h - how well a model predicts a text, or does a task. */
#ifndef MUC_EVAL_H
#define MUC_EVAL_H

#include "muc/model.h"

MUC_API_BEGIN

typedef struct muc_eval_options {
    uint32_t window;            /* most tokens of a document; 0: the model's context */
    uint32_t limit;             /* most documents or cases; 0: all */
    const muc_model *reference; /* a checkpoint to compare with in float32, or NULL */
} muc_eval_options;

/* Perplexity of a text file. Documents are what lies between lines or marks "<|endoftext|>", white
 * space around them cut off; each is fed from an empty cache as BOS and its tokens, cut at
 * `window`; perplexity = exp(mean over all predicted tokens of -ln p(token)).
 *
 * Keys: perplexity, tokens (predicted), documents, window, stride (none: the rest of a document is
 * left out), bos, tokenizer_crc32, arithmetic; of a program bits_per_weight; with a reference also
 * reference_perplexity, kl (mean of sum p ln(p/q), p the reference's) and top1_agreement. */
muc_status muc_eval_text(muc_context *ctx, const muc_model *model, const char *path,
                         const muc_eval_options *options, muc_report **out);

/* Exact answers to a file of cases: paragraphs parted by an empty line. A case's last line is
 * "LABEL: ANSWER"; the prompt is the case up to and including "LABEL:", and the model's greedy
 * completion, up to its end of text or line and without white space around it, must equal ANSWER.
 *
 * Keys: exact, cases, accuracy, arithmetic; with a reference also reference_exact; and the table
 * "wrong" (case, expected, found). */
muc_status muc_eval_task(muc_context *ctx, const muc_model *model, const char *path,
                         const muc_eval_options *options, muc_report **out);

MUC_API_END

#endif
