/* npy.h - NumPy's arrays: references for tests, traces and inputs for users. */
#ifndef MUC_NPY_H
#define MUC_NPY_H

#include "base/arena.h"
#include "base/text.h"
#include "formats/checkpoint.h"

/* Reads a .npy file of version 1 to 3: little-endian, C order, at most 8 dimensions, of a type of
 * npy.c's table. The view borrows bytes, and bytes.name as its name. */
muc_status muc_npy_read(muc_context *ctx, muc_bytes bytes, muc_tensor_view *out);
/* The same for arrays of Fortran order too, whose elements are put in C order, in the arena. */
muc_status muc_npy_read_copy(muc_context *ctx, muc_arena *arena, muc_bytes bytes,
                             muc_tensor_view *out);
/* Writes the view's elements to path, byte for byte as numpy.save does. */
muc_status muc_npy_write(muc_context *ctx, const char *path, const muc_tensor_view *view);
/* What stands before the elements in such a file; path is for messages. */
muc_status muc_npy_add_header(muc_context *ctx, const char *path, const muc_tensor_view *view,
                              muc_text *out);

#endif
