/* compress.c - makes a smaller checkpoint from a checkpoint. compress(), near the end, lists
 * the steps. */
#include "muc/compress.h"

#include <stdio.h>
#include <string.h>

#include "base/output_folder.h"
#include "base/file_system.h"
#include "base/locale.h"
#include "base/choice.h"
#include "base/real.h"
#include "run/calibration.h"
#include "driver/compress/compress_stages.h"
#include "formats/hf/hf_lowbit.h"
#include "formats/hf/hf_tensors.h"
#include "models/llama.h"
#include "muc/eval.h"
#include "muc/train.h"
#include "targets/target.h"
#include "report/report_builder.h"

enum { MOST_STAGES = 8 };

/* a weight, of "2 bits": on average, scales and the embedding included */
static const double most_bits = 2.5;

/* One row of the table. */
typedef struct stage {
    const char *name;
    uint64_t bytes;                 /* of all tensors, as stored */
    uint64_t weights, weight_bytes; /* of matrices */
    double perplexity, exact, cases;
} stage;

typedef struct compress_job {
    muc_context *ctx;
    const muc_model *teacher;  /* as given, or what follows */
    muc_model *opened_teacher; /* or NULL */
    const muc_model *model;    /* what is quantized: as given, or pruned */
    muc_model *pruned;         /* or NULL */
    const muc_compress_options *options;
    const char *out_path;
    muc_arena arena;
    muc_graph *graph;
    muc_calibration texts;
    muc_lowbit_options formats;
    muc_lowbit_result quantized;
    muc_target_size size; /* of its program */
    stage stages[MOST_STAGES];
    unsigned stage_count;
} compress_job;

/* ---- measuring ---- */

static muc_status number_of(const compress_job *job, const muc_report *report, const char *key,
                            double *out)
{
    return muc_report_number(report, key, out)
               ? MUC_OK
               : muc_fail(job->ctx, MUC_BUG, "compress", MUC_NO_OFFSET, "no '%s' was measured",
                          key);
}

static muc_status measure(compress_job *job, const char *name, const muc_model *model)
{
    const muc_checkpoint *checkpoint = &model->checkpoint;
    const muc_compress_options *o = job->options;
    const muc_eval_options eval = { .limit = o->limit, .window = o->window };
    stage *s = &job->stages[job->stage_count++];
    muc_report *report = NULL;
    muc_status status = MUC_OK;

    *s = (stage){ .name = name };
    for (size_t i = 0; i < checkpoint->tensor_count; i++)
        s->bytes += muc_checkpoint_stored(&checkpoint->tensors[i]);
    muc_checkpoint_weights(checkpoint, &s->weights, &s->weight_bytes);
    if (o->text) {
        status = muc_eval_text(job->ctx, model, o->text, &eval, &report);
        if (status == MUC_OK)
            status = number_of(job, report, "perplexity", &s->perplexity);
        muc_report_free(report);
        report = NULL;
    }
    if (o->task && status == MUC_OK) {
        status = muc_eval_task(job->ctx, model, o->task, &eval, &report);
        if (status == MUC_OK)
            status = number_of(job, report, "exact", &s->exact);
        if (status == MUC_OK)
            status = number_of(job, report, "cases", &s->cases);
        muc_report_free(report);
    }
    return status;
}

/* ---- options ---- */

/* whether a folder of another family than Llama and GPT-2 can be written: its config.json is kept,
 * and matrices lie there as we have them */
static bool is_written_back(const muc_checkpoint *checkpoint)
{
    const muc_model_config *config = &checkpoint->config;

    return checkpoint->config_file.size > 0 && !config->rope_interleaved && !config->layer_sizes &&
           muc_hf_stores_whole(config);
}

