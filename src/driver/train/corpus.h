/* corpus.h - a text file as documents of tokens to train on. */
#ifndef MUC_DRIVER_CORPUS_H
#define MUC_DRIVER_CORPUS_H

#include "run/opened_model.h"
#include "passes/weights/calibrate.h"
#include "train/data.h"

typedef struct muc_corpus_options {
    bool cases;          /* cases as muc_eval_task has them, not a text */
    double prompt_share; /* of the cases, drawn by seed: those whose prompt is predicted too */
    uint64_t seed;
} muc_corpus_options;

/* Documents of a text are parted by MUC_DOCUMENT_MARK, cases by an empty line; each begins with the
 * tokenizer's begin of text and ends with the model's end, as far as there are such. model has a
 * tokenizer. All is arena-owned. */
muc_status muc_corpus_read(muc_context *ctx, const muc_model *model, const char *path,
                           const muc_corpus_options *options, muc_arena *arena,
                           muc_train_corpus *out);

/* Texts that model wrote itself, each of at most `longest` tokens; a shorter one gets the model's
 * end, which it drew. All is arena-owned. */
muc_status muc_corpus_of_texts(muc_context *ctx, const muc_model *model,
                               const muc_calibration *texts, uint32_t longest, muc_arena *arena,
                               muc_train_corpus *out);

#endif
