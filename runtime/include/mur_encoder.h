/* mur_encoder.h - a text on its way to ids: what mur_tokenizer.c and mur_unigram.c share. */
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

/* Adds an id, or returns MUR_E_NOFIT. */
mur_status mur_encoder_emit(mur_encoder *encoder, uint32_t id);
/* Bytes of the UTF-8 character at the head of the text, or of the cut one that is there. */
size_t mur_character_size(const uint8_t *text, size_t size);
/* Does the text begin with U+2581, which is a space? */
int mur_begins_with_mark(const uint8_t *text, size_t size);
/* mur_tokenizer_open; segment: what encodes segments of forms with MUR_TOKENIZER_UNIGRAM, or NULL
 * where these are refused. */
mur_status mur_tokenizer_open_with(mur_tokenizer *tokenizer, const void *form, size_t bytes,
                                   mur_normalize *normalize, mur_segment *segment);

#endif
