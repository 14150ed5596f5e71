/* tokenizer.c - the runtime's tokenizer with the host's memory and messages. */
#include "text/tokenizer.h"

#include <stdlib.h>

#include "mur_unigram.h"
#include "mur_wordpiece.h"

muc_status muc_tokenizer_open(muc_context *ctx, const char *source, const uint8_t *form,
                              size_t bytes, mur_tokenizer *out)
{
    mur_status status = mur_unigram_open(out, form, bytes, mur_nfc);

    if (status == MUR_E_UNSUPPORTED)
        status = mur_wordpiece_open(out, form, bytes, mur_nfc);
    if (status == MUR_OK)
        return MUC_OK;
    if (status == MUR_E_UNSUPPORTED)
        return muc_fail(ctx, MUC_UNSUPPORTED, source, MUC_NO_OFFSET,
                        "the compiled tokenizer has another version than %d",
                        MUR_TOKENIZER_VERSION);
    return muc_fail(ctx, MUC_MALFORMED, source, MUC_NO_OFFSET,
                    "not a compiled tokenizer, or a damaged one");
}

muc_status muc_tokenizer_encode(muc_context *ctx, const mur_tokenizer *tokenizer, const char *text,
                                size_t size, uint32_t flags, uint32_t **ids, size_t *count)
{
    uint32_t *scratch;
    size_t scratch_bytes, capacity;
    mur_status status;

    if (size > MUR_TOKENIZER_MAX_TEXT)
        return muc_fail(ctx, MUC_UNSUPPORTED, "text", MUC_NO_OFFSET,
                        "a text of %zu bytes, expected at most %d", size, MUR_TOKENIZER_MAX_TEXT);
    scratch_bytes = mur_tokenizer_scratch_bytes(tokenizer, size);
    capacity = mur_tokenizer_most_ids(tokenizer, size);
    MUC_TRY(MUC_NEW_ARRAY(ctx, "text", scratch_bytes / 4, &scratch));
    if (muc_new_array(ctx, "text", capacity, sizeof(**ids), (void **)ids) != MUC_OK) {
        free(scratch);
        return MUC_NOMEM;
    }
    status = mur_tokenizer_encode(tokenizer, (const uint8_t *)text, size, flags, scratch,
                                  scratch_bytes, *ids, capacity, count);
    free(scratch);
    if (status == MUR_OK)
        return MUC_OK;
    free(*ids);
    *ids = NULL;
    if (tokenizer->header->flags & MUR_TOKENIZER_WORDPIECE)
        return muc_fail(ctx, MUC_MALFORMED, "tokenizer", MUC_NO_OFFSET,
                        "its map makes more of a character than there can be");
    return muc_fail(ctx, MUC_BUG, "text", MUC_NO_OFFSET, "%zu bytes of text: no room", size);
}
