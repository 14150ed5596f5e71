/* choice.h - words of the command line that stand in a list. */
#ifndef MUC_CHOICE_H
#define MUC_CHOICE_H

#include "base/base.h"

/* The number of the word in a list. Fails with MUC_USAGE, naming what is expected and the nearest
 * of it; subject: what the word is for. */
muc_status muc_choose(muc_context *ctx, const char *subject, const char *word,
                      const char *const *names, size_t count, unsigned *out);

#endif
