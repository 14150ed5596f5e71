/* model.c - opens a checkpoint, a network, a .bdt file or a program, with its tokenizer and prompt
 * template.
 */
#include "driver/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/choice.h"
#include "base/locale.h"
#include "driver/arrays.h"
#include "driver/image_input.h"
#include "driver/blocks.h"
#include "driver/engine_code.h"
#include "driver/exports.h"
#include "driver/network_int8.h"
#include "driver/pictures.h"
#include "driver/program.h"
#include "driver/target.h"
#include "driver/text_input.h"
#include "formats/mistaken.h"
#include "passes/fold.h"
#include "text/tokenizer.h"

#define PROMPT_MARK "{prompt}"
enum { MOST_TEMPLATE_BYTES = 65536 };

/* What begins or ends a text is no text, even if the file calls it a token of the user's. */
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

/* path: NULL: what the checkpoint stores, if it does; pieces: the most that the model has */
static muc_status compile_tokenizer(muc_context *ctx, muc_model *model, const char *path,
                                    uint32_t pieces)
{
    const muc_model_config *config = &model->checkpoint.config;
    const muc_stored_vocabulary *stored = model->checkpoint.vocabulary;
    muc_vocabulary vocabulary = { 0 };
    muc_file file = { 0 };
    muc_status status;
    uint8_t *form;

    if (path) {
        MUC_TRY(muc_file_open(ctx, path, &file));
        status = muc_refuse_mistaken(ctx, file.bytes);
        if (status == MUC_OK)
            status = muc_vocabulary_read(ctx, file.bytes, pieces, &model->arena, &vocabulary);
    } else if (stored) {
        status = muc_vocabulary_of_stored(ctx, model->path, stored, &model->arena, &vocabulary);
    } else {
        return MUC_OK;
    }
    if (status == MUC_OK && vocabulary.count > pieces)
        status =
            muc_fail(ctx, MUC_MALFORMED, path ? path : model->path, MUC_NO_OFFSET,
                     "the tokenizer has %zu pieces, the model only %u", vocabulary.count, pieces);
    if (status == MUC_OK) {
        settle_special_tokens(config, &vocabulary);
        status =
            muc_tokenizer_compile(ctx, &vocabulary, &model->arena, &form, &model->tokenizer_bytes);
        model->tokenizer_form = form;
    }
    muc_file_close(&file);
    return status;
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

/* prompt.txt in a model's folder: the text around a prompt, with {prompt} in its place. */
static muc_status read_prompt_template(muc_context *ctx, muc_model *model)
{
    const char *path, *text;
    muc_status status;
    muc_file file;
    size_t size;

    if (!muc_path_is_dir(model->path))
        return MUC_OK;
    MUC_TRY(muc_arena_format(ctx, &model->arena, &path, "%s/prompt.txt", model->path));
    if (!muc_path_exists(path))
        return MUC_OK;
    MUC_TRY(muc_file_open(ctx, path, &file));
    text = (const char *)file.bytes.data;
    size = file.bytes.size;
    if (size && text[size - 1] == '\n')
        size--;
    status = muc_model_set_template(ctx, model, path, text, size);
    muc_file_close(&file);
    return status;
}

static void set_tokens(muc_model *model)
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

static muc_status open_tokenizer(muc_context *ctx, muc_model *model)
{
    return model->tokenizer_bytes ? muc_tokenizer_open(ctx, model->path, model->tokenizer_form,
                                                       model->tokenizer_bytes, &model->tokenizer)
                                  : MUC_OK;
}

static muc_status set_context(muc_context *ctx, muc_model *model, uint32_t asked, uint32_t most)
{
    if (asked > most)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "a context of %u is asked for, the model was made for %u", asked, most);
    model->context = asked ? asked : most;
    return MUC_OK;
}

/* all that a checkpoint has besides its tensors */
static muc_status open_rest(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    muc_checkpoint *checkpoint = &model->checkpoint;
    const char *given = options->tokenizer;

    MUC_TRY(set_context(ctx, model, options->context, checkpoint->config.context));
    if (given) /* in the place of its own, in what is written of it too */
        MUC_TRY(muc_arena_string(ctx, &model->arena, given, strlen(given),
                                 &checkpoint->tokenizer_path));
    MUC_TRY(
        compile_tokenizer(ctx, model, checkpoint->tokenizer_path, checkpoint->config.vocabulary));
    MUC_TRY(open_tokenizer(ctx, model));
    set_tokens(model);
    return read_prompt_template(ctx, model);
}

