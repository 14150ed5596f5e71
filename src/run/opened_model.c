/* opened_model.c - answers what an opened model has: tokenizer, context, prompt template. */
#include "run/opened_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "formats/mistaken.h"
#include "report/report_builder.h"
#include "run/tokenizer_cache.h"
#include "text/tokenizer.h"

#define PROMPT_MARK "{prompt}"
enum { MOST_TEMPLATE_BYTES = 65536 };

/* What begins or ends a text is not a text, even if the file calls it a token of the user's. */
static void set_control(muc_vocabulary *vocabulary, uint32_t id)
{
    if (id < vocabulary->count && vocabulary->pieces[id].type == MUR_PIECE_USER)
        vocabulary->pieces[id].type = MUR_PIECE_CONTROL;
}

/* What the configuration says of special tokens comes before what the tokenizer's file says. */
static void settle_special_tokens(const muc_model_config *config, muc_vocabulary *vocabulary)
{
    if (config->has_bos)
        vocabulary->bos = config->bos;
    if (config->eos_count)
        vocabulary->eos = config->eos[0];
    set_control(vocabulary, vocabulary->bos);
    for (uint32_t i = 0; i < config->eos_count; i++)
        set_control(vocabulary, config->eos[i]);
    set_control(vocabulary, vocabulary->eos);
}

static muc_status compile(muc_context *ctx, muc_model *model, muc_vocabulary *vocabulary,
                          const char *source, uint32_t pieces)
{
    uint8_t *form;

    if (vocabulary->count > pieces)
        return muc_fail(ctx, MUC_MALFORMED, source, MUC_NO_OFFSET,
                        "the tokenizer has %zu pieces, the model only %u", vocabulary->count,
                        pieces);
    settle_special_tokens(&model->checkpoint.config, vocabulary);
    MUC_TRY(muc_tokenizer_compile(ctx, vocabulary, &model->arena, &form, &model->tokenizer_bytes));
    model->tokenizer_form = form;
    return MUC_OK;
}

/* Reads and compiles a file, unless that was done before. What the form depends on besides are the
 * special tokens, and the pieces that a model has: one with fewer is refused, not taken. */
static muc_status compile_file(muc_context *ctx, muc_model *model, muc_bytes file, uint32_t pieces)
{
    const muc_model_config *config = &model->checkpoint.config;
    uint32_t settings[4 + MUC_MAX_EOS] = { pieces, config->has_bos, config->bos,
                                           config->eos_count };
    muc_vocabulary vocabulary = { 0 };
    muc_kept_form kept = { NULL, 0 };
    const char *second;
    uint8_t *form;

    memcpy(settings + 4, config->eos, sizeof(config->eos));
    MUC_TRY(muc_vocabulary_second_file(ctx, file.name, &model->arena, &second));
    if (!second)
        MUC_TRY(muc_kept_form_of(ctx, &model->arena, file, settings, sizeof(settings), &kept));
    MUC_TRY(muc_kept_form_read(ctx, &model->arena, &kept, &form, &model->tokenizer_bytes));
    model->tokenizer_form = form;
    if (form)
        return MUC_OK;
    MUC_TRY(muc_refuse_mistaken(ctx, file));
    MUC_TRY(muc_vocabulary_read(ctx, file, pieces, &model->arena, &vocabulary));
    MUC_TRY(compile(ctx, model, &vocabulary, file.name, pieces));
    muc_kept_form_write(ctx, &kept, model->tokenizer_form, model->tokenizer_bytes);
    return MUC_OK;
}

muc_status muc_model_compile_tokenizer(muc_context *ctx, muc_model *model, const char *path,
                                       uint32_t pieces)
{
    const muc_stored_vocabulary *stored = model->checkpoint.vocabulary;
    muc_vocabulary vocabulary = { 0 };
    muc_status status;
    muc_file file;

    if (path) {
        MUC_TRY(muc_file_open(ctx, path, &file));
        status = compile_file(ctx, model, file.bytes, pieces);
        muc_file_close(&file);
        return status;
    }
    if (!stored)
        return MUC_OK;
    MUC_TRY(muc_vocabulary_of_stored(ctx, model->path, stored, &model->arena, &vocabulary));
    return compile(ctx, model, &vocabulary, model->path, pieces);
}

void muc_model_set_tokens(muc_model *model)
{
    const muc_model_config *config = &model->checkpoint.config;
    muc_model_tokens *tokens = &model->tokens;

    memset(tokens, 0xff, sizeof(*tokens));
    if (model->tokenizer_bytes) {
        tokens->begin = model->tokenizer.header->bos;
        tokens->ends[0] = model->tokenizer.header->eos;
    }
    if (config->has_bos)
        tokens->begin = config->bos;
    for (uint32_t i = 0; i < config->eos_count && i < MUC_MODEL_MAX_ENDS; i++)
        tokens->ends[i] = config->eos[i];
}

