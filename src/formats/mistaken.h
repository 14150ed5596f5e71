/* mistaken.h - files that were saved in the place of a model's. */
#ifndef MUC_FORMATS_MISTAKEN_H
#define MUC_FORMATS_MISTAKEN_H

#include "base/bytes.h"

/* Fails with MUC_MALFORMED, saying what to do, if the bytes are a pointer of Git LFS, a page of
 * HTML or a compressed file. */
muc_status muc_refuse_mistaken(muc_context *ctx, muc_bytes bytes);

#endif
