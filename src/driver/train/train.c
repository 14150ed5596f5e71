/* train.c - trains a model: options, data and files around the trainer's steps. */
#include "muc/train.h"

#include <stdlib.h>

#include "base/file_system.h"
#include "base/output_folder.h"
#include "base/locale.h"
#include "base/real.h"
#include "base/system.h"
#include "base/text.h"
#include "driver/train/corpus.h"
#include "run/text_passages.h"
#include "driver/train/train_log.h"
#include "text/learn.h"
#include "text/vocabulary.h"
#include "train/export.h"
#include "train/prune.h"
#include "train/trainer.h"

enum { SAVE_SECONDS = 60 };

typedef struct job {
    muc_context *ctx;
    muc_train_options options; /* no number in it is a default any more */
    const char *path, *out_path;
    muc_arena arena;
    muc_model *model;
    muc_train_corpus corpus, held_out; /* documents 0: none */
    muc_train_shape shape;
    muc_train_trainer trainer;
    muc_train_pruner pruner; /* if options.prune */
    muc_train_shape result;  /* of the pruned model */
    uint32_t crc32;          /* of all that the result depends on, but path's weights */
    muc_train_log log;
    uint64_t first_step, tokens; /* tokens: fed since first_step */
    double began, saved;         /* seconds */
} job;

static muc_status out_file(job *j, const char *name, const char **out)
{
    return muc_arena_format(j->ctx, &j->arena, out, "%s/%s", j->out_path, name);
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);

    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* ---- the folder ---- */

/* what a finished run leaves */
static const char *const out_names[] = { "config.json",     "model.safetensors", "tokenizer.json",
                                         "tokenizer.model", "vocab.json",        "merges.txt",
                                         "prompt.txt",      "train.csv" };

static muc_status list_files(job *j)
{
    return muc_folder_list(j->ctx, j->out_path, out_names, MUC_COUNT(out_names));
}

/* of a new run: that it replaces neither another's nor files that it reads */
static muc_status may_begin(job *j)
{
    const char *state;

    MUC_TRY(out_file(j, "train.state", &state));
    if (muc_path_exists(state))
        return muc_fail(j->ctx, MUC_USAGE, state, MUC_NO_OFFSET,
                        "the folder holds an unfinished run: go on with it (--resume), or remove "
                        "this file");
    return muc_folder_precheck_files(j->ctx, j->out_path, out_names, MUC_COUNT(out_names));
}

/* ---- options ---- */

static void fill_defaults(job *j)
{
    muc_train_options *o = &j->options;

#define OR(number, value) ((number) ? (number) : (value))
#define UNLESS_NEGATIVE(number, value) ((number) >= 0 ? (number) : (value))
    o->steps = OR(o->steps, 1000);
    o->batch = OR(o->batch, 2048);
    o->rate = o->rate > 0 ? o->rate : 2e-3;
    o->least_rate = UNLESS_NEGATIVE(o->least_rate, 0.05);
    o->warm_up = OR(o->warm_up, o->steps / 10 < 100 ? o->steps / 10 : 100);
    o->decay = UNLESS_NEGATIVE(o->decay, 0.1);
    o->clip = UNLESS_NEGATIVE(o->clip, 1);
    o->every = OR(o->every, (o->steps + 9) / 10);
    o->vocabulary = OR(o->vocabulary, 512);
#undef OR
#undef UNLESS_NEGATIVE
}

static muc_status check_options(const job *j)
{
    const muc_train_options *o = &j->options;
    uint32_t context = j->model->context;

    if (o->window > context)
        return muc_fail(j->ctx, MUC_USAGE, j->path, MUC_NO_OFFSET,
                        "windows of %u tokens, the model has a context of %u", o->window, context);
    if (o->warm_up > o->steps)
        return muc_fail(j->ctx, MUC_USAGE, "train", MUC_NO_OFFSET,
                        "%llu steps of warm-up, %llu in all", (unsigned long long)o->warm_up,
                        (unsigned long long)o->steps);
    return MUC_OK;
}

