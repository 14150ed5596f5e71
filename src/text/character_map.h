/* character_map.h - what becomes of each character of a text before WordPiece cuts it into words.
 */
#ifndef MUC_TEXT_CHARACTER_MAP_H
#define MUC_TEXT_CHARACTER_MAP_H

#include "text/vocabulary.h"

/* The map of mur_wordpiece.h for the vocabulary's word rules, with its last entry: *count entries
 * of two words, arena-owned. A character that no piece holds, nor what it would become, is in no
 * run of its own: the word is unknown in any case. */
muc_status muc_character_map_make(muc_context *ctx, const muc_vocabulary *vocabulary,
                                  muc_arena *arena, uint32_t (**map)[2], size_t *count);

#endif
