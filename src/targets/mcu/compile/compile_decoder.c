/* compile_decoder.c - compiles a checkpoint to C for a microcontroller. compile(), near the end, is
 * its table of contents. */
#include "targets/mcu/compile/compile_decoder.h"

#include <string.h>

#include "base/choice.h"
#include "base/real.h"
#include "targets/mcu/emit/code_folder.h"
#include "run/logits.h"
#include "models/llama.h"
#include "passes/weights/hybrid_decoder.h"
#include "ref/ref.h"
#include "report/report_builder.h"
#include "targets/mcu/compile/build_mcu.h"
#include "targets/mcu/plan/plan_arena.h"
#include "targets/target.h"

enum { MOST_TOKENS = 16, CHECKED_POSITIONS = 16, MOST_PLANS = 4 };

typedef struct decoder_job {
    muc_context *ctx;
    const muc_model *model;
    const muc_compile_options *options;
    const char *out_path;
    muc_graph *graph;
    muc_hybrid_result quantized;
    muc_mcu_lm lm;
    muc_mcu_build *build;
    double kl, agreement; /* with float32, over CHECKED_POSITIONS */
    uint32_t positions;
    muc_target_need *need; /* of the next plan; or NULL */
} decoder_job;

static muc_status check_options(const decoder_job *job)
{
    const muc_compile_options *options = job->options;
    static const char *const codecs[] = { "int8", "bd4" };
    const char *codec = options->weights.codec;
    unsigned found;

    if (codec)
        MUC_TRY(muc_choose(job->ctx, "--quant", codec, codecs, MUC_COUNT(codecs), &found));
    if (options->weights.bits > 0 || options->weights.calibration || options->act_terms ||
        options->attention)
        return muc_fail(job->ctx, MUC_USAGE, "target mcu", MUC_NO_OFFSET,
                        "bits, calibration, terms and ways of attention are uthinker's");
    return MUC_OK;
}

static muc_hybrid_levels levels_of(const decoder_job *job)
{
    const char *codec = job->options->weights.codec;

    return codec && strcmp(codec, "bd4") == 0 ? MUC_HYBRID_BLOCKS : MUC_HYBRID_INT8;
}

static muc_status build_graph(const decoder_job *job, muc_graph **out)
{
    return muc_decoder_graph(job->ctx, job->model, job->model->context, NULL, out);
}

static muc_llama_options options_of(uint32_t context, bool shapes)
{
    return (muc_llama_options){
        .context = context, .max_tokens = MOST_TOKENS, .last_only = true, .shapes = shapes
    };
}

muc_status muc_decoder_graph(muc_context *ctx, const muc_model *model, uint32_t context,
                             const muc_hybrid_levels *levels, muc_graph **out)
{
    const muc_llama_options options = options_of(context, false);
    muc_hybrid_result ignored = { 0 };
    muc_status status;

    MUC_TRY(muc_llama_build(ctx, &model->checkpoint, &options, out));
    if (!levels)
        return MUC_OK;
    status = muc_hybrid_quantize(ctx, *out, *levels, &ignored);
    if (status != MUC_OK) {
        muc_graph_free(*out);
        *out = NULL;
    }
    return status;
}

static void describe(decoder_job *job)
{
    const muc_model *model = job->model;

    job->lm = (muc_mcu_lm){
        .tokenizer = model->tokenizer_form,
        .tokenizer_bytes = model->tokenizer_bytes,
        .prompt = model->prompt_template,
        .context = model->context,
        .vocabulary = model->checkpoint.config.vocabulary,
        .blocks = levels_of(job) == MUC_HYBRID_BLOCKS,
        .most_tokens = model->context < MOST_TOKENS ? model->context : MOST_TOKENS,
    };
    memcpy(job->lm.ends, model->tokens.ends, sizeof(job->lm.ends));
}

static muc_status translate(decoder_job *job)
{
    muc_arena arena = { 0 };
    const char *name;
    muc_status status = muc_name_of_output(job->ctx, &arena, job->model, job->options, &name);

    describe(job);
    if (status == MUC_OK) /* what comments and the README say */
        status =
            muc_arena_string(job->ctx, &job->graph->arena, name, strlen(name), &job->graph->name);
    if (status == MUC_OK)
        status = muc_mcu_compile_as(job->ctx, job->graph, name, job->options->machine,
                                    &(muc_mcu_choices){ .patches = MUC_MCU_PATCHES_OFF,
                                                        .lm = &job->lm,
                                                        .package = job->options->package,
                                                        .weights_file = job->options->weights_file,
                                                        .need = job->need },
                                    &job->build);
    muc_arena_free(&arena);
    return status;
}