static uint32_t crc_of(uint32_t crc, const void *data, size_t bytes)
{
    return muc_crc32(crc, data, bytes);
}

/* a state goes on under the same options and data alone */
static uint32_t crc_of_run(const job *j)
{
    const muc_train_options *o = &j->options;
    const uint64_t counts[] = { o->steps, o->batch, o->warm_up, o->seed, o->window, o->every };
    const double reals[] = { o->rate, o->least_rate, o->decay, o->clip, o->prune };
    uint32_t crc = crc_of(crc_of(0, counts, sizeof(counts)), reals, sizeof(reals));

    crc = crc_of(crc, j->corpus.starts, (j->corpus.documents + 1) * sizeof(*j->corpus.starts));
    crc = crc_of(crc, j->corpus.silent, j->corpus.documents * sizeof(*j->corpus.silent));
    return crc_of(crc, j->corpus.tokens,
                  j->corpus.starts[j->corpus.documents] * sizeof(*j->corpus.tokens));
}

/* ---- the model and its data ---- */

/* a tokenizer.json, written to the result's folder */
static muc_status learn_tokenizer(job *j, uint32_t pieces, const char **path)
{
    muc_arena scratch = { 0 };
    muc_string_view *texts;
    muc_passage *passages;
    muc_text json = { 0 };
    muc_status status;
    muc_file file;
    size_t count;

    MUC_TRY(out_file(j, "tokenizer.json", path));
    MUC_TRY(muc_file_open(j->ctx, j->options.data, &file));
    status =
        muc_split_passages(j->ctx, file.bytes, MUC_DOCUMENT_MARK, 0, &scratch, &passages, &count);
    if (status == MUC_OK)
        status = MUC_ARENA_NEW(j->ctx, &scratch, count, &texts);
    for (size_t i = 0; status == MUC_OK && i < count; i++)
        texts[i] = (muc_string_view){ passages[i].text, passages[i].size };
    if (status == MUC_OK)
        status = muc_tokenizer_learn(j->ctx, texts, count, pieces, &json);
    if (status == MUC_OK)
        status = muc_make_dir(j->ctx, j->out_path);
    if (status == MUC_OK)
        status = muc_file_write(j->ctx, *path, json.data, json.size);
    if (status == MUC_OK)
        status = list_files(j);
    muc_text_free(&json);
    muc_arena_free(&scratch);
    muc_file_close(&file);
    return status;
}

static muc_status open_with_new_tokenizer(job *j, bool bytes)
{
    muc_vocabulary vocabulary;
    muc_status status;
    muc_file file;

    if (!ends_with(j->path, ".json"))
        return muc_fail(j->ctx, MUC_USAGE, j->path, MUC_NO_OFFSET,
                        "a checkpoint has its tokenizer; a new one needs new weights, of a "
                        "config.json");
    MUC_TRY(learn_tokenizer(j, bytes ? MUC_LEARN_LEAST_PIECES : j->options.vocabulary,
                            &j->options.tokenizer));
    MUC_TRY(muc_file_open_own(j->ctx, j->options.tokenizer, &file));
    status = muc_vocabulary_read(j->ctx, file.bytes, 0, &j->arena, &vocabulary);
    muc_file_close(&file);
    MUC_TRY(status);
    return muc_model_open_untrained(j->ctx, j->path, j->options.tokenizer,
                                    (uint32_t)vocabulary.count, &j->model);
}

static muc_status open_model(job *j)
{
    const char *tokenizer = j->options.tokenizer;
    const muc_model_options options = { .tokenizer = tokenizer };
    bool bytes = tokenizer && strcmp(tokenizer, "bytes") == 0;

    if (bytes || (tokenizer && strcmp(tokenizer, "bpe") == 0))
        return open_with_new_tokenizer(j, bytes);
    if (ends_with(j->path, ".json"))
        return muc_model_open_untrained(j->ctx, j->path, tokenizer, 0, &j->model);
    MUC_TRY(muc_model_open(j->ctx, j->path, &options, &j->model));
    if (j->model->kind == MUC_MODEL_CHECKPOINT)
        return MUC_OK;
    return muc_fail(j->ctx, MUC_USAGE, j->path, MUC_NO_OFFSET,
                    "neither a configuration (config.json) nor a checkpoint");
}

