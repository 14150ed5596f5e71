/* learn.h - makes a tokenizer for a text. */
#ifndef MUC_TEXT_LEARN_H
#define MUC_TEXT_LEARN_H

#include "base/bytes.h"
#include "base/text.h"

/* The special pieces, the bytes and the space: what every such tokenizer has. */
enum { MUC_LEARN_LEAST_PIECES = 3 + 256 + 1 };

/* BPE with byte fallback, as a tokenizer.json: <unk>, <s> before a text, </s>, the 256 bytes, the
 * space as U+2581, then the text's characters by their number (at most half of the pieces left),
 * then merges. A piece has spaces at its start only, and no control characters, so that a device
 * can cut text at spaces without Unicode's tables. MUC_LEARN_LEAST_PIECES pieces: a token a byte.
 * There may be fewer pieces than asked for where no pair is left that occurs twice. Of pairs that
 * occur as often, the one with the lower ids merges first.
 * Fails with MUC_USAGE if pieces is out of range. */
muc_status muc_tokenizer_learn(muc_context *ctx, const muc_string_view *documents, size_t count,
                               uint32_t pieces, muc_text *json);

#endif
