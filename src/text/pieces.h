/* pieces.h - what the readers and the compiler share about pieces. */
#ifndef MUC_TEXT_PIECES_H
#define MUC_TEXT_PIECES_H

#include "text/vocabulary.h"

/* U+2581, SentencePiece's space. */
#define MUC_SPACE_MARK "\xe2\x96\x81"

/* Allocates count pieces, each UNUSED and without text, within the limit on vocabularies. */
muc_status muc_pieces_new(muc_context *ctx, muc_arena *arena, uint64_t count, muc_vocabulary *out);
/* Copies a piece's text into the arena, after checking its size and that it is UTF-8. */
muc_status muc_piece_set_text(muc_context *ctx, muc_arena *arena, const muc_vocabulary *vocabulary,
                              size_t id, const char *text, size_t size);

/* Of WordPiece: pieces that begin a word get a space before it, and lose a prefix that says so, or
 * those that go on in one lose theirs. begins: which of the two have the prefix. */
muc_status muc_pieces_set_words(muc_context *ctx, muc_arena *arena,
                                const muc_vocabulary *vocabulary, const char *prefix, bool begins);

/* Is this what tokens that end a text or a turn are customarily called? Such a piece is control,
 * even if its file calls it the user's: written in a text it ends nothing unless asked for. */
bool muc_piece_ends_text(const char *text);

/* 0..255 for "<0x00>".."<0xFF>", otherwise -1. */
int muc_byte_piece_value(const char *text, size_t size);
/* The byte that a character of GPT-2's byte alphabet stands for, or -1. Its UTF-8 bytes go to
 * *size. text has at least one byte. */
int muc_byte_of_character(const char *text, size_t left, size_t *size);

/* Finds pieces by their text. */
typedef struct muc_piece_index {
    const muc_piece *pieces;
    struct muc_piece_slot *slots; /* [mask + 1] */
    size_t mask, count;
    uint32_t result; /* of the last merge that was resolved: that of the next is often beside it */
} muc_piece_index;

/* Of the pieces of type NORMAL, which alone take part in merges; no two may have one text. */
muc_status muc_piece_index_new(muc_context *ctx, muc_arena *arena, const muc_vocabulary *vocabulary,
                               muc_piece_index *out);
/* The hash of a text whose beginning has the hash `hash`, 0 for nothing. */
uint32_t muc_piece_hash(uint32_t hash, const char *text, size_t size);
/* That of the last end_size bytes of a text: whole is the hash of it, begin of what is before. */
uint32_t muc_piece_hash_of_end(uint32_t whole, uint32_t begin, size_t end_size);
/* What has this hash will soon be looked up. */
void muc_piece_prefetch(const muc_piece_index *index, uint32_t hash);
/* And, a little later: the text that will be compared. */
void muc_piece_prefetch_text(const muc_piece_index *index, uint32_t hash);
/* The piece whose text is a followed by b, or MUR_NO_TOKEN. hash: of both. */
uint32_t muc_piece_find2(const muc_piece_index *index, uint32_t hash, muc_string_view a,
                         muc_string_view b);
uint32_t muc_piece_find(const muc_piece_index *index, muc_string_view text);

/* Adds a rule that cuts text after those that are there. Fails with MUC_UNSUPPORTED if there are
 * too many. pattern lives as long as the vocabulary. */
muc_status muc_vocabulary_add_rule(muc_context *ctx, muc_vocabulary *vocabulary,
                                   muc_split_rule rule);
/* Sets the rules that tokenizer.ggml.pre names, and two settings that it implies; false if none has
 * the name. */
bool muc_vocabulary_set_gguf_rules(muc_vocabulary *vocabulary, const char *name, bool *adds_bos);

#endif
