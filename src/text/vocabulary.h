/* vocabulary.h - a tokenizer as its file states it, on its way to the compiled form. */
#ifndef MUC_TEXT_VOCABULARY_H
#define MUC_TEXT_VOCABULARY_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/stored_vocabulary.h"
#include "mur_tokenizer.h"
#include "text/regex.h"

enum { MUC_PIECE_MAX_BYTES = 1024 };

/* The pieces' alphabet, that is the family of the tokenizer. */
typedef enum muc_alphabet {
    MUC_ALPHABET_CHARACTERS, /* SentencePiece BPE: U+2581 for a space, byte pieces <0x00>..<0xFF> */
    MUC_ALPHABET_BYTES       /* byte-level BPE: each byte written as one of GPT-2's characters */
} muc_alphabet;

typedef struct muc_piece {
    const char *text; /* UTF-8 as the file has it; size 0 for an id without a piece */
    size_t size;
    double score;  /* higher merges first, or is likelier; used if the vocabulary has no merges */
    uint32_t type; /* MUR_PIECE_... */
    uint32_t
        found; /* MUR_SPECIAL_... of a special piece; of another, it is special too if ALWAYS */
    bool found_as_written; /* by its text, in which U+2581 is not a space */
} muc_piece;

/* The pieces with these ids may merge to a third. */
typedef struct muc_merge {
    uint32_t left, right, result;
} muc_merge;

/* How WordPiece makes words of a text, in the words of Hugging Face's BertNormalizer. */
typedef struct muc_word_rules {
    bool cleans;                /* control characters go ("clean_text") */
    bool sets_ideographs_apart; /* each is a word ("handle_chinese_chars") */
    bool strips_accents, lowercases;
    uint32_t most_characters; /* a word of more is unknown */
} muc_word_rules;

/* Everything is arena-owned; ids are indices of pieces. */
typedef struct muc_vocabulary {
    const char *source; /* the file's path, for messages */
    muc_alphabet alphabet;
    muc_piece *pieces;
    size_t count;
    muc_merge *merges; /* best first; NULL: every pair may merge whose text is a piece, by score */
    size_t merge_count;
    const struct muc_piece_index *index; /* of the pieces, if merges were looked up in one */
    bool unigram;   /* the likeliest pieces, by scores that are not above 0, and no merges */
    bool wordpiece; /* the longest pieces of words, made by `words`, and no merges; pieces that
                     * begin a word have a space before it */
    muc_word_rules words;
    bool takes_whole_pieces;   /* a segment that is a piece is not merged ("ignore_merges") */
    bool prefix, prefix_again; /* MUR_TOKENIZER_PREFIX, MUR_TOKENIZER_PREFIX_AGAIN */
    bool prefix_missing;       /* only before what begins with no space */
    bool nfc;                  /* text is brought to the normal form NFC */
    bool add_bos, add_eos;
    muc_split_rule rules[MUR_SPLIT_STAGES]; /* how text is cut before merging; patterns are static
                                             * or arena-owned */
    size_t rule_count;
    uint32_t bos, eos; /* MUR_NO_TOKEN if the file names none; callers may set them */
} muc_vocabulary;

/* What the readers below have in common: they check the file against its format and the
 * vocabulary against their limits (2^20 pieces of 1 KB), and refuse by name, with
 * MUC_UNSUPPORTED, whatever would make the runtime's ids differ from the file's meaning. */

/* SentencePiece tokenizer.model with model type BPE and byte fallback, or unigram. */
muc_status muc_vocabulary_read_sentencepiece(muc_context *ctx, muc_bytes file, muc_arena *arena,
                                             muc_vocabulary *out);

/* Hugging Face tokenizer.json: BPE with byte fallback (as Llama 2), byte-level BPE (as GPT-2),
 * unigram or WordPiece (as BERT). It does not say which token ends a text: eos is the special piece
 * with a customary name. */
muc_status muc_vocabulary_read_huggingface(muc_context *ctx, muc_bytes file, muc_arena *arena,
                                           muc_vocabulary *out);

/* The two files of GPT-2's first release, which many folders have alone: vocab.json (pieces and
 * their ids) and merges.txt (a merge a line). They mean a byte-level BPE with GPT-2's pattern whose
 * one special token is <|endoftext|>. */
muc_status muc_vocabulary_read_gpt2(muc_context *ctx, muc_bytes vocab, muc_bytes merges,
                                    muc_arena *arena, muc_vocabulary *out);

/* llama2.c tokenizer.bin. The file does not say how many pieces it has: count is the model's
 * vocabulary size, or 0 to take them all. */
muc_status muc_vocabulary_read_llama2c(muc_context *ctx, muc_bytes file, size_t count,
                                       muc_arena *arena, muc_vocabulary *out);

/* What a model's own file stores. source: that file's path, for messages. */
muc_status muc_vocabulary_of_stored(muc_context *ctx, const char *source,
                                    const muc_stored_vocabulary *stored, muc_arena *arena,
                                    muc_vocabulary *out);

/* The second file of a tokenizer whose first is at path: merges.txt beside a vocab.json,
 * arena-owned; NULL for other tokenizers, which are one file. */
muc_status muc_vocabulary_second_file(muc_context *ctx, const char *path, muc_arena *arena,
                                      const char **out);

/* Chooses the reader by the file's name, which is its path, and content. model_pieces as `count` of
 * llama2.c. */
muc_status muc_vocabulary_read(muc_context *ctx, muc_bytes file, size_t model_pieces,
                               muc_arena *arena, muc_vocabulary *out);

#endif
