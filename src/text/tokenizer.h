/* tokenizer.h - compiles a vocabulary, and encodes and decodes on the host with the runtime's
 * code: one compiled form, one implementation. */
#ifndef MUC_TEXT_TOKENIZER_H
#define MUC_TEXT_TOKENIZER_H

#include "text/vocabulary.h"

/* The compiled form of mur_tokenizer.h, arena-owned and 16-byte aligned. It holds what encoding
 * and decoding need and nothing else, so files that mean the same tokenizer give the same bytes:
 * scores become dense ranks, and merges that are exactly the splits of the pieces, piece by piece,
 * become ranks of pieces, as SentencePiece has them. */
muc_status muc_tokenizer_compile(muc_context *ctx, const muc_vocabulary *vocabulary,
                                 muc_arena *arena, uint8_t **form, size_t *bytes);

/* Opens a compiled form; source names it in messages. */
muc_status muc_tokenizer_open(muc_context *ctx, const char *source, const uint8_t *form,
                              size_t bytes, mur_tokenizer *out);

/* mur_tokenizer_encode with memory of its own: *ids is malloc'ed, for the caller to free. */
muc_status muc_tokenizer_encode(muc_context *ctx, const mur_tokenizer *tokenizer, const char *text,
                                size_t size, uint32_t flags, uint32_t **ids, size_t *count);

#endif
