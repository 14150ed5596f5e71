/* safetensors.h - the container of Hugging Face's weights. */
#ifndef MUC_SAFETENSORS_H
#define MUC_SAFETENSORS_H

#include "formats/checkpoint.h"

/* True if the bytes begin as a safetensors file: a length, then an object's brace. */
bool muc_safetensors_probe(muc_bytes bytes);
/* Adds every tensor of a file to the checkpoint, which borrows bytes. The ranges of the tensors
 * must fill the file from the header's end to its own without a gap. */
muc_status muc_safetensors_read(muc_context *ctx, muc_bytes bytes, muc_checkpoint *checkpoint);

#endif