/* the tokenizer of a file that carries its own, or none: then the one that is given, of
 * at most so many pieces */
static muc_status open_carried(muc_context *ctx, muc_model *model, const char *given,
                               uint32_t pieces)
{
    muc_model_config *config = &model->checkpoint.config;

    if (given && model->tokenizer_bytes)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "the file carries its tokenizer; --tokenizer is for models without one");
    if (!given)
        return open_tokenizer(ctx, model);
    config->has_bos = model->tokens.begin != MUR_NO_TOKEN;
    config->bos = model->tokens.begin;
    while (config->eos_count < MUC_MODEL_MAX_ENDS &&
           model->tokens.ends[config->eos_count] != MUR_NO_TOKEN) {
        config->eos[config->eos_count] = model->tokens.ends[config->eos_count];
        config->eos_count++;
    }
    MUC_TRY(compile_tokenizer(ctx, model, given, pieces));
    MUC_TRY(open_tokenizer(ctx, model));
    set_tokens(model);
    return MUC_OK;
}

static muc_status open_checkpoint(muc_context *ctx, muc_model *model,
                                  const muc_model_options *options)
{
    MUC_TRY(muc_checkpoint_open(ctx, model->path, &model->checkpoint));
    return open_rest(ctx, model, options);
}

static muc_status open_program(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    const mur_program *program = &model->program;
    const mur_meta *meta;

    model->kind = MUC_MODEL_PROGRAM;
    MUC_TRY(muc_program_open(ctx, model->file.bytes, &model->program));
    meta = program->meta;
    MUC_TRY(set_context(ctx, model, options->context, meta->context));
    model->tokens = (muc_model_tokens){ meta->bos, { meta->eos, meta->eos2, meta->eos3 } };
    model->tokenizer_form = program->section[MUR_SECTION_TOKN];
    model->tokenizer_bytes = program->section_bytes[MUR_SECTION_TOKN];
    MUC_TRY(open_carried(ctx, model, options->tokenizer, meta->vocabulary));
    if (model->tokenizer_bytes && model->tokenizer.header->pieces > meta->vocabulary)
        return muc_fail(ctx, MUC_MALFORMED, model->path, MUC_NO_OFFSET,
                        "the tokenizer has %u pieces, the model only %u",
                        model->tokenizer.header->pieces, meta->vocabulary);
    if (program->section_bytes[MUR_SECTION_PRMT])
        return muc_model_set_template(ctx, model, model->path,
                                      (const char *)program->section[MUR_SECTION_PRMT],
                                      program->section_bytes[MUR_SECTION_PRMT]);
    return MUC_OK;
}

static muc_status open_blocks(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    uint32_t pieces = 0;

    model->kind = MUC_MODEL_BLOCKS;
    if (options->context)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "a .bdt file has its context; ask for another when it is made");
    MUC_TRY(muc_blocks_open(ctx, model));
    if (options->tokenizer)
        MUC_TRY(muc_blocks_vocabulary(ctx, model, &pieces));
    return open_carried(ctx, model, options->tokenizer, pieces);
}

static muc_status read_text(muc_context *ctx, muc_model *model, const char *path)
{
    uint32_t tokens;
    muc_status status;
    muc_file file;

    MUC_TRY(muc_file_open(ctx, path, &file));
    status =
        muc_text_arrays(ctx, &model->arena, model->network.graph, &model->tokenizer, file.bytes,
                        true, 0, &model->calibration, &model->calibration_count, &tokens);
    muc_file_close(&file);
    return status;
}

/* what a network is calibrated on: arrays, pictures of its first input, or a text */
static muc_status read_samples(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    muc_code_port port;

    if (!muc_is_pictures(options->calibration))
        return options->tokenizer && !muc_is_arrays(options->calibration)
                   ? read_text(ctx, model, options->calibration)
                   : muc_arrays_read(ctx, &model->arena, options->calibration, &model->calibration,
                                     &model->calibration_count);
    MUC_TRY(muc_network_input_port(ctx, model->network.graph, &port));
    MUC_TRY(MUC_ARENA_NEW(ctx, &model->arena, 1, &model->calibration));
    model->calibration_count = 1;
    return muc_pictures_read(ctx, &model->arena, options->calibration, options->preprocess, &port,
                             model->calibration);
}