static muc_status check_model(const compress_job *job)
{
    const muc_model *model = job->model;
    const char *particular;

    if (model->kind != MUC_MODEL_CHECKPOINT)
        return muc_fail(job->ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "compress takes checkpoints of language models");
    particular = muc_config_particular(&model->checkpoint.config);
    if (particular && (job->options->steps || job->options->prune > 0))
        return muc_fail(job->ctx, MUC_UNSUPPORTED, model->path, MUC_NO_OFFSET,
                        "a %s with %s: what is made like Llama or GPT-2 is trained and pruned; "
                        "without --steps and --prune compress quantizes it",
                        model->checkpoint.config.architecture, particular);
    if (particular && !is_written_back(&model->checkpoint))
        return muc_fail(job->ctx, MUC_UNSUPPORTED, model->path, MUC_NO_OFFSET,
                        "a %s with %s: compress writes what is made like Llama or GPT-2, and of "
                        "others Hugging Face folders that store matrices one by one; muc compile "
                        "quantizes it",
                        model->checkpoint.config.architecture, particular);
    if (model->checkpoint.weights)
        return muc_fail(job->ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "its weights are %s already", model->checkpoint.weights);
    return MUC_OK;
}

static muc_status check_training(const compress_job *job)
{
    const muc_compress_options *o = job->options;

    if (!o->data && (o->prune > 0 || o->cases))
        return muc_fail(job->ctx, MUC_USAGE, "compress", MUC_NO_OFFSET,
                        "%s needs a text: --data FILE", o->cases ? "training on cases" : "pruning");
    if (o->prune > 0 && !o->steps)
        return muc_fail(job->ctx, MUC_USAGE, "compress", MUC_NO_OFFSET,
                        "pruning is done while training: --steps N");
    return MUC_OK;
}

static muc_status find_format(const compress_job *job, const char *name, muc_lowbit *out)
{
    const char *formats[MUC_LOWBIT_COUNT];
    unsigned found;

    for (unsigned i = 0; i < MUC_LOWBIT_COUNT; i++)
        formats[i] = muc_lowbit_get((muc_lowbit)i)->name;
    MUC_TRY(muc_choose(job->ctx, "--quant", name, formats, MUC_COUNT(formats), &found));
    *out = (muc_lowbit)found;
    return MUC_OK;
}

static muc_status open_texts(compress_job *job)
{
    const char *source = job->options->calibration;

    if (!source)
        source = job->options->data ? job->options->data : "auto";
    if (strcmp(source, "none") == 0)
        return MUC_OK;
    job->formats.calibration = &job->texts;
    return muc_calibration_open(job->ctx, job->model, job->graph, source, &job->arena, &job->texts);
}

static muc_status open_teacher(compress_job *job)
{
    const muc_model_options options = { .context = job->model->context };
    uint32_t tokens = job->model->checkpoint.config.vocabulary;
    const muc_model *teacher;

    if (!job->options->teacher)
        return MUC_OK;
    MUC_TRY(muc_model_open(job->ctx, job->options->teacher, &options, &job->opened_teacher));
    job->teacher = teacher = job->opened_teacher;
    if (teacher->kind == MUC_MODEL_CHECKPOINT && !teacher->checkpoint.weights &&
        teacher->checkpoint.config.vocabulary == tokens)
        return MUC_OK;
    return muc_fail(job->ctx, MUC_USAGE, teacher->path, MUC_NO_OFFSET,
                    "a teacher is a checkpoint in floating point of as many tokens, %u", tokens);
}

/* ---- pruning ---- */

/* The rest goes on with a checkpoint without the heads and neurons that matter least. */
static muc_status prune(compress_job *job)
{
    const muc_compress_options *o = job->options;
    const muc_train_options training = {
        .data = o->data,
        .cases = o->cases,
        .tokenizer = job->model->checkpoint.tokenizer_path,
        .steps = o->steps,
        .batch = o->batch,
        .rate = o->rate,
        .seed = o->seed,
        .window = o->window,
        .prune = o->prune,
        .least_rate = -1,
        .decay = -1,
        .clip = -1,
    };
    const muc_model_options options = { .context = job->model->context };
    muc_report *report = NULL;
    const char *path, *name, *state;

    MUC_TRY(muc_arena_format(job->ctx, &job->arena, &path, "%s.pruned", job->out_path));
    MUC_TRY(muc_arena_format(job->ctx, &job->arena, &name, "pruned by %g, trained, in float32",
                             o->prune));
    MUC_TRY(muc_arena_format(job->ctx, &job->arena, &state, "%s/train.state", path));
    muc_remove(state); /* of a compression that was interrupted, of whatever model: we begin anew */
    MUC_TRY(muc_train(job->ctx, job->model->path, &training, path, &report));
    muc_report_free(report);
    MUC_TRY(muc_model_open(job->ctx, path, &options, &job->pruned));
    job->model = job->pruned;
    return measure(job, name, job->model);
}

