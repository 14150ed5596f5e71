/* text_input.h - from a text to what a network of tokens takes, and from what it gives to tokens.
 *
 * The first input of i32 or i64 that is a vector, or a batch of one, takes the tokens; inputs of
 * its length that are called a mask are 1 where there are tokens and 0 behind them, types and
 * segments are 0, positions 0, 1, 2 .. Behind the text a fixed length is filled with token 0.
 */
#ifndef MUC_RUN_TEXT_INPUT_H
#define MUC_RUN_TEXT_INPUT_H

#include "run/opened_model.h"

/* The arrays of all inputs, in arena. windows: a text of more tokens than a run takes becomes
 * several samples, along the first dimension, and its rest is dropped; otherwise that is
 * MUC_USAGE, as are an empty text and an input that is none of the above. flags: MUR_ENCODE_SPECIAL
 * or 0. */
muc_status muc_text_arrays(muc_context *ctx, muc_arena *arena, const muc_graph *graph,
                           const mur_tokenizer *tokenizer, muc_bytes text, bool windows,
                           uint32_t flags, muc_tensor_view **out, size_t *count,
                           uint32_t *token_count);

/* Adds the table "next" (token, text, score): the greatest of the row of the last token, or of the
 * last row, if a result has a column for each piece of the tokenizer; nothing otherwise. */
void muc_text_add_next(const mur_tokenizer *tokenizer, uint32_t token_count,
                       const muc_tensor_view *result, muc_report *report);

#endif
