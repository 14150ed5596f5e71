/* onnx_tensor.h - a TensorProto as elements in memory. */
#ifndef MUC_ONNX_TENSOR_H
#define MUC_ONNX_TENSOR_H

#include <onnx.pb-c.h>

#include "formats/format.h"

/* What tensors of one file share. */
typedef struct muc_onnx_store {
    const char *path;        /* of the file */
    const char *folder;      /* of external data; NULL: there is none */
    muc_arena *arena;        /* of elements that are stored as lists of numbers */
    muc_mapped_file **files; /* gets the files of external data */
} muc_onnx_store;

/* The name of a number of TensorProto.DataType, the graph's where it has the type, else ONNX's;
 * "?" of no type. */
const char *muc_onnx_type_name(int32_t number);
/* A number of TensorProto.DataType as an element type; what names the place in the message. */
muc_status muc_onnx_dtype(muc_context *ctx, const char *path, const char *what, int32_t number,
                          muc_dtype *out);

/* Elements, little-endian, row-major: borrowed from the message or from a mapped file where they
 * are stored as bytes, else in the arena. A size that the data does not have is refused, naming
 * the tensor, as are types that the graph does not have and data outside the folder. */
muc_status muc_onnx_tensor(muc_context *ctx, const muc_onnx_store *store,
                           const Onnx__TensorProto *tensor, muc_tensor_view *out);

/* Reads a file that is one TensorProto, as ONNX's tests store inputs and outputs. Its decoded
 * form, which the view borrows, lives in arena. */
muc_status muc_onnx_read_tensor(muc_context *ctx, muc_arena *arena, muc_bytes file,
                                muc_tensor_view *out);

#endif
