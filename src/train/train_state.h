/* train_state.h - all that a run of training is, in one file: it goes on bit for bit. */
#ifndef MUC_TRAIN_STATE_H
#define MUC_TRAIN_STATE_H

#include "train/data.h"
#include "train/optimiser.h"

/* Borrows what it points to. */
typedef struct muc_train_state {
    size_t elements;
    muc_scalar *weights;
    muc_train_adam *adam;
    muc_train_place *place;
    uint32_t recipe_crc32; /* of what must be the same when the run goes on: the caller's */
    void *extra;           /* [extra_bytes] of the caller's, in the processor's order of bytes */
    size_t extra_bytes;
} muc_train_state;

/* Writes the file whole or not at all. */
muc_status muc_train_state_save(muc_context *ctx, const muc_train_state *state, const char *path);
/* Fills weights, adam and place. Fails with MUC_MALFORMED if the file is damaged, or of another
 * shape or recipe; what state points to is then undefined. */
muc_status muc_train_state_load(muc_context *ctx, const char *path, const muc_train_state *state);

#endif