static muc_status quantize_network(muc_context *ctx, muc_model *model,
                                   const muc_model_options *options)
{
    static const char *const codecs[] = { "int8" };
    unsigned found;

    if (!options->quant && options->keep_float)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "--keep-float says what --quant int8 leaves in float32; give that too");
    if (!options->quant && !options->calibration)
        return MUC_OK;
    if (!options->quant)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "--calib says what --quant int8 measures ranges on; give that too");
    MUC_TRY(
        muc_choose(ctx, "--quant of a network", options->quant, codecs, MUC_COUNT(codecs), &found));
    if (!options->calibration)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "--quant int8 of a network needs --calib: a .npz or .npy file with samples "
                        "of its inputs, or a folder of pictures");
    if (options->compile)
        MUC_TRY(muc_compile_precheck(ctx, model, options->compile, options->keep_float,
                                     options->compile_path));
    MUC_TRY(read_samples(ctx, model, options));
    return muc_network_to_int8(ctx, model->network.graph, model->calibration,
                               model->calibration_count, options->keep_float);
}

/* a picture as the network's first input */
static muc_status take_image(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    muc_code_port port;

    if (!options->image)
        return MUC_OK;
    if (options->inputs)
        return muc_fail(ctx, MUC_USAGE, options->image, MUC_NO_OFFSET,
                        "the inputs are arrays (%s) or a picture, not both", options->inputs);
    MUC_TRY(muc_network_input_port(ctx, model->network.graph, &port));
    MUC_TRY(MUC_ARENA_NEW(ctx, &model->arena, 1, &model->arrays));
    model->array_count = 1;
    return muc_image_array(ctx, &model->arena, options->image, options->preprocess, &port,
                           model->arrays, &model->image);
}

/* a text as the network's inputs */
static muc_status take_text(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    muc_bytes text = { (const uint8_t *)options->text, 0, "prompt" };

    if (!options->text)
        return MUC_OK;
    if (options->inputs || options->image)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "the inputs are a text, arrays or a picture, not two of them");
    if (!options->tokenizer)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "a network takes a text with --tokenizer FILE; otherwise it runs on arrays "
                        "(--input)");
    text.size = strlen(options->text);
    return muc_text_arrays(ctx, &model->arena, model->network.graph, &model->tokenizer, text, false,
                           options->no_special ? 0 : MUR_ENCODE_SPECIAL, &model->arrays,
                           &model->array_count, &model->text_tokens);
}

/* "--quant int8 --calib kws.npz": files without their folders */
static muc_status note_options(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    const struct {
        const char *name, *value;
        bool is_path;
    } given[] = {
        { "quant", options->quant, false },
        { "calib", options->calibration, true },
        { "keep-float", options->keep_float, false },
        { "preprocess", options->calibration ? options->preprocess : NULL, false },
        { "dim", options->dims, false },
        { "type", options->types, false },
        { "arch", options->arch, true },
    };

    model->options = "";
    for (size_t i = 0; i < MUC_COUNT(given); i++) {
        const char *value = given[i].value;
        size_t end = value ? strlen(value) : 0, begin;

        if (!value)
            continue;
        while (given[i].is_path && end > 1 && value[end - 1] == '/')
            end--;
        begin = given[i].is_path ? end : 0;
        while (begin > 0 && value[begin - 1] != '/')
            begin--;
        MUC_TRY(muc_arena_format(ctx, &model->arena, &model->options, "%s%s--%s %.*s",
                                 model->options, *model->options ? " " : "", given[i].name,
                                 (int)(end - begin), value + begin));
    }
    return MUC_OK;
}

/* The arrays of NAME beside the network, if they are whole numbers alone; one that is no archive of
 * arrays says nothing. */