/* ---- quantizing ---- */

/* What was written; its tokenizer is the given model's, which may have come from elsewhere. */
static muc_status open_result(const compress_job *job, const char *path, muc_model **out)
{
    const muc_model_options options = { .context = job->model->context };
    const muc_model *given = job->model;

    MUC_TRY(muc_model_open(job->ctx, path, &options, out));
    (*out)->tokenizer_form = given->tokenizer_form;
    (*out)->tokenizer_bytes = given->tokenizer_bytes;
    (*out)->tokenizer = given->tokenizer;
    (*out)->tokens = given->tokens;
    return MUC_OK;
}

/* the first that knows what a checkpoint's program takes: there is one */
static const muc_target *measuring_target(void)
{
    size_t i = 0;

    while (!muc_target_get(i)->measure)
        i++;
    return muc_target_get(i);
}

/* A folder whose program exceeds the budget never gets its place. */
static muc_status check_budget(muc_context *ctx, const char *path, void *arg)
{
    compress_job *job = arg;
    uint64_t budget = job->options->flash_bytes;
    muc_model *model;
    muc_status status;

    if (!budget)
        return MUC_OK;
    MUC_TRY(open_result(job, path, &model));
    status = measuring_target()->measure(ctx, model, job->options->machine, &job->size);
    muc_model_close(model);
    if (status != MUC_OK || job->size.flash_bytes <= budget)
        return status;
    return muc_fail(ctx, MUC_NOFIT, job->out_path, MUC_NO_OFFSET,
                    "its program takes %llu bytes of flash, %llu more than the budget; nothing is "
                    "written",
                    (unsigned long long)job->size.flash_bytes,
                    (unsigned long long)(job->size.flash_bytes - budget));
}

static muc_status write(compress_job *job, const muc_tensor_view *tensors, size_t count)
{
    return muc_compress_write(job->ctx, job->model, tensors, count, job->graph, &job->formats,
                              &job->quantized, job->out_path, check_budget, job);
}

/* The down projections of the first layers, whose rounding costs most for their size
 * (docs/COMPRESSION.md), have 4 bits as long as all weights have most_bits on average. */
static muc_status choose_finer(compress_job *job)
{
    const muc_checkpoint *checkpoint = &job->model->checkpoint;
    double weights = 0, bits = 0;
    const char **names;

    for (size_t i = 0; i < checkpoint->tensor_count; i++) {
        const muc_tensor_view *t = &checkpoint->tensors[i];
        muc_lowbit format =
            muc_hf_is_embedding(t->name) ? job->formats.embedding : job->formats.weights;

        if (t->rank != 2)
            continue;
        weights += (double)t->elements;
        bits += (double)t->elements *
                muc_lowbit_bits_per_weight(muc_lowbit_for_row(format, t->dims[1]), t->dims[1]);
    }
    MUC_TRY(MUC_ARENA_NEW(job->ctx, &job->arena, checkpoint->config.layers, &names));
    job->formats.finer = names;
    for (uint32_t layer = 0; layer < checkpoint->config.layers; layer++) {
        const char **name = &names[job->formats.finer_count];
        const muc_tensor_view *t;

        MUC_TRY(muc_llama_tensor_name(job->ctx, &job->arena, MUC_LLAMA_DOWN, layer, name));
        t = muc_checkpoint_find(checkpoint, *name);
        if (muc_lowbit_for_row(MUC_LOWBIT_INT2, t->dims[1]) != MUC_LOWBIT_INT2)
            continue;
        bits += (double)t->elements * 2;
        if (bits > most_bits * weights)
            break;
        job->formats.finer_count++;
    }
    return MUC_OK;
}

