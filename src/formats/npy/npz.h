/* npz.h - NumPy's archives: named arrays in a zip file. */
#ifndef MUC_NPZ_H
#define MUC_NPZ_H

#include "formats/format.h"

/* Reads every array of an archive, stored or deflated, in the archive's order; a member NAME.npy
 * gives the name NAME. Names and elements live in arena. Members that are not arrays, two of one
 * name, encryption, and archives that inflate out of all proportion are refused. */
muc_status muc_npz_read(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_tensor_view **out,
                        size_t *count);

/* Writes the views, whose names must differ, as numpy.savez does: stored. The same arrays give the
 * same bytes. */
muc_status muc_npz_write(muc_context *ctx, const char *path, const muc_tensor_view *views,
                         size_t count);

#endif
