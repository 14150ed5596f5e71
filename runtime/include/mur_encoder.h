/* mur_encoder.h - a text on its way to ids: what mur_tokenizer.c and the other ways to encode
 * share.
 */
#ifndef MUR_ENCODER_H
#define MUR_ENCODER_H

#include "mur_tokenizer.h"

enum { MUR_SYMBOL_BYTES = 20 };

struct mur_encoder {
    const mur_tokenizer *t;
    /* by position; id, prev and next of a symbol, its merge with the next one or none, and the
     * tournament: node i > 0 holds the winning position of nodes 2i and 2i + 1. They lie one after
     * the other: MUR_SYMBOL_BYTES * room bytes from `id` on. */
    uint32_t *id, *prev, *next, *merge, *tree;
    size_t room; /* symbols that the scratch holds */
    uint8_t *scratch;
    size_t scratch_bytes;
    uint32_t symbols;
    uint32_t *ids;
    size_t capacity, count;
};

/* Adds an id, nothing for MUR_NO_TOKEN, or returns MUR_E_NOFIT. */
mur_status mur_encoder_emit(mur_encoder *encoder, uint32_t id);
/* Bytes of the UTF-8 character at the head of the text, or of the cut one that is there. */
size_t mur_character_size(const uint8_t *text, size_t size);
/* Does the text begin with U+2581, which is a space? */
int mur_begins_with_mark(const uint8_t *text, size_t size);
/* mur_tokenizer_open; segment: what encodes segments of forms with the flag `kind`, one of
 * MUR_TOKENIZER_KINDS, or NULL and 0 where all of these are refused. */
mur_status mur_tokenizer_open_with(mur_tokenizer *tokenizer, const void *form, size_t bytes,
                                   mur_normalize *normalize, mur_segment *segment, uint32_t kind);

/* The canonical parts of a character, at most MUR_NFC_PARTS, go to out; returns their number. */
size_t mur_nfc_parts(uint32_t code, uint32_t *out);

/* The first piece of the index from low on, below high, whose byte `at` is above `byte`, or, with
 * `equal`, at it. Pieces that end before are below all. */
static inline uint32_t mur_index_first_above(const mur_tokenizer *t, uint32_t low, uint32_t high,
                                             size_t at, uint32_t byte, uint32_t equal)
{
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const uint8_t *text;
        const size_t size = mur_tokenizer_piece(t, t->index[middle], &text);

        if (at >= size || text[at] + equal <= byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of the pieces low..high-1 of the index, which all begin with the `at` bytes before text[at],
 * those that have that byte, too. Returns the one that ends with it, or MUR_NO_TOKEN. */
static inline uint32_t mur_index_narrow(const mur_tokenizer *t, uint32_t *low, uint32_t *high,
                                        const uint8_t *text, size_t at)
{
    const uint8_t *piece;

    *low = mur_index_first_above(t, *low, *high, at, text[at], 1);
    *high = mur_index_first_above(t, *low, *high, at, text[at], 0);
    return *low < *high && mur_tokenizer_piece(t, t->index[*low], &piece) == at + 1 ? t->index[*low]
                                                                                    : MUR_NO_TOKEN;
}

#endif