static muc_status quantize(compress_job *job, muc_lowbit weights, muc_lowbit embedding, bool pure)
{
    job->formats.weights = weights;
    job->formats.embedding = embedding;
    job->formats.finer_count = 0;
    if (weights == MUC_LOWBIT_INT2 && !pure)
        MUC_TRY(choose_finer(job));
    MUC_TRY(muc_lowbit_quantize(job->ctx, job->graph, &job->formats, &job->arena, &job->quantized));
    return write(job, job->model->checkpoint.tensors, job->model->checkpoint.tensor_count);
}

/* The formats asked for, or of falling size the first that fits. */
static muc_status quantize_to_budget(compress_job *job)
{
    static const struct {
        muc_lowbit weights, embedding;
        bool pure;
    } sizes[] = {
        { MUC_LOWBIT_INT8, MUC_LOWBIT_INT8, false }, { MUC_LOWBIT_INT4, MUC_LOWBIT_INT8, false },
        { MUC_LOWBIT_INT4, MUC_LOWBIT_INT4, false }, { MUC_LOWBIT_INT2, MUC_LOWBIT_INT8, false },
        { MUC_LOWBIT_INT2, MUC_LOWBIT_INT4, false }, { MUC_LOWBIT_INT2, MUC_LOWBIT_INT4, true },
    };
    const muc_compress_options *o = job->options;
    muc_lowbit weights = MUC_LOWBIT_INT2, embedding;

    if (o->weights)
        MUC_TRY(find_format(job, o->weights, &weights));
    embedding = weights == MUC_LOWBIT_INT4 || weights == MUC_LOWBIT_INT2 ? MUC_LOWBIT_INT4
                                                                         : MUC_LOWBIT_INT8;
    if (o->embedding)
        MUC_TRY(find_format(job, o->embedding, &embedding));
    if (!o->flash_bytes)
        return quantize(job, weights, embedding, o->pure);
    for (size_t i = 0; i < MUC_COUNT(sizes); i++) {
        bool last = i + 1 == MUC_COUNT(sizes);
        muc_status status;

        if (!last && ((o->weights && sizes[i].weights != weights) ||
                      (o->embedding && sizes[i].embedding != embedding)))
            continue;
        status = quantize(job, o->weights ? weights : sizes[i].weights,
                          o->embedding ? embedding : sizes[i].embedding, o->pure || sizes[i].pure);
        if (status != MUC_NOFIT || last)
            return status;
        muc_error_clear(job->ctx);
    }
    return MUC_OK;
}

static muc_status measure_result(compress_job *job, const char *how)
{
    const char *name, *finer = "";
    muc_model *model;
    muc_status status;

    if (job->formats.finer_count)
        MUC_TRY(muc_arena_format(job->ctx, &job->arena, &finer, ", %zu of %u down int4",
                                 job->formats.finer_count, job->model->checkpoint.config.layers));
    MUC_TRY(muc_arena_format(job->ctx, &job->arena, &name, "%s%s, embedding %s%s",
                             muc_lowbit_get(job->formats.weights)->name, finer,
                             muc_lowbit_get(job->formats.embedding)->name, how));
    MUC_TRY(open_result(job, job->out_path, &model));
    status = measure(job, name, model);
    muc_model_close(model);
    return status;
}

static muc_status train(compress_job *job)
{
    muc_compress_trained trained = { .arena = &job->arena };

    MUC_TRY(muc_compress_train(job->ctx, job->model, job->teacher, job->graph, job->options,
                               &job->quantized, &trained));
    job->quantized = trained.quantized;
    return write(job, trained.tensors, trained.tensor_count);
}

/* ---- report ---- */