static size_t whole_beside(muc_context *ctx, muc_model *model, const char *name,
                           muc_tensor_view **out)
{
    const char *slash = strrchr(model->path, '/');
    double least, most;
    const char *path;
    size_t count = 0;

    if (muc_arena_format(ctx, &model->arena, &path, "%.*s%s",
                         slash ? (int)(slash + 1 - model->path) : 0, model->path, name) != MUC_OK ||
        !muc_is_arrays(path) || muc_arrays_read(ctx, &model->arena, path, out, &count) != MUC_OK)
        count = 0;
    muc_error_clear(ctx);
    for (size_t i = 0; i < count; i++)
        if (!muc_tensor_range(&(*out)[i], &least, &most))
            return 0;
    return count;
}

/* A network that cannot be had in integers is what its file says. */
static muc_status open_whole(muc_context *ctx, muc_model *model, muc_network_options *how)
{
    muc_tensor_view *inputs, *results;
    size_t count = whole_beside(ctx, model, "inputs.npz", &inputs);

    if (!count || !whole_beside(ctx, model, "outputs.npz", &results))
        return muc_network_open(ctx, model->path, how, &model->network);
    how->whole = inputs;
    how->whole_count = count;
    if (muc_network_open(ctx, model->path, how, &model->network) == MUC_OK)
        return MUC_OK;
    muc_error_clear(ctx);
    how->whole_count = 0;
    return muc_network_open(ctx, model->path, how, &model->network);
}

static muc_status open_network(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    muc_network_options how = { 0 };
    muc_network_type *types;
    muc_network_dim *dims;

    model->kind = MUC_MODEL_NETWORK;
    MUC_TRY(note_options(ctx, model, options));
    if (options->context && !options->export_count)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "the file is a network, which has no context");
    if (options->dims) {
        MUC_TRY(muc_network_dims(ctx, &model->arena, options->dims, &dims, &how.dim_count));
        how.dims = dims;
    }
    if (options->types) {
        MUC_TRY(muc_network_types(ctx, &model->arena, options->types, &types, &how.type_count));
        how.types = types;
    }
    if (options->inputs)
        MUC_TRY(muc_arrays_read(ctx, &model->arena, options->inputs, &model->arrays,
                                &model->array_count));
    how.arch = options->arch;
    how.may_list = model->may_list;
    how.known = model->arrays;
    how.known_count = model->array_count;
    if (options->types)
        MUC_TRY(muc_network_open(ctx, model->path, &how, &model->network));
    else
        MUC_TRY(open_whole(ctx, model, &how));
    if (model->network.listing.lacks)
        return MUC_OK;
    model->how = how;
    if (options->export_count)
        MUC_TRY(muc_model_unify(ctx, model, &how, options));
    MUC_TRY(muc_fold(ctx, model->network.graph));
    if (options->tokenizer) {
        MUC_TRY(compile_tokenizer(ctx, model, options->tokenizer, UINT32_MAX));
        MUC_TRY(open_tokenizer(ctx, model));
    }
    MUC_TRY(quantize_network(ctx, model, options));
    MUC_TRY(take_text(ctx, model, options));
    return take_image(ctx, model, options);
}

static muc_status open_code(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    if (options->tokenizer)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "the folder carries its tokenizer; --tokenizer is for models without one");
    MUC_TRY(muc_model_open_code(ctx, model));
    MUC_TRY(set_context(ctx, model, options->context, model->context));
    MUC_TRY(open_tokenizer(ctx, model));
    model->tokens.begin = model->tokenizer.header->bos;
    return MUC_OK;
}

static muc_status need_checkpoint_folder(muc_context *ctx, muc_model *model)
{
    const char *config;

    MUC_TRY(muc_arena_format(ctx, &model->arena, &config, "%s/config.json", model->path));
    if (muc_path_exists(config))
        return MUC_OK;
    return muc_fail(ctx, MUC_IO, model->path, MUC_NO_OFFSET,
                    "is a folder of neither a checkpoint, which has a config.json, nor code that "
                    "muc compile wrote");
}

/* Programs and .bdt files carry their tokenizer; what no one else knows is for the checkpoint
 * readers. */