static muc_status read_data(job *j)
{
    const muc_train_options *o = &j->options;
    /* of held-out cases the answers alone are measured */
    muc_corpus_options how = { .cases = o->cases, .prompt_share = o->prompt_loss, .seed = o->seed };

    MUC_TRY(muc_corpus_read(j->ctx, j->model, o->data, &how, &j->arena, &j->corpus));
    how.prompt_share = 0;
    return o->held_out
               ? muc_corpus_read(j->ctx, j->model, o->held_out, &how, &j->arena, &j->held_out)
               : MUC_OK;
}

/* the last fifth of the steps is left to recover in */
static muc_status begin_pruning(job *j)
{
    uint64_t steps = j->options.steps - j->options.steps / 5;

    MUC_TRY(muc_train_pruner_make(j->ctx, &j->shape, j->options.prune, steps, &j->pruner));
    j->trainer.pass.hooks = &j->pruner.hooks;
    j->trainer.method = j->pruner.method;
    j->trainer.extra = j->pruner.scores;
    j->trainer.extra_bytes = j->pruner.units * sizeof(*j->pruner.scores);
    return MUC_OK;
}

static muc_status make_trainer(job *j)
{
    const muc_train_options *o = &j->options;
    const muc_train_recipe recipe = { .rate = o->rate,
                                      .least_rate = o->rate * o->least_rate,
                                      .steps = o->steps,
                                      .warm_up = o->warm_up,
                                      .beta1 = 0.9,
                                      .beta2 = 0.95,
                                      .epsilon = 1e-8,
                                      .decay = o->decay,
                                      .clip = o->clip };
    muc_train_random random = { o->seed };
    size_t window = o->window ? o->window : j->model->context;
    muc_train_place place = { 0 };

    window = window < o->batch ? window : o->batch;
    MUC_TRY(
        muc_train_shape_make(j->ctx, &j->model->checkpoint.config, NULL, NULL, NULL, &j->shape));
    place.random.state = muc_train_random_next(&random);
    MUC_TRY(muc_train_trainer_make(j->ctx, &j->shape, &recipe, &j->corpus, window, o->batch, &place,
                                   &j->trainer));
    if (o->prune > 0)
        MUC_TRY(begin_pruning(j));
    if (j->model->checkpoint.tensor_count)
        return muc_train_import(j->ctx, &j->shape, &j->model->checkpoint, j->trainer.weights);
    muc_train_initialise(&j->shape, &random, j->trainer.weights);
    return MUC_OK;
}

/* ---- files ---- */

static muc_status read_log(job *j, const char *path)
{
    muc_status status;
    muc_file file;

    MUC_TRY(muc_file_open_own(j->ctx, path, &file));
    status = muc_train_log_of_csv(j->ctx, file.bytes, j->trainer.adam.step, &j->log);
    muc_file_close(&file);
    return status;
}

static muc_status begin_or_resume(job *j)
{
    const char *state, *csv;

    MUC_TRY(out_file(j, "train.state", &state));
    MUC_TRY(out_file(j, "train.csv", &csv));
    if (!j->options.resume) {
        MUC_TRY(may_begin(j)); /* now that all inputs are known */
        return muc_make_dir(j->ctx, j->out_path);
    }
    if (!muc_path_exists(state))
        return muc_fail(j->ctx, MUC_USAGE, state, MUC_NO_OFFSET,
                        "there is no such file: the folder holds no unfinished run");
    MUC_TRY(muc_train_trainer_load(&j->trainer, j->crc32, state));
    return read_log(j, csv);
}

static muc_status write_log(job *j)
{
    muc_text text = { 0 };
    const char *path;
    muc_status status = out_file(j, "train.csv", &path);

    muc_train_log_as_csv(&j->log, &text);
    if (status == MUC_OK)
        status = muc_text_status(j->ctx, &text);
    if (status == MUC_OK)
        status = muc_file_write(j->ctx, path, text.data, text.size);
    muc_text_free(&text);
    return status;
}

