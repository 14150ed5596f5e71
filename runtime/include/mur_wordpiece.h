/* mur_wordpiece.h - tokenizers that take the longest pieces of each word (BERT's WordPiece).
 *
 * Each character of a text becomes what a map says: others, none, white space, which ends a word
 * and goes, or one that is a word alone (punctuation, ideographs). A word's tokens are the longest
 * piece that it begins with, the longest that what is left begins with, and so on. A word for which
 * there is none at some place, or one of too many characters, becomes one unknown piece.
 *
 * In such a tokenizer's compiled form (mur_tokenizer.h) `merges` are the map instead: [merges - 1]
 * runs of characters, ascending, the first from 0 on,
 *     bits 0..20 the first character, 21..23 MUR_MAP_..., bit 24 MUR_MAP_ALONE, 25..31 high bits of
 *     the second part; bits 0..20 a character or a number, 21..31 low bits of the second part,
 * and last the most characters of a word, 0. `index` has all pieces; those that begin a word have a
 * space before it. It alone brings in this code.
 */
#ifndef MUR_WORDPIECE_H
#define MUR_WORDPIECE_H

#include "mur_tokenizer.h"

/* What becomes of the characters of a run. */
enum {
    MUR_MAP_ADD = 0,    /* the character plus the number, modulo 2^21 */
    MUR_MAP_PARTS = 1,  /* two characters */
    MUR_MAP_HANGUL = 2, /* a syllable's two or three letters */
    MUR_MAP_SPACE = 3,
    MUR_MAP_DROP = 4, /* nothing */
    MUR_MAP_ALONE = 1 << 24
};

/* As mur_tokenizer_open, which refuses such a form; it opens those with merges too. */
mur_status mur_wordpiece_open(mur_tokenizer *tokenizer, const void *form, size_t bytes,
                              mur_normalize *normalize);

#endif
