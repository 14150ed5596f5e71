/* muc/tokenize.h - a text becomes tokens, and tokens become text. */
#ifndef MUC_TOKENIZE_H
#define MUC_TOKENIZE_H

#include "muc/model.h"

MUC_API_BEGIN

typedef struct muc_tokenize_options {
    bool no_bos; /* without the tokens that begin and end a text, even if the model puts them there
                  */
    bool no_special; /* special tokens written in the text, "</s>", stay text */
} muc_tokenize_options;

/* Opens what carries a tokenizer, for the two functions below: what muc_model_open takes, or the
 * tokenizer alone: tokenizer.json, a SentencePiece .model, vocab.json beside merges.txt, or a GGUF
 * file of any architecture. */
muc_status muc_tokenizer_of(muc_context *ctx, const char *path, const muc_model_options *options,
                            muc_model **out);

/* The tokens of a NUL-terminated text by the model's tokenizer. Keys: count, and the table
 * "tokens" (id, piece: bytes that are not UTF-8 are spelled \xff). */
muc_status muc_tokenize(muc_context *ctx, const muc_model *model, const char *text,
                        const muc_tokenize_options *options, muc_report **out);

/* The text of tokens: ids are whole numbers separated by commas or white space, in brackets or
 * not. Control pieces give nothing. The result is malloc'ed and NUL-terminated; *size leaves the
 * NUL out. MUC_USAGE for what is not a number, or no token of the model. */
muc_status muc_detokenize(muc_context *ctx, const muc_model *model, const char *ids, char **out,
                          size_t *size);

MUC_API_END

#endif