muc_status muc_model_open_carried(muc_context *ctx, muc_model *model, const char *given,
                                  uint32_t pieces)
{
    muc_model_config *config = &model->checkpoint.config;

    if (given && model->tokenizer_bytes)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "the file carries its tokenizer; --tokenizer is for models without one");
    if (!given)
        return muc_model_open_tokenizer(ctx, model);
    config->has_bos = model->tokens.begin != MUR_NO_TOKEN;
    config->bos = model->tokens.begin;
    while (config->eos_count < MUC_MODEL_MAX_ENDS &&
           model->tokens.ends[config->eos_count] != MUR_NO_TOKEN) {
        config->eos[config->eos_count] = model->tokens.ends[config->eos_count];
        config->eos_count++;
    }
    MUC_TRY(muc_model_compile_tokenizer(ctx, model, given, pieces));
    MUC_TRY(muc_model_open_tokenizer(ctx, model));
    muc_model_set_tokens(model);
    return MUC_OK;
}

muc_status muc_model_set_template(muc_context *ctx, muc_model *model, const char *source,
                                  const char *text, size_t size)
{
    const char *copy, *mark;

    if (size > MOST_TEMPLATE_BYTES)
        return muc_fail(ctx, MUC_MALFORMED, source, MUC_NO_OFFSET,
                        "a prompt template of %zu bytes, at most %d", size, MOST_TEMPLATE_BYTES);
    MUC_TRY(muc_arena_string(ctx, &model->arena, text, size, &copy));
    mark = strstr(copy, PROMPT_MARK);
    if (!mark || strstr(mark + 1, PROMPT_MARK) || strlen(copy) != size)
        return muc_fail(ctx, MUC_MALFORMED, source, MUC_NO_OFFSET,
                        "a prompt template is text with one " PROMPT_MARK " in it");
    model->prompt_template = copy;
    return MUC_OK;
}

muc_status muc_model_open_tokenizer(muc_context *ctx, muc_model *model)
{
    return model->tokenizer_bytes ? muc_tokenizer_open(ctx, model->path, model->tokenizer_form,
                                                       model->tokenizer_bytes, &model->tokenizer)
                                  : MUC_OK;
}

muc_status muc_model_set_context(muc_context *ctx, muc_model *model, uint32_t asked, uint32_t most)
{
    if (asked > most)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "a context of %u is asked for, the model was made for %u", asked, most);
    model->context = asked ? asked : most;
    return MUC_OK;
}

muc_status muc_tokenizer_files_of(muc_context *ctx, const char *path, muc_arena *arena,
                                  muc_tokenizer_files *out)
{
    size_t size = strlen(path);
    bool is_json = size > 5 && strcmp(path + size - 5, ".json") == 0;
    const char *second;

    MUC_TRY(muc_vocabulary_second_file(ctx, path, arena, &second));
    *out = (muc_tokenizer_files){ .count = second ? 2 : 1 };
    out->files[0].path = path;
    out->files[0].name = second ? "vocab.json" : is_json ? "tokenizer.json" : "tokenizer.model";
    out->files[1].path = second;
    out->files[1].name = "merges.txt";
    return MUC_OK;
}

void muc_model_close(muc_model *model)
{
    if (!model)
        return;
    if (model->release)
        model->release(model);
    muc_checkpoint_close(&model->checkpoint);
    muc_unified_free(&model->unified);
    muc_network_close(&model->network);
    muc_bdt_free(&model->blocks);
    muc_file_close(&model->file);
    muc_arena_free(&model->arena);
    free(model);
}

bool muc_model_is_network(const muc_model *model)
{
    MUC_IN_C_LOCALE;

    return model->kind == MUC_MODEL_NETWORK;
}

muc_status muc_model_need_tokenizer(muc_context *ctx, const muc_model *model)
{
    if (model->kind == MUC_MODEL_NETWORK)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "the file is a network, which runs on arrays (--input), not a language "
                        "model's checkpoint");
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
    for (unsigned i = 0; i < MUC_MODEL_MAX_ENDS; i++) {
        if (model->tokens.ends[i] == token)
            return true;
    }
    return false;
}

void muc_model_add_tokenizer(muc_report *report, const muc_model *model)
{
    if (!model->tokenizer_bytes) {
        muc_report_add_text(report, "tokenizer", "none");
        return;
    }
    muc_report_add_text(report, "tokenizer", "%u pieces, crc32 %08x",
                        model->tokenizer.header->pieces,
                        muc_crc32(0, model->tokenizer_form, model->tokenizer_bytes));
}
