/* zip.h - members of a zip file in memory, by libzip behind the house's limits. */
#ifndef MUC_ZIP_H
#define MUC_ZIP_H

#include "base/arena.h"
#include "base/bytes.h"

typedef struct muc_zip muc_zip;

struct zip_error; /* libzip's */
/* Fails with what libzip says of the error, and ends it. */
muc_status muc_zip_fail(muc_context *ctx, muc_status status, const char *path,
                        struct zip_error *error);

/* Borrows bytes and arena, where members live, until muc_zip_close. */
muc_status muc_zip_open(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_zip **out);
void muc_zip_close(muc_zip *zip); /* NULL is fine */
/* The name of member i; NULL beyond the last. Owned by zip. */
const char *muc_zip_name(const muc_zip *zip, size_t i);
/* A whole member, stored or deflated; all of them together in proportion to the archive. */
muc_status muc_zip_read(muc_zip *zip, const char *name, muc_bytes *out);
/* The same, but a member that is stored as it is stays in the archive's bytes, and its checksum is
 * not looked at. */
muc_status muc_zip_borrow(muc_zip *zip, const char *name, muc_bytes *out);

/* The name of the member that a zip begins with, of no NUL at its end; false if it is not a zip. */
bool muc_zip_first(muc_bytes bytes, muc_string_view *name);

#endif