static muc_status open_any(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    bool is_program, is_blocks, is_network;
    muc_source source = { .path = model->path };

    if (muc_code_is_language_model(model->path))
        return open_code(ctx, model, options);
    if (muc_path_is_dir(model->path)) {
        MUC_TRY(need_checkpoint_folder(ctx, model));
        return open_checkpoint(ctx, model, options);
    }
    MUC_TRY(muc_file_open(ctx, model->path, &model->file));
    MUC_TRY(muc_refuse_mistaken(ctx, model->file.bytes));
    is_program = model->file.bytes.size >= 4 && memcmp(model->file.bytes.data, "UTP1", 4) == 0;
    is_blocks = muc_bdt_probe(model->file.bytes);
    if (is_program)
        return open_program(ctx, model, options);
    if (is_blocks)
        return open_blocks(ctx, model, options);
    source.bytes = model->file.bytes;
    is_network = muc_network_recognise(&source) != NULL;
    muc_file_close(&model->file);
    model->file = (muc_file){ 0 };
    if (is_network)
        return open_network(ctx, model, options);
    return open_checkpoint(ctx, model, options);
}

static muc_status open_checked(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    MUC_TRY(open_any(ctx, model, options));
    if (model->kind != MUC_MODEL_NETWORK && options->export_count)
        return muc_fail(ctx, MUC_USAGE, options->exports[0], MUC_NO_OFFSET,
                        "stands after a model that is no network: only a network has exports");
    if (model->kind != MUC_MODEL_NETWORK &&
        (options->dims || options->inputs || options->image || options->arch))
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "the file is no network: it takes neither arrays nor a picture nor "
                        "dimensions nor --arch");
    return MUC_OK;
}

static muc_status open_path(muc_context *ctx, const char *path, const muc_model_options *options,
                            bool may_list, muc_model **out)
{
    static const muc_model_options defaults;
    muc_model *model;
    muc_status status;

    if (!path)
        MUC_TRY(muc_builtin_path(ctx, &path));
    MUC_TRY(MUC_NEW_ARRAY(ctx, path, 1, &model));
    model->may_list = may_list;
    status = muc_arena_string(ctx, &model->arena, path, strlen(path), &model->path);
    if (status == MUC_OK)
        status = open_checked(ctx, model, options ? options : &defaults);
    if (status != MUC_OK) {
        muc_model_close(model);
        return status;
    }
    *out = model;
    return MUC_OK;
}

muc_status muc_model_open(muc_context *ctx, const char *path, const muc_model_options *options,
                          muc_model **out)
{
    MUC_IN_C_LOCALE;

    return open_path(ctx, path, options, false, out);
}

muc_status muc_inspect_file(muc_context *ctx, const char *path, const muc_model_options *options,
                            muc_report **out)
{
    MUC_IN_C_LOCALE;
    muc_model *model;
    muc_status status;

    MUC_TRY(open_path(ctx, path, options, true, &model));
    status = muc_inspect(ctx, model, out);
    muc_model_close(model);
    return status;
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

static muc_status open_untrained(muc_context *ctx, const char *path, const char *tokenizer,
                                 uint32_t vocabulary, muc_model *model)
{
    const muc_model_options options = { .tokenizer = tokenizer };
    muc_model_config *config = &model->checkpoint.config;

    MUC_TRY(muc_arena_string(ctx, &model->arena, path, strlen(path), &model->path));
    MUC_TRY(muc_checkpoint_open_config(ctx, path, &model->checkpoint));
    if (vocabulary) {
        config->vocabulary = vocabulary;
        config->has_bos = false;
        config->eos_count = 0;
    }
    MUC_TRY(open_rest(ctx, model, &options));
    if (vocabulary) {
        config->has_bos = true;
        config->bos = model->tokens.begin;
        config->eos_count = 1;
        config->eos[0] = model->tokens.ends[0];
    }
    return MUC_OK;
}

muc_status muc_model_open_untrained(muc_context *ctx, const char *path, const char *tokenizer,
                                    uint32_t vocabulary, muc_model **out)
{
    muc_model *model;
    muc_status status;

    MUC_TRY(MUC_NEW_ARRAY(ctx, path, 1, &model));
    status = open_untrained(ctx, path, tokenizer, vocabulary, model);
    if (status == MUC_OK)
        *out = model;
    else
        muc_model_close(model);
    return status;
}

void muc_model_close(muc_model *model)
{
    if (!model)
        return;
    muc_model_close_code(model);
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
