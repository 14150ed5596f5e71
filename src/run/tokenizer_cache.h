/* tokenizer_cache.h - compiled forms of large tokenizers, kept in the user's cache folder. */
#ifndef MUC_TOKENIZER_CACHE_H
#define MUC_TOKENIZER_CACHE_H

#include "base/arena.h"
#include "base/bytes.h"

/* What a form was compiled from: the path of its copy, which need not exist, and who compiled it;
 * NULL and 0 where none is kept. */
typedef struct muc_kept_form {
    const char *path; /* in the arena */
    uint64_t build;
} muc_kept_form;

/* Where the form of a tokenizer's file is kept: $XDG_CACHE_HOME/muc or $HOME/.cache/muc, under a
 * name that follows from the file's bytes and from `settings`, all that the form depends on
 * besides. Files that compile in no time, and a code that is in no file, have none. */
muc_status muc_kept_form_of(muc_context *ctx, muc_arena *arena, muc_bytes file,
                            const void *settings, size_t settings_bytes, muc_kept_form *out);
/* The form that this build of muc has kept, in the arena, aligned to 16 bytes; NULL and 0 if there
 * is none, or a damaged one. */
muc_status muc_kept_form_read(muc_context *ctx, muc_arena *arena, const muc_kept_form *kept,
                              uint8_t **form, size_t *bytes);
/* Keeps a form if the folder can be written, and says nothing if it cannot. */
void muc_kept_form_write(muc_context *ctx, const muc_kept_form *kept, const uint8_t *form,
                         size_t bytes);

#endif
