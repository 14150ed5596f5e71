/* tokenizer_file.c - opens a tokenizer without its model: the file that holds it alone, or a GGUF
 * file of any architecture. */
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "formats/gguf/gguf.h"
#include "muc/tokenize.h"
#include "run/opened_model.h"

static bool ends_with(const char *path, const char *suffix)
{
    const size_t size = strlen(path), length = strlen(suffix);

    return size >= length && strcmp(path + size - length, suffix) == 0;
}

/* What says which tokens begin and end a text is the tokenizer's own part of the file. */
static muc_status compile_gguf(muc_context *ctx, muc_model *model)
{
    muc_model_config *config = &model->checkpoint.config;
    const muc_stored_vocabulary *stored;
    muc_gguf gguf;

    MUC_TRY(muc_gguf_parse(ctx, model->file.bytes, &model->arena, &gguf));
    MUC_TRY(muc_gguf_vocabulary(&gguf, &stored));
    if (!stored)
        return MUC_OK;
    config->has_bos = stored->bos >= 0;
    config->bos = config->has_bos ? (uint32_t)stored->bos : 0;
    config->eos_count = stored->eos >= 0;
    config->eos[0] = config->eos_count ? (uint32_t)stored->eos : 0;
    model->checkpoint.vocabulary = stored;
    return muc_model_compile_tokenizer(ctx, model, NULL, UINT32_MAX);
}

static muc_status open_alone(muc_context *ctx, muc_model *model, bool is_gguf)
{
    muc_status status;

    MUC_TRY(is_gguf ? compile_gguf(ctx, model)
                    : muc_model_compile_tokenizer(ctx, model, model->path, UINT32_MAX));
    model->checkpoint.vocabulary = NULL; /* which was in the file */
    muc_file_close(&model->file);
    model->file = (muc_file){ 0 };
    status = muc_model_open_tokenizer(ctx, model);
    if (status == MUC_OK)
        muc_model_set_tokens(model);
    return status;
}

muc_status muc_tokenizer_of(muc_context *ctx, const char *path, const muc_model_options *options,
                            muc_model **out)
{
    MUC_IN_C_LOCALE;

    const bool is_file = path && !muc_path_is_dir(path) && !(options && options->tokenizer);
    bool is_gguf;
    muc_model *model;
    muc_status status;

    if (!is_file)
        return muc_model_open(ctx, path, options, out);
    MUC_TRY(MUC_NEW_ARRAY(ctx, path, 1, &model));
    status = muc_arena_string(ctx, &model->arena, path, strlen(path), &model->path);
    if (status == MUC_OK)
        status = muc_file_open(ctx, path, &model->file);
    is_gguf = status == MUC_OK && model->file.bytes.size >= 4 &&
              memcmp(model->file.bytes.data, "GGUF", 4) == 0;
    if (is_gguf || ends_with(path, "tokenizer.json") || ends_with(path, ".model") ||
        ends_with(path, "vocab.json")) {
        if (status == MUC_OK)
            status = open_alone(ctx, model, is_gguf);
        if (status == MUC_OK)
            *out = model;
        else
            muc_model_close(model);
        return status;
    }
    muc_model_close(model);
    return status == MUC_OK ? muc_model_open(ctx, path, options, out) : status;
}