static muc_status save(job *j)
{
    const char *path;

    MUC_TRY(write_log(j));
    MUC_TRY(list_files(j));
    MUC_TRY(out_file(j, "train.state", &path));
    j->saved = muc_seconds();
    return muc_train_trainer_save(&j->trainer, j->crc32, path);
}

static muc_status copy_file(job *j, const char *from, const char *name)
{
    const char *to;
    muc_file file;
    muc_status status;

    MUC_TRY(out_file(j, name, &to));
    if (strcmp(from, to) == 0)
        return MUC_OK;
    MUC_TRY(muc_file_open(j->ctx, from, &file));
    status = muc_file_write(j->ctx, to, file.bytes.data, file.bytes.size);
    muc_file_close(&file);
    return status;
}

/* what belongs to the model besides its weights */
static muc_status copy_companions(job *j)
{
    const char *tokenizer =
        j->options.tokenizer ? j->options.tokenizer : j->model->checkpoint.tokenizer_path;
    const char *slash = strrchr(j->path, '/'), *folder, *prompt;
    muc_tokenizer_files tokenizer_files = { 0 };

    if (tokenizer)
        MUC_TRY(muc_tokenizer_files_of(j->ctx, tokenizer, &j->arena, &tokenizer_files));
    for (size_t i = 0; i < tokenizer_files.count; i++)
        MUC_TRY(copy_file(j, tokenizer_files.files[i].path, tokenizer_files.files[i].name));
    if (muc_path_is_dir(j->path))
        folder = j->path;
    else
        MUC_TRY(muc_arena_string(j->ctx, &j->arena, slash ? j->path : ".",
                                 slash ? (size_t)(slash - j->path) : 1, &folder));
    MUC_TRY(muc_arena_format(j->ctx, &j->arena, &prompt, "%s/prompt.txt", folder));
    return muc_path_exists(prompt) ? copy_file(j, prompt, "prompt.txt") : MUC_OK;
}

/* the model, without what was pruned */
static muc_status export_model(job *j)
{
    muc_scalar *weights;
    muc_status status;

    if (j->options.prune <= 0)
        return muc_train_export(j->ctx, &j->shape, j->trainer.weights, j->out_path);
    MUC_TRY(muc_train_remove_masked(&j->pruner, j->trainer.weights, &j->result, &weights));
    status = muc_train_export(j->ctx, &j->result, weights, j->out_path);
    free(weights);
    return status;
}

static muc_status finish_files(job *j)
{
    const char *state;

    MUC_TRY(copy_companions(j));
    MUC_TRY(export_model(j));
    MUC_TRY(write_log(j));
    MUC_TRY(list_files(j));
    MUC_TRY(out_file(j, "train.state", &state));
    muc_remove(state); /* its run is finished; it may never have been written */
    return MUC_OK;
}

/* ---- the run ---- */

static muc_status measure(job *j, double *loss)
{
    uint64_t counted;
    double sum;

    MUC_TRY(muc_train_measure(&j->trainer.pass, &j->held_out, j->trainer.loader.window,
                              j->trainer.weights, &sum, &counted));
    *loss = sum / (double)counted;
    return MUC_OK;
}

static void show(const job *j, const muc_train_row *row)
{
    char line[128];

    snprintf(line, sizeof(line), "training: loss %.4f, %.0f tokens/s", row->loss,
             (double)j->tokens / row->seconds);
    muc_progress(j->ctx, line, row->step, j->options.steps);
}

static muc_status step(job *j)
{
    muc_train_row row = { .held_out = -1 };
    muc_train_note note;

    MUC_TRY(muc_train_step(&j->trainer, &note));
    j->tokens += note.tokens;
    row.step = note.step;
    row.tokens = note.tokens;
    row.loss = note.loss;
    row.rate = note.rate;
    row.norm = note.norm;
    if (j->held_out.documents &&
        (note.step % j->options.every == 0 || note.step == j->options.steps))
        MUC_TRY(measure(j, &row.held_out));
    row.seconds = muc_seconds() - j->began;
    show(j, &row);
    return muc_train_log_add(j->ctx, &j->log, &row);
}

