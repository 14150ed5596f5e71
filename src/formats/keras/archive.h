/* archive.h - the members of a .keras file: a zip of two JSON documents and an HDF5 file. */
#ifndef MUC_KERAS_ARCHIVE_H
#define MUC_KERAS_ARCHIVE_H

#include "base/arena.h"
#include "base/bytes.h"

typedef struct muc_keras_archive {
    muc_bytes config, weights, metadata; /* config.json, model.weights.h5, metadata.json;
                                          * arena-owned */
} muc_keras_archive;

/* whether it is a zip whose first member is one of a .keras file */
bool muc_keras_archive_probe(muc_bytes bytes);
muc_status muc_keras_archive_read(muc_context *ctx, muc_arena *arena, muc_bytes bytes,
                                  muc_keras_archive *out);

#endif
