/* split_machine.h - compiles the rules that cut text to the tables of mur_split.h. */
#ifndef MUC_TEXT_SPLIT_MACHINE_H
#define MUC_TEXT_SPLIT_MACHINE_H

#include "text/regex.h"

/* Each rule cuts the pieces of the one before it. *words are *count arena-owned words; no words for
 * no rules. Refuses, with MUC_UNSUPPORTED, a rule that the tables cannot say, one that matches no
 * character at all, and one that loses text. */
muc_status muc_split_compile(muc_context *ctx, const char *source, const muc_split_rule *rules,
                             size_t rule_count, muc_arena *arena, uint32_t **words, size_t *count);

#endif
