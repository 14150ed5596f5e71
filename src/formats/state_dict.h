/* state_dict.h - the state dict of a file that torch.save wrote: named arrays of weights. */
#ifndef MUC_TORCH_STATE_H
#define MUC_TORCH_STATE_H

#include "formats/pickle.h"

/* Row-major, whatever strides the file has. */
typedef struct muc_torch_weight {
    const char *name;
    muc_dtype dtype;
    uint32_t rank;
    uint64_t dims[MUC_PICKLE_MAX_RANK], elements;
    const uint8_t *stored; /* of dtype and no alignment; in the file's bytes or in the arena */
    const float *data;     /* made by muc_torch_widen; of integers NULL */
    bool used;             /* for whoever looks them up */
} muc_torch_weight;

/* Sorted by name, names unique, without a "module." that all begin with. */
typedef struct muc_torch_state {
    muc_context *ctx;
    muc_arena *arena; /* borrowed */
    muc_bytes bytes;
    muc_torch_weight *items;
    size_t count;
} muc_torch_state;

bool muc_torch_probe(muc_bytes bytes);
/* The state dict itself, or one under a usual name ("state_dict", ..) of a checkpoint. Borrows
 * bytes. */
muc_status muc_torch_read(muc_context *ctx, muc_arena *arena, muc_bytes bytes,
                          muc_torch_state *out);
/* Gives every weight of a real type its data, in the arena. */
muc_status muc_torch_widen(muc_torch_state *state);
/* NULL if there is none of this name. */
muc_torch_weight *muc_torch_find(const muc_torch_state *state, const char *name);
/* Fails naming the first weight that nobody used. */
muc_status muc_torch_check_used(const muc_torch_state *state);

#endif