static muc_status run(job *j)
{
    j->first_step = j->trainer.adam.step;
    j->began = j->saved = muc_seconds();
    while (j->trainer.adam.step < j->options.steps) {
        MUC_TRY(step(j));
        if (muc_seconds() - j->saved >= SAVE_SECONDS ||
            j->trainer.adam.step % j->options.every == 0)
            MUC_TRY(save(j));
    }
    return finish_files(j);
}

static void report_layers(const muc_train_shape *shape, muc_report *r)
{
    muc_report_begin_table(r, "layers");
    for (uint32_t i = 0; i < shape->config.layers; i++) {
        const muc_train_layer *layer = &shape->layers[i];

        muc_report_begin_row(r);
        muc_report_add_count(r, "layer", i);
        muc_report_add_count(r, "heads", layer->heads);
        muc_report_add_count(r, "kv_heads", layer->kv_heads);
        muc_report_add_count(r, "neurons", layer->ffn_dim);
        muc_report_end(r);
    }
    muc_report_end(r);
}

static muc_status report(const job *j, muc_report **out)
{
    const muc_train_shape *shape = j->options.prune > 0 ? &j->result : &j->shape;
    size_t tenth = (size_t)(j->options.steps + 9) / 10;
    double seconds = muc_seconds() - j->began;
    double held_out = j->log.count ? j->log.rows[j->log.count - 1].held_out : -1;
    uint64_t parameters = 0;
    muc_report *r;

    MUC_TRY(muc_report_new(j->ctx, &r));
    *out = r;
    for (size_t t = 0; t < shape->tensor_count; t++)
        parameters += shape->tensors[t].elements;
    muc_report_add_text(r, "folder", "%s", j->out_path);
    muc_report_add_count(r, "parameters", parameters);
    muc_report_add_count(r, "documents", j->corpus.documents);
    muc_report_add_count(r, "steps", j->options.steps);
    muc_report_add_count(r, "tokens", j->tokens);
    muc_report_add_real(r, "seconds", seconds);
    muc_report_add_real(r, "tokens_per_second", (double)j->tokens / seconds);
    muc_report_add_real(r, "loss", muc_train_log_mean(&j->log, tenth));
    if (held_out >= 0) {
        muc_report_add_real(r, "held_out_loss", held_out);
        muc_report_add_real(r, "held_out_perplexity", muc_exp(held_out));
    }
    if (j->options.prune > 0)
        report_layers(shape, r);
    MUC_TRY(muc_train_log_report(j->ctx, &j->log, r));
    return muc_report_status(j->ctx, r);
}

static muc_status train(job *j, muc_report **out)
{
    if (!j->options.data)
        return muc_fail(j->ctx, MUC_USAGE, "train", MUC_NO_OFFSET, "no data to train on");
    fill_defaults(j);
    if (!j->options.resume)
        MUC_TRY(may_begin(j));
    MUC_TRY(open_model(j));
    MUC_TRY(check_options(j));
    MUC_TRY(read_data(j));
    j->crc32 = crc_of_run(j);
    MUC_TRY(make_trainer(j));
    MUC_TRY(begin_or_resume(j));
    MUC_TRY(run(j));
    return report(j, out);
}

muc_status muc_train(muc_context *ctx, const char *path, const muc_train_options *options,
                     const char *out_path, muc_report **out)
{
    MUC_IN_C_LOCALE;

    job j = { .ctx = ctx, .options = *options, .path = path, .out_path = out_path };
    muc_status status = train(&j, out);

    muc_train_log_free(&j.log);
    muc_train_trainer_free(&j.trainer);
    muc_train_pruner_free(&j.pruner);
    muc_train_shape_free(&j.result);
    muc_train_shape_free(&j.shape);
    muc_model_close(j.model);
    muc_arena_free(&j.arena);
    return status;
}
