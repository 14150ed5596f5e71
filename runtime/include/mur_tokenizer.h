/* mur_tokenizer.h - text to token ids and back, from one compiled form executed in place.
 *
 * Encoding by byte-pair merges of two families that differ only in how text becomes the first
 * symbols: SentencePiece BPE starts from characters, with single bytes for those without a piece;
 * byte-level BPE (GPT-2 and its heirs) starts from bytes. What has no piece at all becomes the
 * unknown piece, or nothing where there is none. Merges are by pair: the best (lowest) rank first,
 * the leftmost of equals.
 *
 * The compiled form: little-endian 32-bit words at a 4-byte-aligned address, of these parts.
 *
 *   header     mur_tokenizer_header
 *   pieces     [pieces + 1][2]  bits 0..27 where the text starts in `text`, bits 28..31 the type;
 *                               first of the merges whose left part it is. A piece's text and its
 *                               merges end where the next one's start; the last entry is only an
 *                               end
 *   merges     [merges][2]      ascending by (left, right). bits 0..19 the right part, 20..31 low
 *                               bits of the result; bits 0..7 high bits of the result, 8..31 the
 *                               rank
 *   byte_ids   [256]            the piece of each byte, or MUR_NO_TOKEN
 *   index      [indexed]        pieces found by their text, ascending by it: the characters
 *                               (character alphabet), or the segments that are taken whole,
 * whatever merges make of them (byte alphabet) specials   [specials][2]    pieces found in the text
 * before all else, ascending by what is found. bits 0..19 the piece, 20..31 bytes of it; bits 0..27
 * where it starts in `text`, 28..31 MUR_SPECIAL_... split      [split_words]    how text is cut
 * before merging: mur_split.h text       bytes            as they are in plain text: U+2581 is a
 * space, a byte piece is its byte, the byte-level alphabet is undone; then what specials are found
 * by if it is something else; padded with 0 to a word
 *
 * A tokenizer that asks for the normal form NFC puts what is between special pieces in it first.
 */
#ifndef MUR_TOKENIZER_H
#define MUR_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "mur_split.h"
#include "mur_status.h"

enum {
    MUR_TOKENIZER_MAGIC = 0x4b4f544d, /* "MTOK" */
    MUR_TOKENIZER_VERSION = 2,
    MUR_TOKENIZER_MAX_PIECES = 1 << 20,
    MUR_TOKENIZER_MAX_MERGES = 1 << 24,
    MUR_TOKENIZER_MAX_TEXT = 1 << 28 /* bytes of all pieces; also of one text to encode */
};

#define MUR_NO_TOKEN UINT32_MAX

/* The types have SentencePiece's values. Unknown, control and user pieces are special. */
enum {
    MUR_PIECE_NORMAL = 1,
    MUR_PIECE_UNKNOWN = 2, /* as control */
    MUR_PIECE_CONTROL = 3, /* decodes to nothing; in text only if MUR_ENCODE_SPECIAL asks */
    MUR_PIECE_USER = 4,    /* found verbatim in any text */
    MUR_PIECE_UNUSED = 5,
    MUR_PIECE_BYTE = 6
};

/* How a special piece is found. */
enum {
    MUR_SPECIAL_ALWAYS = 1, /* in any text, otherwise only if MUR_ENCODE_SPECIAL asks */
    MUR_SPECIAL_LEFT = 2,   /* white space before it belongs to it */
    MUR_SPECIAL_RIGHT = 4,  /* and after it */
    MUR_SPECIAL_MAX_BYTES = 4095
};

/* Bits of the header's flags. */
enum {
    MUR_TOKENIZER_BYTES = 1,           /* the byte alphabet, not characters */
    MUR_TOKENIZER_PREFIX = 2,          /* a space is put before the text */
    MUR_TOKENIZER_PREFIX_AGAIN = 4,    /* and after each special piece */
    MUR_TOKENIZER_ADD_BOS = 8,         /* a text begins with bos */
    MUR_TOKENIZER_NFC = 16,            /* text is brought to the normal form NFC */
    MUR_TOKENIZER_PREFIX_MISSING = 32, /* a space is put only before what begins with none */
    MUR_TOKENIZER_UNIGRAM = 64,        /* the likeliest pieces, no merges: mur_unigram.h */
    MUR_TOKENIZER_WORDPIECE = 128,     /* the longest pieces of words, no merges: mur_wordpiece.h */
    MUR_TOKENIZER_ADD_EOS = 256,       /* a text ends with eos, which there is */
    MUR_TOKENIZER_KINDS = MUR_TOKENIZER_UNIGRAM | MUR_TOKENIZER_WORDPIECE,
    MUR_TOKENIZER_FLAGS = 511
};

