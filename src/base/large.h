/* large.h - memory for results and states that may be larger than what a process should hold. */
#ifndef MUC_LARGE_H
#define MUC_LARGE_H

#include "base/base.h"

/* Zeroed, aligned to a page, until muc_large_free: a file without a name, mapped, in $TMPDIR or
 * else in /var/tmp, so its pages can leave the memory; below 1 MiB, and where neither folder has
 * the room, plain memory. */
muc_status muc_large_new(muc_context *ctx, size_t bytes, uint8_t **out);
/* The same while its file is open: what is put there, by any thread, takes less time than if it is
 * stored, which makes pages one by one. */
typedef struct muc_large_file {
    uint8_t *data; /* [bytes] of muc_large_new */
    int fd;        /* or -1 */
} muc_large_file;
muc_status muc_large_open(muc_context *ctx, size_t bytes, muc_large_file *out);
/* The memory is what a file, open for reading and writing, holds, which is of so many bytes from
 * here on. False, and *out is empty: it cannot be mapped so. */
bool muc_large_map(int fd, size_t bytes, muc_large_file *out);
void muc_large_put(const muc_large_file *file, size_t at, const void *data, size_t bytes);
void muc_large_close(muc_large_file *file); /* the data stays */
/* Lets the whole pages of a part leave the process: they come back, as they are, where they are
 * used again. Also for files that muc_file_open has mapped. */
void muc_large_rest(const uint8_t *data, size_t bytes);
void muc_large_free(uint8_t *data, size_t bytes); /* NULL is fine */

/* Zeroed, aligned to a page, until muc_large_free: a page takes memory once it is written.
 * NULL of 0 bytes. */
muc_status muc_zeros_new(muc_context *ctx, const char *source, size_t bytes, void **out);
/* All bytes are zero again; pages that were not written still take nothing. */
void muc_zeros_clear(void *data, size_t bytes);

#endif
