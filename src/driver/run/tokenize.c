/* tokenize.c - gives the tokens of a text, and the text of tokens, as a model's tokenizer has them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "base/text.h"
#include "muc/tokenize.h"
#include "report/report_builder.h"
#include "run/opened_model.h"
#include "run/text_passages.h"
#include "text/tokenizer.h"

/* A table's row for each token. */
static void add_tokens(muc_report *report, const mur_tokenizer *tokenizer, const uint32_t *ids,
                       size_t count)
{
    muc_report_add_count(report, "count", count);
    muc_report_begin_table(report, "tokens");
    for (size_t i = 0; i < count; i++) {
        const uint8_t *piece;
        size_t size = mur_tokenizer_piece(tokenizer, ids[i], &piece);

        muc_report_begin_row(report);
        muc_report_add_count(report, "id", ids[i]);
        muc_report_add_text(report, "piece", "%.*s", (int)size, (const char *)piece);
        muc_report_end(report);
    }
    muc_report_end(report);
}

muc_status muc_tokenize(muc_context *ctx, const muc_model *model, const char *text,
                        const muc_tokenize_options *options, muc_report **out)
{
    MUC_IN_C_LOCALE;

    uint32_t *ids, flags = 0;
    muc_status status;
    size_t count;

    MUC_TRY(muc_model_need_tokenizer(ctx, model));
    flags |= options->no_bos ? 0 : MUR_ENCODE_BOS | MUR_ENCODE_EOS;
    flags |= options->no_special ? 0 : MUR_ENCODE_SPECIAL;
    MUC_TRY(muc_tokenizer_encode(ctx, &model->tokenizer, text, strlen(text), flags, &ids, &count));
    status = muc_report_new(ctx, out);
    if (status == MUC_OK) {
        add_tokens(*out, &model->tokenizer, ids, count);
        status = muc_report_status(ctx, *out);
    }
    free(ids);
    return status;
}

/* The next number of the list at *at; false at its end. */
static muc_status next_id(muc_context *ctx, const char **at, uint32_t pieces, uint32_t *id,
                          bool *found)
{
    unsigned long long value;
    char *end;

    while (muc_is_space(**at) || (**at && strchr(",[]", **at)))
        ++*at;
    *found = **at != '\0';
    if (!*found)
        return MUC_OK;
    if (**at < '0' || **at > '9')
        return muc_fail(ctx, MUC_USAGE, "ids", MUC_NO_OFFSET,
                        "'%.16s' is not a number of a token: expected numbers as in 1,403,407",
                        *at);
    value = strtoull(*at, &end, 10);
    if (value >= pieces)
        return muc_fail(ctx, MUC_USAGE, "ids", MUC_NO_OFFSET,
                        "there is no token %.*s: the tokenizer has 0 to %" PRIu32,
                        (int)(end - *at < 24 ? end - *at : 24), *at, pieces - 1);
    *id = (uint32_t)value;
    *at = end;
    return MUC_OK;
}

muc_status muc_detokenize(muc_context *ctx, const muc_model *model, const char *ids, char **out,
                          size_t *size)
{
    MUC_IN_C_LOCALE;

    uint32_t id = MUR_NO_TOKEN, previous = MUR_NO_TOKEN;
    muc_text text = { 0 };
    muc_status status;
    bool found = true;

    MUC_TRY(muc_model_need_tokenizer(ctx, model));
    muc_text_add_bytes(&text, "", 0);
    do {
        status = next_id(ctx, &ids, model->tokenizer.header->pieces, &id, &found);
        if (status == MUC_OK && found) {
            const uint8_t *bytes;
            size_t count = mur_tokenizer_decode(&model->tokenizer, id, previous, &bytes);

            muc_text_add_bytes(&text, bytes, count);
            previous = id;
        }
    } while (status == MUC_OK && found);
    if (status == MUC_OK)
        status = muc_text_status(ctx, &text);
    if (status != MUC_OK) {
        muc_text_free(&text);
        return status;
    }
    *out = text.data;
    *size = text.size;
    return MUC_OK;
}
