/* model.c - opens a checkpoint, a network, a .bdt file or a program, with its tokenizer and prompt
 * template.
 */
#include "run/opened_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/choice.h"
#include "base/locale.h"
#include "run/arrays.h"
#include "run/image_input.h"
#include "run/bdt_model.h"
#include "run/engine.h"
#include "driver/open/exports.h"
#include "driver/open/one_sample.h"
#include "run/network_int8.h"
#include "run/calibration_pictures.h"
#include "driver/compile/chosen_target.h"
#include "run/text_input.h"
#include "formats/mistaken.h"
#include "passes/simplify/fold.h"
#include "text/tokenizer.h"

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

/* all that a checkpoint has besides its tensors */
static muc_status open_rest(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    muc_checkpoint *checkpoint = &model->checkpoint;
    const char *given = options->tokenizer;

    MUC_TRY(muc_model_set_context(ctx, model, options->context, checkpoint->config.context));
    if (given) /* in the place of its own, in what is written of it too */
        MUC_TRY(muc_arena_string(ctx, &model->arena, given, strlen(given),
                                 &checkpoint->tokenizer_path));
    MUC_TRY(muc_model_compile_tokenizer(ctx, model, checkpoint->tokenizer_path,
                                        checkpoint->config.vocabulary));
    MUC_TRY(muc_model_open_tokenizer(ctx, model));
    muc_model_set_tokens(model);
    return read_prompt_template(ctx, model);
}

static muc_status open_checkpoint(muc_context *ctx, muc_model *model,
                                  const muc_model_options *options)
{
    model->engine = &muc_engine_float;
    MUC_TRY(muc_checkpoint_open(ctx, model->path, &model->checkpoint));
    return open_rest(ctx, model, options);
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
    return muc_model_open_carried(ctx, model, options->tokenizer, pieces);
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
    muc_port port;

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
    muc_port port;

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

/* The arrays of NAME beside the network, if they are whole numbers alone; one that is not an
 * archive of arrays says nothing. */
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

static muc_status take_dims(muc_context *ctx, muc_model *model, const char *text,
                            muc_network_options *how)
{
    muc_network_dim *dims;

    if (!text)
        return MUC_OK;
    MUC_TRY(muc_network_dims(ctx, &model->arena, text, &dims, &how->dim_count));
    how->dims = dims;
    return MUC_OK;
}

static muc_status open_file(muc_context *ctx, muc_model *model, const muc_model_options *options,
                            muc_network_options *how)
{
    return options->types ? muc_network_open(ctx, model->path, how, &model->network)
                          : open_whole(ctx, model, how);
}

/* Opens the file again for one sample where it and the options leave that open. *dims: those of the
 * options, and that one. */
static muc_status take_one_sample(muc_context *ctx, muc_model *model,
                                  const muc_model_options *options, muc_network_options *how,
                                  const char **dims)
{
    if (!options->one_sample || options->export_count)
        return MUC_OK;
    MUC_TRY(muc_find_samples(ctx, model, how, &model->one_sample));
    if (!model->one_sample)
        return MUC_OK;
    MUC_TRY(muc_arena_format(ctx, &model->arena, dims, "%s%s%s", *dims ? *dims : "",
                             *dims ? "," : "", model->one_sample));
    MUC_TRY(take_dims(ctx, model, *dims, how));
    muc_network_close(&model->network);
    model->network = (muc_network){ 0 };
    return open_file(ctx, model, options, how);
}

static muc_status open_network(muc_context *ctx, muc_model *model, const muc_model_options *given)
{
    muc_model_options settled = *given;
    const muc_model_options *options = &settled;
    muc_network_options how = { 0 };
    muc_network_type *types;

    model->kind = MUC_MODEL_NETWORK;
    if (options->context && !options->export_count)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "the file is a network, which has no context");
    MUC_TRY(take_dims(ctx, model, options->dims, &how));
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
    MUC_TRY(open_file(ctx, model, options, &how));
    MUC_TRY(take_one_sample(ctx, model, options, &how, &settled.dims));
    MUC_TRY(note_options(ctx, model, options));
    if (model->network.listing.lacks)
        return MUC_OK;
    model->how = how;
    if (options->export_count)
        MUC_TRY(muc_model_unify(ctx, model, &how, options));
    MUC_TRY(muc_fold(ctx, model->network.graph));
    if (options->tokenizer) {
        MUC_TRY(muc_model_compile_tokenizer(ctx, model, options->tokenizer, UINT32_MAX));
        MUC_TRY(muc_model_open_tokenizer(ctx, model));
    }
    MUC_TRY(quantize_network(ctx, model, options));
    MUC_TRY(take_text(ctx, model, options));
    return take_image(ctx, model, options);
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

/* what a target made carries its tokenizer */
static muc_status open_made(muc_context *ctx, muc_model *model, const muc_target *maker,
                            const muc_model_options *options)
{
    if (!muc_path_is_dir(model->path))
        MUC_TRY(muc_file_open(ctx, model->path, &model->file));
    model->target = maker;
    return maker->open(ctx, model, options);
}

/* What no one else knows is for the checkpoint readers. */
static muc_status open_any(muc_context *ctx, muc_model *model, const muc_model_options *options)
{
    muc_source source = { .path = model->path };
    muc_made made;
    const muc_target *maker = muc_target_of(model->path, &made);
    bool is_network;

    if (made == MUC_MADE_LANGUAGE)
        return open_made(ctx, model, maker, options);
    if (muc_path_is_dir(model->path)) {
        MUC_TRY(need_checkpoint_folder(ctx, model));
        return open_checkpoint(ctx, model, options);
    }
    MUC_TRY(muc_file_open(ctx, model->path, &model->file));
    MUC_TRY(muc_refuse_mistaken(ctx, model->file.bytes));
    if (muc_bdt_probe(model->file.bytes))
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
                        "stands after a model that is not a network: only a network has exports");
    if (model->kind != MUC_MODEL_NETWORK &&
        (options->dims || options->inputs || options->image || options->arch))
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "the file is not a network: it takes neither arrays nor a picture nor "
                        "dimensions nor --arch");
    return MUC_OK;
}

muc_status muc_model_open_to_list(muc_context *ctx, const char *path,
                                  const muc_model_options *options, bool may_list, muc_model **out)
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

    return muc_model_open_to_list(ctx, path, options, false, out);
}

const char *muc_model_one_sample(const muc_model *model)
{
    return model->one_sample;
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
