/* debug_names.h - the DEBG section: names of words of CODE. */
#ifndef MUC_UTHINKER_DEBUG_H
#define MUC_UTHINKER_DEBUG_H

#include "base/arena.h"
#include "base/bytes.h"

/* An INST's stage, or what an EVAL or FOR writes. */
typedef struct muc_debug_name {
    uint32_t word; /* of CODE */
    const char *name;
} muc_debug_name;

/* The section, in arena; equal names are stored once. */
muc_status muc_debug_write(muc_context *ctx, muc_arena *arena, const muc_debug_name *names,
                           size_t count, muc_bytes *out);

/* The names of a section of any content, in arena, borrowing from it. *whole is false if the
 * section is not what muc_debug_write gives for them; *count is then 0. */
muc_status muc_debug_read(muc_context *ctx, muc_arena *arena, muc_bytes section,
                          muc_debug_name **names, size_t *count, bool *whole);

#endif