typedef struct mur_tokenizer_header {
    uint32_t magic, version;
    uint32_t bytes; /* of the whole compiled form */
    uint32_t pieces, merges, indexed, specials, split_words, text_bytes;
    uint32_t flags;
    uint32_t bos, eos, unknown; /* MUR_NO_TOKEN if there is none */
} mur_tokenizer_header;

/* Writes text's normal form as UTF-8 over words[0..word_count-1], and its bytes to *out_size. Bytes
 * that are not UTF-8 stay. 3 words for each byte of text and twice MUR_NFC_PARTS always suffice;
 * returns 0 if word_count is too few. */
typedef int mur_normalize(const uint8_t *text, size_t size, uint32_t *words, size_t word_count,
                          size_t *out_size);

enum {
    MUR_NFC_PARTS = 5,  /* more than any character has */
    MUR_NFC_GROWTH = 3, /* most bytes that come of one */
};

/* The normal form NFC; it alone brings in its tables (mur_normalize.c). */
mur_normalize mur_nfc;

/* Encodes what lies between two cuts otherwise than by merges. */
typedef struct mur_encoder mur_encoder;
typedef mur_status mur_segment(mur_encoder *encoder, const uint8_t *text, size_t size,
                               uint32_t prefix);

/* Borrows the compiled form; no member but header is for callers. */
typedef struct mur_tokenizer {
    const mur_tokenizer_header *header;
    const uint32_t *pieces, *merges, *byte_ids, *index, *specials;
    const uint8_t *text;
    mur_splitter splitter;
    mur_normalize *normalize;
    mur_segment *segment;       /* NULL: by merges */
    uint8_t special_starts[32]; /* bit b: a special piece begins with byte b */
} mur_tokenizer;

/* Checks a compiled form of at most `bytes` bytes in one pass, so that all later use is within
 * bounds and ends whatever the form holds. normalize: mur_nfc, or NULL where none asks for NFC.
 * Returns MUR_E_MALFORMED, or MUR_E_UNSUPPORTED for another version, NFC without normalize,
 * unigram, which mur_unigram_open takes, or WordPiece, which mur_wordpiece_open takes. */
mur_status mur_tokenizer_open(mur_tokenizer *tokenizer, const void *form, size_t bytes,
                              mur_normalize *normalize);

/* Scratch that suffices to encode text_bytes bytes, at most MUR_TOKENIZER_MAX_TEXT: 20 bytes a
 * byte, with NFC 64. Less will do, with NFC 24 and a little, where the longest segment between two
 * cuts is shorter than the text. */
size_t mur_tokenizer_scratch_bytes(const mur_tokenizer *tokenizer, size_t text_bytes);

/* The most ids that come of text_bytes bytes: 2 a byte, with NFC 3, and 3; usually a quarter of
 * one. More may come of a damaged form of WordPiece, which is MUR_E_NOFIT then. */
size_t mur_tokenizer_most_ids(const mur_tokenizer *tokenizer, size_t text_bytes);

enum {
    MUR_ENCODE_BOS = MUR_TOKENIZER_ADD_BOS, /* begin with bos if the tokenizer does so */
    MUR_ENCODE_SPECIAL = 2, /* unknown and control pieces written in the text become themselves */
    MUR_ENCODE_EOS = MUR_TOKENIZER_ADD_EOS /* end with eos if the tokenizer does so */
};

/* Encodes size bytes, meant to be UTF-8; any other byte is encoded as itself.
 *   scratch   4-byte-aligned, see mur_tokenizer_scratch_bytes
 *   ids       capacity elements; *count of them are written
 * Returns MUR_E_NOFIT if the scratch or the capacity is too small. Time n log n, no recursion. */
mur_status mur_tokenizer_encode(const mur_tokenizer *tokenizer, const uint8_t *text, size_t size,
                                uint32_t flags, void *scratch, size_t scratch_bytes, uint32_t *ids,
                                size_t capacity, size_t *count);

/* The bytes that id adds to a text after the token `previous` (MUR_NO_TOKEN at the start), and
 * their number. They may end within a UTF-8 character that the next token completes. Points into
 * the compiled form. An id beyond the vocabulary gives nothing. */
size_t mur_tokenizer_decode(const mur_tokenizer *tokenizer, uint32_t id, uint32_t previous,
                            const uint8_t **out);

/* The piece itself, of control pieces too: its bytes as they are in plain text, and their number;
 * 0 for an id without a piece. Points into the compiled form. */
size_t mur_tokenizer_piece(const mur_tokenizer *tokenizer, uint32_t id, const uint8_t **out);

#endif
