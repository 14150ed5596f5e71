/* character_set.h - sets of characters, as regular expressions name them. */
#ifndef MUC_TEXT_CHARACTER_SET_H
#define MUC_TEXT_CHARACTER_SET_H

#include "base/arena.h"

enum { MUC_LAST_CHARACTER = 0x10ffff };

/* Both ends belong to it. */
typedef struct muc_character_range {
    uint32_t first, last;
} muc_character_range;

/* All-zero is the empty set. Ranges are arena-owned; muc_set_order brings them in order. */
typedef struct muc_character_set {
    muc_character_range *ranges;
    size_t count, capacity;
} muc_character_set;

muc_status muc_set_add(muc_context *ctx, muc_arena *arena, muc_character_set *set, uint32_t first,
                       uint32_t last);
/* Adds the general category of Unicode with this name of one or two letters, as in \p{Lu}; *known
 * tells whether there is one. */
muc_status muc_set_add_category(muc_context *ctx, muc_arena *arena, muc_character_set *set,
                                const char *name, size_t size, bool *known);
/* The same of a script; Han is the one that is known. */
muc_status muc_set_add_script(muc_context *ctx, muc_arena *arena, muc_character_set *set,
                              const char *name, size_t size, bool *known);
/* Adds what \s (the property White_Space), \d or \w stands for. */
muc_status muc_set_add_class(muc_context *ctx, muc_arena *arena, muc_character_set *set,
                             char letter);
muc_status muc_set_add_set(muc_context *ctx, muc_arena *arena, muc_character_set *set,
                           const muc_character_set *other);

/* Ranges ascend afterwards, and no two touch. */
void muc_set_order(muc_character_set *set);
/* The characters that an ordered set lacks, in order. */
muc_status muc_set_complement(muc_context *ctx, muc_arena *arena, const muc_character_set *set,
                              muc_character_set *out);

/* Of ordered sets. */
bool muc_sets_equal(const muc_character_set *a, const muc_character_set *b);
bool muc_sets_overlap(const muc_character_set *a, const muc_character_set *b);

#endif
