/* muc/eval.h - how well a model predicts a text, or does a task. */
#ifndef MUC_EVAL_H
#define MUC_EVAL_H

#include "muc/model.h"

MUC_API_BEGIN

typedef struct muc_eval_options {
    uint32_t window;            /* most tokens of a document; 0: the model's context */
    uint32_t limit;             /* most documents or cases; 0: all */
    const muc_model *reference; /* a checkpoint to compare with in float32, or NULL */
    /* Of a text: it is one text, in windows that begin so many tokens after one another, 1 to the
     * window; 0: documents, cut at the window */
    uint32_t stride;
    /* Of a text in windows, which both imply: a file to write the logits of every window's second
     * half to, and one to compare with, which has the text too; or NULL. The format is that of
     * llama-perplexity --kl-divergence-base */
    const char *save_logits, *kl;
    uint32_t shard, shards; /* only every shards-th item, from the shard-th, 1 on; 0 and 0: all */
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

/* In windows (stride, save_logits, kl) path is one text, tokenized as a whole, with the
 * begin-of-text token as the first of every window if the model puts one before texts; a rest that
 * does not fill a window is left out. Predictions count from the middle of a window on where
 * windows do not overlap, else the last `stride` of each: as llama-perplexity has it. window: 512,
 * or the context. With kl, path is not read. Keys: windows in place of documents, perplexity_error;
 * with kl as with a reference, probability_rms (of what the model gives the next token, less what
 * the file gives it), and the table "quantiles" (quantile, kl, probability). */

/* Multiple choice: choices of six lines, as llama.cpp's HellaSwag files have them: a context, the
 * number of the right ending from 0 on, and four endings. An ending is scored by the ln p of its
 * tokens, from the first on in which the endings differ, after the context and a space.
 *
 * Keys: accuracy (the likeliest ending by the mean of its tokens is the right one), accuracy_low
 * and accuracy_high (Wilson's interval of 95 %), accuracy_by_sum, right, choices, arithmetic, bos,
 * tokenizer_crc32. */
muc_status muc_eval_choices(muc_context *ctx, const muc_model *model, const char *path,
                            const muc_eval_options *options, muc_report **out);

/* One report of all shards' reports, given as files of JSON: the bytes of one run. MUC_USAGE naming
 * a shard that is missing or there twice, MUC_MISMATCH for parts of different evaluations. */
muc_status muc_merge_parts(muc_context *ctx, const char *const *paths, size_t count,
                           muc_report **out);

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
