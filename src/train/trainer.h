/* trainer.h - a run of training, step by step: batch, pass, update. */
#ifndef MUC_TRAIN_TRAINER_H
#define MUC_TRAIN_TRAINER_H

#include "train/data.h"
#include "train/pass.h"
#include "train/optimiser.h"
#include "train/train_state.h"

/* What pruning and quantization-aware training put into a step. Either may be NULL. */
typedef struct muc_train_method {
    void *arg;
    /* before the pass: *used, of weights' layout, is what the pass computes with; it is weights
     * when called, and gradients by it are taken as those of weights */
    muc_status (*prepare)(void *arg, uint64_t step, muc_scalar *weights, const muc_scalar **used);
    /* after the pass, before the update; what it learns by itself from gradients, it learns here */
    muc_status (*adjust)(void *arg, uint64_t step, muc_scalar *weights, muc_scalar *gradients);
} muc_train_method;

/* A step done. */
typedef struct muc_train_note {
    uint64_t step;     /* 1 for the first */
    size_t tokens;     /* fed */
    size_t counted;    /* predicted, and part of the loss */
    double loss;       /* mean of -ln p over the counted */
    double norm, rate; /* of all gradients, before clipping; of learning */
} muc_train_note;

typedef struct muc_train_trainer {
    muc_context *ctx;
    const muc_train_shape *shape; /* borrowed */
    muc_train_recipe recipe;
    muc_train_method method; /* the caller may set it */
    muc_train_loader loader;
    muc_train_pass pass; /* its hooks are the caller's to set */
    muc_train_adam adam;
    muc_scalar *weights; /* [shape->elements], the caller fills them; 0 now */
    muc_scalar *gradients;
    void *extra; /* what a method adds to the saved state; the caller sets it; may be NULL */
    size_t extra_bytes;
} muc_train_trainer;

/* corpus in windows of at most window tokens, rows tokens a batch; place: of the first batch.
 * shape and corpus must outlive it. */
muc_status muc_train_trainer_make(muc_context *ctx, const muc_train_shape *shape,
                                  const muc_train_recipe *recipe, const muc_train_corpus *corpus,
                                  size_t window, size_t rows, const muc_train_place *place,
                                  muc_train_trainer *out);
void muc_train_trainer_free(muc_train_trainer *trainer);

muc_status muc_train_step(muc_train_trainer *trainer, muc_train_note *note);

/* Sum of -ln p over a corpus's targets, documents in their order, cut into windows that do not see
 * each other. */
muc_status muc_train_measure(muc_train_pass *pass, const muc_train_corpus *corpus, size_t window,
                             const muc_scalar *weights, double *loss, uint64_t *counted);

/* The run as it stands, to a file, and from one; see train_state.h. recipe_crc32: of what must be
 * the same when the run goes on. */
muc_status muc_train_trainer_save(const muc_train_trainer *trainer, uint32_t recipe_crc32,
                                  const char *path);
muc_status muc_train_trainer_load(muc_train_trainer *trainer, uint32_t recipe_crc32,
                                  const char *path);

#endif
