/* model.c - opens a checkpoint, a .bdt file or a program, with its tokenizer and prompt template.
 */
#include "driver/model.h"

#include <stdlib.h>
#include <string.h>

#include "text/tokenizer.h"

#define PROMPT_MARK "{prompt}"
enum { MOST_TEMPLATE_BYTES = 65536 };

/* What the configuration says of special tokens comes before what the tokenizer's file says. */
static void settle_special_tokens(const muc_model_config *config, muc_vocabulary *vocabulary)
{
    if (config->has_bos)
        vocabulary->bos = config->bos;
    if (config->eos_count)
        vocabulary->eos = config->eos[0];
}

static muc_status compile_tokenizer(muc_context *ctx, muc_model *model, const char *path)
{
    const muc_model_config *config = &model->checkpoint.config;
    const muc_stored_vocabulary *stored = model->checkpoint.vocabulary;
    muc_vocabulary vocabulary = { 0 };
    muc_file file = { 0 };
    muc_status status;
    uint8_t *form;

    if (!path)
        path = model->checkpoint.tokenizer_path;
    if (path) {
        MUC_TRY(muc_file_open(ctx, path, &file));
        status =
            muc_vocabulary_read(ctx, file.bytes, config->vocabulary, &model->arena, &vocabulary);
    } else if (stored) {
        status = muc_vocabulary_of_stored(ctx, model->path, stored, &model->arena, &vocabulary);
    } else {
        return MUC_OK;
    }
    if (status == MUC_OK && vocabulary.count > config->vocabulary)
        status = muc_fail(ctx, MUC_MALFORMED, path ? path : model->path, MUC_NO_OFFSET,
                          "the tokenizer has %zu pieces, the model only %u", vocabulary.count,
                          config->vocabulary);
    if (status == MUC_OK) {
        settle_special_tokens(config, &vocabulary);
        status =
            muc_tokenizer_compile(ctx, &vocabulary, &model->arena, &form, &model->tokenizer_bytes);
        model->tokenizer_form = form;
    }
    muc_file_close(&file);
    return status;
}

/* prompt.txt in a model's folder: the text around a prompt, with {prompt} in its place. */
static muc_status read_prompt_template(muc_context *ctx, muc_model *model)
{
    const char *path, *text, *mark;
    muc_status status = MUC_OK;
    muc_file file;
    size_t size;

    if (!muc_path_is_dir(model->path))
        return MUC_OK;
    MUC_TRY(muc_arena_format(ctx, &model->arena, &path, "%s/prompt.txt", model->path));
    if (!muc_path_exists(path))
        return MUC_OK;
    MUC_TRY(muc_file_open(ctx, path, &file));
    size = file.bytes.size;
    if (size > MOST_TEMPLATE_BYTES)
        status = muc_fail(ctx, MUC_MALFORMED, path, MUC_NO_OFFSET, "%zu bytes, at most %d", size,
                          MOST_TEMPLATE_BYTES);
    if (size && file.bytes.data[size - 1] == '\n')
        size--;
    if (status == MUC_OK)
        status = muc_arena_string(ctx, &model->arena, (const char *)file.bytes.data, size, &text);
    muc_file_close(&file);
    if (status != MUC_OK)
        return status;
    mark = strstr(text, PROMPT_MARK);
    if (!mark || strstr(mark + 1, PROMPT_MARK) || strlen(text) != size)
        return muc_fail(ctx, MUC_MALFORMED, path, MUC_NO_OFFSET,
                        "expected text with one " PROMPT_MARK " in it");
    model->prompt_template = text;
    return MUC_OK;
}

static muc_status open_checkpoint(muc_context *ctx, muc_model *model,
                                  const muc_model_options *options)
{
    uint32_t most;

    MUC_TRY(muc_checkpoint_open(ctx, model->path, &model->checkpoint));
    most = model->checkpoint.config.context;
    if (options->context > most)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "a context of %u is asked for, the model was made for %u", options->context,
                        most);
    model->context = options->context ? options->context : most;
    MUC_TRY(compile_tokenizer(ctx, model, options->tokenizer));
    return read_prompt_template(ctx, model);
}

muc_status muc_model_open(muc_context *ctx, const char *path, const muc_model_options *options,
                          muc_model **out)
{
    static const muc_model_options defaults;
    muc_model *model;
    muc_status status;

    if (!path)
        MUC_TRY(muc_builtin_path(ctx, &path));
    MUC_TRY(MUC_NEW_ARRAY(ctx, path, 1, &model));
    status = muc_arena_string(ctx, &model->arena, path, strlen(path), &model->path);
    if (status == MUC_OK)
        status = open_checkpoint(ctx, model, options ? options : &defaults);
    if (status == MUC_OK && model->tokenizer_bytes)
        status = muc_tokenizer_open(ctx, model->path, model->tokenizer_form, model->tokenizer_bytes,
                                    &model->tokenizer);
    if (status != MUC_OK) {
        muc_model_close(model);
        return status;
    }
    *out = model;
    return MUC_OK;
}

void muc_model_close(muc_model *model)
{
    if (!model)
        return;
    muc_checkpoint_close(&model->checkpoint);
    muc_file_close(&model->file);
    muc_arena_free(&model->arena);
    free(model);
}

muc_status muc_model_need_tokenizer(muc_context *ctx, const muc_model *model)
{
    if (model->tokenizer_bytes)
        return MUC_OK;
    return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                    "the model carries no tokenizer; give one with --tokenizer FILE");
}

muc_status muc_model_dress_prompt(muc_context *ctx, const muc_model *model, muc_arena *arena,
                                  const char *prompt, bool raw, const char **out)
{
    const char *template = model->prompt_template, *mark;

    if (!template || raw) {
        *out = prompt;
        return MUC_OK;
    }
    mark = strstr(template, PROMPT_MARK);
    return muc_arena_format(ctx, arena, out, "%.*s%s%s", (int)(mark - template), template, prompt,
                            mark + strlen(PROMPT_MARK));
}

bool muc_model_is_end(const muc_model *model, uint32_t token)
{
    const muc_model_config *config = &model->checkpoint.config;

    for (uint32_t i = 0; i < config->eos_count; i++) {
        if (config->eos[i] == token)
            return true;
    }
    return model->tokenizer_bytes && model->tokenizer.header->eos == token;
}
