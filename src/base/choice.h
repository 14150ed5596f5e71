/* choice.h - words that must be of a known set: of the command line, of descriptions, of files. */
#ifndef MUC_CHOICE_H
#define MUC_CHOICE_H

#include "base/text.h"
#include "muc/guess.h"

/* The number of the word in a list. Fails with MUC_USAGE, naming what is expected and the nearest
 * of it; subject: what the word is for. */
muc_status muc_choose(muc_context *ctx, const char *subject, const char *word,
                      const char *const *names, size_t count, unsigned *out);

enum { MUC_CHOICE_MOST_BYTES = 64 };

/* A word that was not found, and the set name by name. */
typedef struct muc_choice {
    char word[MUC_CHOICE_MOST_BYTES];
    muc_guess guess;
    muc_text list;    /* the names but the last */
    const char *last; /* or NULL: none yet */
    size_t count;
} muc_choice;

/* word: its first size bytes, of which the first 63 are told. */
void muc_choice_begin(muc_choice *choice, const char *word, size_t size);
/* name is borrowed until the choice ends; one that is told a second time is left out if it comes
 * right after the first. */
void muc_choice_add(muc_choice *choice, const char *name);
/* Both end the choice. "there is no WHAT 'WORD'; expected A, B or C; did you mean 'A'?", of a large
 * set its beginning: fails with status, for the subject; or as a text, for the caller to free. */
muc_status muc_choice_refuse(muc_context *ctx, muc_choice *choice, muc_status status,
                             const char *subject, const char *what);
muc_text muc_choice_end(muc_choice *choice, const char *what);

#endif
