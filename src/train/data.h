/* data.h - documents of tokens, shuffled each epoch and packed into batches. */
#ifndef MUC_TRAIN_DATA_H
#define MUC_TRAIN_DATA_H

#include "train/pass.h"
#include "train/random.h"

/* Borrowed by whoever reads it. */
typedef struct muc_train_corpus {
    size_t documents;
    const size_t *starts;   /* [documents + 1] into tokens */
    const uint32_t *tokens; /* with begin and end of text, as the model is to see them */
    const uint32_t *silent; /* [documents]: tokens at a document's start that are not targets (a
                               prompt); NULL: none */
} muc_train_corpus;

/* Where a run stands in its data; all that a checkpoint needs to go on with the same batches. */
typedef struct muc_train_place {
    muc_train_random random; /* as it was when the epoch began */
    uint64_t epoch, next;    /* epochs done; piece that comes next */
} muc_train_place;

/* A document, or a window of one. */
typedef struct muc_train_piece {
    size_t first, end; /* tokens that are fed; that at end is the last target */
    size_t counted;    /* first token that is a target */
} muc_train_piece;

/* Owns its arrays. */
typedef struct muc_train_loader {
    muc_context *ctx;
    const muc_train_corpus *corpus;
    size_t window, rows; /* longest piece; most rows of a batch */
    bool ordered;        /* as the corpus lies, cut from each document's start */
    muc_train_place place;
    muc_train_random after; /* as it is now that the epoch is shuffled */
    size_t piece_count, piece_capacity;
    muc_train_piece *pieces;
    muc_arena arena;
    uint32_t *tokens, *positions;
    int32_t *targets;
    size_t *starts;
} muc_train_loader;

/* Documents longer than window are cut, each epoch at other places. window is at most rows. place
 * NULL: nothing is random; for measuring. Fails with MUC_MALFORMED if nothing in corpus can be
 * predicted. corpus must outlive it. */
muc_status muc_train_loader_make(muc_context *ctx, const muc_train_corpus *corpus, size_t window,
                                 size_t rows, const muc_train_place *place, muc_train_loader *out);
void muc_train_loader_free(muc_train_loader *loader);

/* The next batch, valid until the next call: whole pieces, as many as fit. counted: its targets;
 * its weight is 1 / counted. loader->place is then where the batch after it begins. */
muc_status muc_train_loader_next(muc_train_loader *loader, muc_train_batch *out, size_t *counted);

#endif
