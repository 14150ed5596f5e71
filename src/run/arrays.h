/* arrays.h - arrays of a user's files, and what a user says of dimensions. */
#ifndef MUC_RUN_ARRAYS_H
#define MUC_RUN_ARRAYS_H

#include "base/text.h"
#include "formats/network.h"
#include "report/report_builder.h"
#include "run/port.h"

/* All arrays of a .npz file, or the one of a .npy file, whose name is the file's. In arena. */
muc_status muc_arrays_read(muc_context *ctx, muc_arena *arena, const char *path,
                           muc_tensor_view **out, size_t *count);
/* Whether a file begins as one of these; false for what cannot be read. */
bool muc_is_arrays(const char *path);
/* To a .npz file. */
muc_status muc_arrays_write(muc_context *ctx, const char *path, const muc_tensor_view *arrays,
                            size_t count);

/* The dimensions, as [1, 8]. */
void muc_array_add_shape(const muc_tensor_view *array, muc_text *out);
/* The bytes of a .npy file of it; name is for messages. */
muc_status muc_array_as_npy(muc_context *ctx, const char *name, const muc_tensor_view *array,
                            muc_text *out);

/* Adds a row to the table that is open: name, dtype, shape, min, max, values (the first eight), top
 * (the indices of the greatest five). Where port, which may be NULL, carries quantization, min, max
 * and values are the real numbers that the integers stand for; its scale and zero point follow. */
void muc_report_add_array(muc_report *report, const muc_tensor_view *view, const muc_port *port);

/* Whether an array has the dimensions of a shape, but in another order: channels first and last
 * taken for each other. Dimensions of 1 count for nothing. */
bool muc_is_reordered(const muc_tensor_view *array, uint32_t rank, const uint64_t *dims);

/* "NAME=N" and "NAME=LO..HI", parted by commas; in arena. */
muc_status muc_network_dims(muc_context *ctx, muc_arena *arena, const char *text,
                            muc_network_dim **out, size_t *count);
/* "NAME=TYPE", parted by commas; in arena. */
muc_status muc_network_types(muc_context *ctx, muc_arena *arena, const char *text,
                             muc_network_type **out, size_t *count);

#endif
