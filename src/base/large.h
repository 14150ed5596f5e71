/* large.h - memory for results that may be larger than what a process should hold. */
#ifndef MUC_LARGE_H
#define MUC_LARGE_H

#include "base/base.h"

/* Zeroed, aligned to a page, until muc_large_free: a file without a name, mapped, in $TMPDIR or
 * else in /var/tmp, so its pages can leave the memory; where neither has the room, and below 1 MiB,
 * of memory. */
muc_status muc_large_new(muc_context *ctx, size_t bytes, uint8_t **out);
/* Lets the pages leave the process: they come back, as they are, where they are used again. */
void muc_large_rest(const uint8_t *data, size_t bytes);
void muc_large_free(uint8_t *data, size_t bytes); /* NULL is fine */

#endif