static bool is_compressed(const muc_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->tensor_count; i++)
        if (checkpoint->tensors[i].scales)
            return true;
    return false;
}

/* *shorter: as of muc_mcu_lm */
static muc_status plan_shapes(decoder_job *job, muc_graph *graph, uint32_t context,
                              uint32_t *shorter)
{
    const muc_mcu_choices choices = { .patches = MUC_MCU_PATCHES_OFF,
                                      .lm = &job->lm,
                                      .need = job->need };
    const char *path = job->model->path;
    muc_mcu_build *build = NULL;
    muc_hybrid_result ignored;

    MUC_TRY(muc_arena_string(job->ctx, &graph->arena, path, strlen(path), &graph->name));
    MUC_TRY(muc_hybrid_quantize(job->ctx, graph, MUC_HYBRID_SHAPES, &ignored));
    describe(job);
    job->lm.context = context;
    job->lm.shapes = true;
    job->lm.shorter = shorter;
    MUC_TRY(muc_mcu_compile_as(job->ctx, graph, "shapes", job->options->machine, &choices, &build));
    muc_mcu_build_free(build);
    return MUC_OK;
}

static muc_status check_context(decoder_job *job, uint32_t context, uint32_t *shorter)
{
    const muc_llama_options options = options_of(context, true);
    muc_status status;
    muc_graph *graph;

    *shorter = 0;
    MUC_TRY(muc_llama_build(job->ctx, &job->model->checkpoint, &options, &graph));
    status = plan_shapes(job, graph, context, shorter);
    muc_graph_free(graph);
    return status;
}

/* The whole plan before a weight is read. Those of a compressed checkpoint say themselves how many
 * bits they have, and nothing is left to be quantized. */
static muc_status check_shapes(decoder_job *job)
{
    uint32_t context = job->model->context, shorter;
    muc_status status;

    if (is_compressed(&job->model->checkpoint))
        return MUC_OK;
    status = check_context(job, context, &shorter);
    job->need = NULL; /* not that of other contexts */
    for (uint32_t i = 0; status != MUC_OK && shorter != 0 && i < MOST_PLANS; i++) {
        context = shorter;
        if (check_context(job, context, &shorter) != MUC_OK) /* says nothing more */
            continue;
        muc_hint(job->ctx, "--ctx-size %u would do", context);
        shorter = 0;
    }
    return status;
}

/* ---- against float32 ---- */

/* The text that int8 makes greedily, and how far float32's logits are from its own on the way. */
static muc_status compare(decoder_job *job, muc_ref *exact, muc_ref *small)
{
    uint32_t vocabulary = job->lm.vocabulary, agreed = 0;
    int32_t token = job->model->tokens.begin < vocabulary ? (int32_t)job->model->tokens.begin : 0;

    job->positions =
        job->model->context < CHECKED_POSITIONS ? job->model->context : CHECKED_POSITIONS;
    for (uint32_t i = 0; i < job->positions; i++) {
        size_t rows, columns;
        const float *p, *q;

        muc_progress(job->ctx, "comparing", i, job->positions);
        MUC_TRY(muc_ref_run_tokens(exact, i, &token, 1));
        MUC_TRY(muc_ref_run_tokens(small, i, &token, 1));
        p = muc_ref_read(exact, "head", &rows, &columns);
        q = muc_ref_read(small, "head", &rows, &columns);
        job->kl += muc_logits_divergence(p, muc_logits_partition(p, vocabulary), q,
                                         muc_logits_partition(q, vocabulary), vocabulary);
        token = (int32_t)muc_logits_arg_max(q, vocabulary);
        agreed += muc_logits_arg_max(p, vocabulary) == (uint32_t)token;
    }
    muc_progress(job->ctx, "comparing", job->positions, job->positions);
    job->kl /= job->positions;
    job->agreement = (double)agreed / job->positions;
    return MUC_OK;
}

static muc_status self_check(decoder_job *job)
{
    muc_ref *exact = NULL, *small = NULL;
    muc_graph *graph = NULL;
    muc_status status = build_graph(job, &graph);

    if (status == MUC_OK)
        status = muc_ref_open(job->ctx, graph, &exact);
    if (status == MUC_OK)
        status = muc_ref_open(job->ctx, job->graph, &small);
    if (status == MUC_OK)
        status = compare(job, exact, small);
    muc_ref_close(small);
    muc_ref_close(exact);
    muc_graph_free(graph);
    return status;
}