static void add_stage(muc_report *report, const muc_compress_options *options, const stage *s)
{
    muc_report_begin_row(report);
    muc_report_add_text(report, "stage", "%s", s->name);
    muc_report_add_count(report, "bytes", s->bytes);
    muc_report_add_bits_per_weight(report, s->weight_bytes, s->weights);
    if (options->text)
        muc_report_add_real(report, "perplexity", s->perplexity);
    if (options->task) {
        muc_report_add_count(report, "exact", (uint64_t)s->exact);
        muc_report_add_count(report, "cases", (uint64_t)s->cases);
    }
    muc_report_end(report);
}

/* but for the embedding and the head */
static double bits_of_matrices(const compress_job *job)
{
    double bits = 0, weights = 0;

    for (size_t i = 0; i < job->quantized.count; i++) {
        const muc_lowbit_matrix *m = &job->quantized.matrices[i];
        double elements = (double)m->n * m->k;

        if (muc_hf_is_embedding(job->graph->tensors[m->tensor].name))
            continue;
        weights += elements;
        bits += elements * muc_lowbit_bits_per_weight(m->format, m->k);
    }
    return weights > 0 ? bits / weights : 0;
}

static muc_status make_report(const compress_job *job, muc_report **out)
{
    const muc_lowbit_result *q = &job->quantized;
    muc_report *report;

    MUC_TRY(muc_report_new(job->ctx, out));
    report = *out;
    muc_report_add_text(report, "folder", "%s", job->out_path);
    muc_report_add_text(report, "weights", "%s", muc_lowbit_get(job->formats.weights)->name);
    muc_report_add_count(report, "finer_matrices", job->formats.finer_count);
    muc_report_add_text(report, "embedding", "%s", muc_lowbit_get(job->formats.embedding)->name);
    muc_report_add_real(report, "matrix_bits_per_weight", bits_of_matrices(job));
    if (q->error > 0)
        muc_report_add_real(report, "snr_db", 10 * muc_log(q->energy / q->error) / muc_log(10));
    if (job->options->flash_bytes) {
        muc_report_add_count(report, "flash_bytes", job->size.flash_bytes);
        muc_report_add_count(report, "flash_budget", job->options->flash_bytes);
        muc_report_add_count(report, "sram_bytes", job->size.sram_bytes);
    }
    muc_report_begin_table(report, "stages");
    for (unsigned i = 0; i < job->stage_count; i++)
        add_stage(report, job->options, &job->stages[i]);
    muc_report_end(report);
    return muc_report_status(job->ctx, report);
}

/* ---- the road ---- */

static muc_status compress(compress_job *job)
{
    const muc_llama_options options = { 0 }; /* every position is kept */

    MUC_TRY(check_model(job));
    MUC_TRY(check_training(job));
    MUC_TRY(open_teacher(job));
    MUC_TRY(measure(job, "as given, in float32", job->model));
    if (job->options->prune > 0)
        MUC_TRY(prune(job));
    MUC_TRY(muc_llama_build(job->ctx, &job->model->checkpoint, &options, &job->graph));
    MUC_TRY(open_texts(job));         /* what error feedback looks at */
    MUC_TRY(quantize_to_budget(job)); /* the folder is there */
    MUC_TRY(measure_result(job, ""));
    if (!job->options->steps)
        return MUC_OK;
    MUC_TRY(train(job)); /* the same formats, better numbers */
    return measure_result(job, ", trained");
}

muc_status muc_compress(muc_context *ctx, const muc_model *model,
                        const muc_compress_options *options, const char *out_path, muc_report **out)
{
    MUC_IN_C_LOCALE;

    compress_job job = {
        .ctx = ctx, .teacher = model, .model = model, .options = options, .out_path = out_path
    };
    muc_status status = muc_folder_precheck(ctx, out_path);

    if (status == MUC_OK)
        status = compress(&job);
    if (status == MUC_OK)
        status = make_report(&job, out);
    muc_graph_free(job.graph);
    muc_model_close(job.pruned);
    muc_model_close(job.opened_teacher);
    muc_arena_free(&job.arena);
    return status;
}
