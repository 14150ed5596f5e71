/* mur_unigram.h - tokenizers that take the likeliest pieces of a text (SentencePiece unigram).
 *
 * A text's tokens are those of the sequence of pieces with the greatest sum of scores, logarithms
 * of probabilities, in binary64; of equals the one whose last piece is the longest. A character
 * without a piece costs 10 more than the least likely piece, and becomes its bytes, or one unknown
 * piece for a run of them.
 *
 * In such a tokenizer's compiled form (mur_tokenizer.h) `merges` are scores instead: [pieces + 1]
 * the binary64 bits of a piece's score without its sign, low word first, as a score is never above
 * 0; the last is that of a character without a piece. A piece's first merge is its own number.
 * `index` has all pieces that merging would make. It alone brings in this code.
 */
#ifndef MUR_UNIGRAM_H
#define MUR_UNIGRAM_H

#include "mur_tokenizer.h"

/* As mur_tokenizer_open, which refuses such a form; it opens the others too. */
mur_status mur_unigram_open(mur_tokenizer *tokenizer, const void *form, size_t bytes,
                            mur_normalize *normalize);

#endif