/* ---- report ---- */

static muc_status make_report(const decoder_job *job, muc_report **out)
{
    const muc_mcu_program *program = &job->build->program;
    const muc_hybrid_result *quantized = &job->quantized;
    muc_report *report;

    MUC_TRY(muc_report_new(job->ctx, out));
    report = *out;
    muc_report_add_text(report, "folder", "%s", job->out_path);
    muc_report_add_text(report, "name", "%s", program->name);
    muc_report_add_text(report, "machine", "%s", program->machine->name);
    muc_report_add_count(report, "weights", program->weights);
    muc_report_add_bits_per_weight(report, program->weight_bytes, program->weights);
    if (quantized->error > 0)
        muc_report_add_real(report, "snr_db",
                            10 * muc_log(quantized->energy / quantized->error) / muc_log(10));
    muc_report_add_count(report, "context", job->lm.context);
    muc_report_add_count(report, "tokens_per_call", job->lm.most_tokens);
    muc_report_add_count(report, "arena_bytes", program->plan.peak);
    muc_report_add_count(report, "arena_bound", program->plan.least);
    muc_report_add_count(report, "constant_bytes", muc_mcu_constant_bytes(program));
    muc_report_add_count(report, "tokenizer_bytes", job->lm.tokenizer_bytes);
    muc_report_add_count(report, "flash_bytes", muc_mcu_language_bytes(program));
    muc_report_begin_group(report, "self_check");
    muc_report_add_count(report, "positions", job->positions);
    muc_report_add_real(report, "kl", job->kl);
    muc_report_add_real(report, "top1_agreement", job->agreement);
    muc_report_end(report);
    return muc_report_status(job->ctx, report);
}

/* ---- sizes ---- */

static muc_status measure(decoder_job *job)
{
    MUC_TRY(muc_model_need_tokenizer(job->ctx, job->model));
    MUC_TRY(build_graph(job, &job->graph));
    MUC_TRY(muc_hybrid_quantize(job->ctx, job->graph, levels_of(job), &job->quantized));
    return translate(job);
}

muc_status muc_measure_mcu(muc_context *ctx, const muc_model *model, const char *machine,
                           muc_target_size *out)
{
    const muc_compile_options options = { .machine = machine };
    decoder_job job = { .ctx = ctx, .model = model, .options = &options };
    muc_status status = measure(&job);

    if (status == MUC_OK)
        *out = (muc_target_size){
            .flash_bytes = muc_mcu_language_bytes(&job.build->program),
            .sram_bytes = job.build->program.plan.peak,
        };
    muc_mcu_build_free(job.build);
    muc_graph_free(job.graph);
    return status;
}

static muc_status fit(decoder_job *job)
{
    MUC_TRY(check_options(job));
    if (!is_compressed(&job->model->checkpoint))
        return check_shapes(job);
    MUC_TRY(build_graph(job, &job->graph));
    MUC_TRY(muc_hybrid_quantize(job->ctx, job->graph, levels_of(job), &job->quantized));
    return translate(job);
}

muc_status muc_fit_decoder(muc_context *ctx, const muc_model *model,
                           const muc_compile_options *options, muc_target_need *out)
{
    decoder_job job = { .ctx = ctx, .model = model, .options = options, .need = out };
    muc_status status = fit(&job);

    muc_mcu_build_free(job.build);
    muc_graph_free(job.graph);
    return status;
}

/* ---- the road ---- */

static muc_status compile(decoder_job *job)
{
    MUC_TRY(check_options(job));
    MUC_TRY(check_shapes(job)); /* what cannot fit is refused before any weight is read */
    MUC_TRY(build_graph(job, &job->graph));                           /* formats, models */
    MUC_TRY(muc_hybrid_quantize(job->ctx, job->graph, levels_of(job), /* passes: int8 */
                                &job->quantized));
    MUC_TRY(translate(job));  /* nodes to calls, planned memory */
    MUC_TRY(self_check(job)); /* against float32 */
    return muc_mcu_write_folder(job->ctx, job->build, job->out_path, muc_code_check); /* C */
}

muc_status muc_compile_decoder(muc_context *ctx, const muc_model *model,
                               const muc_compile_options *options, const char *out_path,
                               muc_report **out)
{
    decoder_job job = { .ctx = ctx, .model = model, .options = options, .out_path = out_path };
    muc_status status = compile(&job);

    if (status == MUC_OK)
        status = make_report(&job, out);
    muc_mcu_build_free(job.build);
    muc_graph_free(job.graph);
    return status;
}
