/* hdf5.h - attributes and arrays of an HDF5 file in memory.
 *
 * A small bounded reader: superblocks 0 to 3; object headers 1 and 2; groups as symbol tables, as
 * links and as dense links; attributes of strings; arrays of reals that are compact, contiguous or
 * in chunks, with deflate and shuffle. Paths are "group/group/object" from the root. Nothing
 * outside of the file is ever opened: soft and external links, external storage, virtual arrays and
 * other filters are refused by name. Format: the HDF5 File Format Specification, version 3.0.
 */
#ifndef MUC_KERAS_HDF5_H
#define MUC_KERAS_HDF5_H

#include "base/arena.h"
#include "base/bytes.h"

enum { MUC_HDF5_MAX_RANK = 8 };

typedef struct muc_hdf5 muc_hdf5;

/* Row-major f32 of the host's byte order, whatever real type the file has; arena-owned. */
typedef struct muc_hdf5_array {
    uint32_t rank;
    uint64_t dims[MUC_HDF5_MAX_RANK], elements;
    const float *data;
} muc_hdf5_array;

bool muc_hdf5_probe(muc_bytes bytes); /* the signature at its start */

/* Borrows bytes and arena, where results live. */
muc_status muc_hdf5_open(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_hdf5 **out);

/* Whether there is an object of this path; fails where a link on the way is not hard. */
muc_status muc_hdf5_exists(muc_hdf5 *file, const char *path, bool *out);
/* The strings of an attribute of an object ("" is the root), which long ones store as name0, name1,
 * ...; *found tells whether there is one. */
muc_status muc_hdf5_strings(muc_hdf5 *file, const char *path, const char *attribute, bool *found,
                            const char *const **out, size_t *count);
muc_status muc_hdf5_array_at(muc_hdf5 *file, const char *path, muc_hdf5_array *out);

#endif
