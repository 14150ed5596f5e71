/* decode.h - ONNX's protobuf messages, decoded within bounds. */
#ifndef MUC_ONNX_DECODE_H
#define MUC_ONNX_DECODE_H

#include <onnx.pb-c.h>

#include "base/arena.h"
#include "base/bytes.h"

/* Decodes file as one message, all of which lives in arena. Messages nested deeper than 32, files
 * of 2 GiB and files whose decoded form would be out of proportion to them are refused. */
muc_status muc_onnx_decode(muc_context *ctx, muc_arena *arena, muc_bytes file,
                           const ProtobufCMessageDescriptor *descriptor, ProtobufCMessage **out);

/* True if the file is a sequence of fields that a message of this kind may have, the one numbered
 * present among them. Reads no more than the heads of the outermost fields. */
bool muc_onnx_looks_like(muc_bytes file, const ProtobufCMessageDescriptor *descriptor,
                         unsigned present);

#endif
