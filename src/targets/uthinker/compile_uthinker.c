/* compile_uthinker.c - from a language model to a program. compile(), at the end, is its table of
 * contents. */

#include <stdlib.h>
#include <string.h>

#include "base/choice.h"
#include "base/threads.h"
#include "run/bdt_model.h"
#include "run/engine.h"
#include "run/logits.h"
#include "run/model_graph.h"
#include "mur_stages.h"
#include "targets/uthinker/clock/clock_report.h"
#include "targets/uthinker/run/engine_machine.h"
#include "targets/uthinker/run/open_program.h"
#include "models/llama.h"
#include "report/report_builder.h"
#include "targets/target.h"
#include "targets/uthinker/choose_terms.h"
#include "targets/uthinker/golden_vectors.h"
#include "targets/uthinker/terms_text.h"
#include "targets/uthinker/uthinker.h"

typedef struct compile_job {
    muc_context *ctx;
    const muc_model *model;
    const muc_compile_options *options;
    const char *out_path;
    muc_output *output;
    muc_arena arena;
    muc_uthinker_machine machine;
    muc_uthinker_options target;
    bool chooses_terms;
    muc_terms_choice choice; /* then */
    muc_graph *graph;
    muc_uthinker_build *build;
    mur_program opened;
    muc_model program; /* the result, as if it had been opened; borrows from build */
    muc_golden_vectors golden;
    bool checked;
    double kl, agreement;
} compile_job;

/* ---- options ---- */

static muc_status parse_attention(muc_context *ctx, const char *text, bool *recompute)
{
    static const char *const kinds[] = { "cache", "recompute" };
    unsigned found;

    MUC_TRY(muc_choose(ctx, "--attention", text, kinds, MUC_COUNT(kinds), &found));
    *recompute = found == 1;
    return MUC_OK;
}

static muc_status choose_target(compile_job *job)
{
    const muc_compile_options *options = job->options;

    job->target = muc_uthinker_defaults;
    job->chooses_terms = options->act_terms && strcmp(options->act_terms, "auto") == 0;
    if (job->chooses_terms && job->model->kind != MUC_MODEL_CHECKPOINT)
        return muc_fail(job->ctx, MUC_USAGE, job->model->path, MUC_NO_OFFSET,
                        "--act-terms auto compares with float32, which a .bdt file has not: "
                        "compile the checkpoint");
    if (options->attention)
        MUC_TRY(parse_attention(job->ctx, options->attention, &job->target.recompute));
    return muc_uthinker_find_machine(job->ctx, &job->arena, options->machine, &job->machine);
}

/* ---- graph and weights ---- */

/* Messages of the target are about the graph's name. */
static muc_status name_graph(const compile_job *job, muc_graph *graph)
{
    const char *path = job->model->path;

    return muc_arena_string(job->ctx, &graph->arena, path, strlen(path), &graph->name);
}

/* --act-terms for the layers of a graph, unless it is auto. */
static muc_status set_terms(compile_job *job, const muc_graph *graph)
{
    const char *text = job->options->act_terms;
    uint32_t layers = muc_uthinker_count_layers(graph);
    muc_uthinker_terms *terms;

    if (!text || job->chooses_terms || layers == 0)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(job->ctx, &job->arena, layers, &terms));
    memset(terms, 2, layers * sizeof(*terms));
    job->target.layer_terms = terms;
    return muc_uthinker_read_terms(job->ctx, text, terms, layers);
}

static muc_status check_shapes(compile_job *job)
{
    muc_graph *graph;
    muc_status status;

    if (job->model->kind != MUC_MODEL_CHECKPOINT) /* it is quantized already, or refused */
        return MUC_OK;
    MUC_TRY(muc_model_shapes(job->ctx, job->model, &graph));
    status = name_graph(job, graph);
    if (status == MUC_OK)
        status = set_terms(job, graph);
    if (status == MUC_OK)
        status = muc_uthinker_check_shapes(job->ctx, graph, &job->machine, &job->target);
    if (status == MUC_UNSUPPORTED)
        muc_hint(job->ctx, "--target mcu compiles such models");
    muc_graph_free(graph);
    return status;
}

static muc_status open_graph(compile_job *job)
{
    if (job->model->kind == MUC_MODEL_BLOCKS)
        return muc_blocks_graph(job->ctx, job->model, &job->graph);
    return muc_model_graph(job->ctx, job->model, &job->graph);
}

static muc_status build_graph(compile_job *job)
{
    MUC_TRY(open_graph(job));
    MUC_TRY(name_graph(job, job->graph));
    return set_terms(job, job->graph);
}

static muc_status quantize(compile_job *job)
{
    const muc_weight_options *weights = &job->options->weights;

    if (job->model->kind != MUC_MODEL_BLOCKS)
        return muc_graph_quantize(job->ctx, job->model, weights, job->graph, NULL);
    if (weights->codec || weights->bits > 0 || weights->calibration)
        return muc_fail(job->ctx, MUC_USAGE, job->model->path, MUC_NO_OFFSET,
                        "a .bdt file is quantized already; its options were given to muc quantize");
    return MUC_OK;
}

static muc_status choose_terms(compile_job *job)
{
    if (!job->chooses_terms)
        return MUC_OK;
    MUC_TRY(muc_uthinker_choose_terms(job->ctx, &job->arena, job->model,
                                      job->options->weights.calibration, job->graph, &job->machine,
                                      &job->target, &job->choice));
    job->target.layer_terms = job->choice.terms;
    return MUC_OK;
}

/* ---- program ---- */

static muc_status translate(compile_job *job)
{
    const muc_model *model = job->model;
    const muc_uthinker_tokens tokens = {
        .tokenizer = model->tokenizer_form,
        .tokenizer_bytes = model->tokenizer_bytes,
        .bos = model->tokens.begin,
        .eos = { model->tokens.ends[0], model->tokens.ends[1], model->tokens.ends[2] },
        .prompt = model->prompt_template,
        .golden = MUC_GOLDEN_POSITIONS,
        .strip = job->options->strip,
        .output = job->output,
    };

    MUC_TRY(muc_uthinker_compile(job->ctx, job->graph, &job->machine, &job->target, &tokens,
                                 &job->build));
    muc_graph_rest(job->graph);
    return MUC_OK;
}

/* Opens what was built as a device would; what it refuses is a defect of this compiler. */
static muc_status verify(compile_job *job)
{
    muc_bytes bytes = job->build->program;

    bytes.name = job->out_path;
    if (muc_program_open(job->ctx, bytes, &job->opened) != MUC_OK)
        return MUC_BUG;
    muc_model_set_program(&job->program, &job->opened);
    job->program.path = job->out_path;
    job->program.context = job->opened.meta->context;
    job->program.tokens = job->model->tokens;
    return MUC_OK;
}

static muc_status add_golden_vectors(compile_job *job)
{
    const muc_golden_vectors *golden = &job->golden;

    MUC_TRY(
        muc_make_golden_vectors(job->ctx, &job->arena, job->model, &job->program, &job->golden));
    muc_uthinker_set_section(job->build, MUR_SECTION_GOLD, (const uint8_t *)golden->rows,
                             golden->positions * sizeof(*golden->rows));
    if (!job->build->stripped)
        muc_uthinker_set_section(job->build, MUR_SECTION_STAG, (const uint8_t *)golden->stages,
                                 (size_t)golden->positions * mur_stage_words(job->opened.meta) *
                                     sizeof(*golden->stages));
    return muc_uthinker_write(job->ctx, job->build);
}

/* The program's logits beside those of the checkpoint in float32, [compared][vocabulary]. */
typedef struct comparison {
    const compile_job *job;
    const float *reference;
    double kl[MUC_GOLDEN_COMPARED];
    bool agrees[MUC_GOLDEN_COMPARED];
} comparison;

static muc_status compare_position(void *arg, size_t i)
{
    comparison *c = arg;
    uint32_t vocabulary = c->job->opened.meta->vocabulary;
    const float *p = c->reference + i * vocabulary, *q = c->job->golden.logits + i * vocabulary;

    c->kl[i] = muc_logits_divergence(p, muc_logits_partition(p, vocabulary), q,
                                     muc_logits_partition(q, vocabulary), vocabulary);
    c->agrees[i] = muc_logits_arg_max(p, vocabulary) == muc_logits_arg_max(q, vocabulary);
    return MUC_OK;
}

/* How far the program's logits are from those of the checkpoint in float32. */
static muc_status self_check(compile_job *job)
{
    comparison c = { .job = job };
    uint32_t token[MUC_GOLDEN_COMPARED], agreed = 0;
    muc_engine *engine;
    muc_status status;

    if (job->model->kind != MUC_MODEL_CHECKPOINT)
        return MUC_OK;
    for (uint32_t i = 0; i < job->golden.compared; i++)
        token[i] = job->golden.rows[i].token;
    MUC_TRY(muc_engine_new(job->ctx, job->model, &engine));
    status = muc_engine_feed(engine, token, job->golden.compared, true, &c.reference);
    if (status == MUC_OK)
        status = muc_parallel_for(job->ctx, job->golden.compared, compare_position, &c);
    for (uint32_t i = 0; i < job->golden.compared; i++) {
        job->kl += c.kl[i];
        agreed += c.agrees[i];
    }
    muc_engine_free(engine);
    job->kl /= job->golden.compared;
    job->agreement = (double)agreed / job->golden.compared;
    job->checked = status == MUC_OK;
    return status;
}

/* ---- report ---- */

static void add_place(muc_report *report, const char *place, uint64_t bytes, uint64_t limit)
{
    muc_report_begin_row(report);
    muc_report_add_text(report, "place", "%s", place);
    muc_report_add_count(report, "bytes", bytes);
    if (limit) {
        muc_report_add_count(report, "limit", limit);
        muc_report_add_text(report, "use", "%.0f %%", 100.0 * (double)bytes / (double)limit);
    }
    muc_report_end(report);
}

static void add_memory(muc_report *report, const muc_uthinker_layout *layout, uint64_t program)
{
    muc_report_begin_table(report, "memory");
    for (unsigned b = 0; b < MUR_BUFFERS; b++)
        add_place(report, muc_uthinker_buffer_name((enum mur_buffer)b), layout->used_bytes[b],
                  layout->machine.buffer_bytes[b]);
    add_place(report, "flash", program, layout->machine.flash_bytes);
    add_place(report, "DRAM", (uint64_t)layout->kv_bytes + layout->io_bytes,
              layout->machine.dram_bytes);
    muc_report_end(report);
}

static muc_status make_report(compile_job *job, muc_report **out)
{
    const muc_bytes *program = &job->build->program;
    muc_report *report;

    MUC_TRY(muc_report_new(job->ctx, out));
    report = *out;
    muc_report_add_text(report, "file", "%s", job->out_path);
    muc_report_add_count(report, "bytes", program->size);
    muc_report_add_text(report, "crc32", "%08x", muc_crc32(0, program->data, program->size));
    muc_report_add_text(report, "machine", "%s", job->machine.name);
    muc_report_add_real(report, "bits_per_weight", muc_graph_bits_per_weight(job->graph));
    muc_report_add_count(report, "context", job->build->layout.options.context);
    muc_report_add_count(report, "tokens_per_call", job->build->layout.options.rows);
    if (job->build->stripped && !job->options->strip)
        muc_report_add_text(report, "names", "left out, and checksums of stages: flash is full");
    if (job->checked) {
        muc_report_begin_group(report, "self_check");
        muc_report_add_count(report, "positions", job->golden.compared);
        muc_report_add_real(report, "kl", job->kl);
        muc_report_add_real(report, "top1_agreement", job->agreement);
        muc_report_end(report);
    }
    if (job->chooses_terms)
        MUC_TRY(muc_terms_choice_report(&job->choice, report));
    add_memory(report, &job->build->layout, program->size);
    return muc_report_status(job->ctx, report);
}

/* ---- the road ---- */

static muc_status begin_file(compile_job *job)
{
    return muc_output_begin(job->ctx, job->out_path, &job->output);
}

static muc_status write_file(compile_job *job)
{
    const muc_bytes *program = &job->build->program;
    muc_output *output = job->output;

    MUC_TRY(muc_output_write(output, program->data, program->size));
    job->output = NULL;
    return muc_output_commit(output);
}

static muc_status compile(compile_job *job)
{
    MUC_TRY(choose_target(job));      /* the machine, and what its schedule may choose */
    MUC_TRY(check_shapes(job));       /* what cannot fit is refused before any weight is read */
    MUC_TRY(build_graph(job));        /* formats, models: a graph with symbolic shapes */
    MUC_TRY(quantize(job));           /* passes, quant: weights become blocks */
    MUC_TRY(choose_terms(job));       /* of activations, by measured loss, if asked */
    MUC_TRY(begin_file(job));         /* where the program is put together */
    MUC_TRY(translate(job));          /* match, lay out, lower, flatten, emit */
    muc_output_hasten(job->output);   /* the weights */
    MUC_TRY(verify(job));             /* as the device will */
    MUC_TRY(add_golden_vectors(job)); /* the simulator runs it */
    MUC_TRY(verify(job));             /* the file as it is written */
    MUC_TRY(self_check(job));         /* against float32 */
    return write_file(job);
}

/* ---- what a machine would need ---- */

/* Weights from which on a token is not timed, since that takes all of them quantized. */
enum { MOST_TIMED_WEIGHTS = 4 << 20 };

static uint64_t weights_of(const muc_checkpoint *checkpoint)
{
    uint64_t weights = 0;

    for (size_t i = 0; i < checkpoint->tensor_count; i++)
        weights += checkpoint->tensors[i].elements;
    return weights;
}

/* a token in the middle of the context */
static muc_status time_token(compile_job *job, muc_target_need *out)
{
    muc_clock_sums sums = { 0 };
    muc_clock_energy energy;

    if (!job->machine.costs.has_time)
        return MUC_OK;
    MUC_TRY(muc_clock_call(job->ctx, &job->opened, &job->machine, job->opened.meta->context / 2, 1,
                           MUC_CLOCK_LIKELIEST, &sums));
    out->ms_least = out->ms_most = (double)sums.ps * 1e-9;
    if (!job->machine.costs.has_energy)
        return MUC_OK;
    energy = muc_clock_energy_of(&job->machine, &sums);
    out->millijoules_least = out->millijoules_most = muc_clock_energy_sum(&energy) * 1e-12;
    return MUC_OK;
}

static muc_status fit(compile_job *job, muc_target_need *out)
{
    MUC_TRY(choose_target(job));
    out->flash_limit = job->machine.flash_bytes;
    out->ram_limit = job->machine.dram_bytes;
    MUC_TRY(check_shapes(job));
    if (job->model->kind == MUC_MODEL_CHECKPOINT &&
        weights_of(&job->model->checkpoint) > MOST_TIMED_WEIGHTS)
        return MUC_OK;
    MUC_TRY(build_graph(job));
    MUC_TRY(quantize(job));
    MUC_TRY(translate(job));
    MUC_TRY(verify(job));
    out->flash_bytes = job->build->program.size;
    out->ram_bytes = (uint64_t)job->build->layout.kv_bytes + job->build->layout.io_bytes;
    return time_token(job, out);
}

muc_status muc_fit_uthinker(muc_context *ctx, const muc_model *model,
                            const muc_compile_options *options, muc_target_need *out)
{
    compile_job job = { .ctx = ctx, .model = model, .options = options, .out_path = model->path };
    muc_status status;

    *out = (muc_target_need){ 0 };
    status = fit(&job, out);
    muc_uthinker_build_free(job.build);
    muc_graph_free(job.graph);
    muc_arena_free(&job.arena);
    return status;
}

muc_status muc_compile_uthinker(muc_context *ctx, const muc_model *model,
                                const muc_compile_options *options, const char *out_path,
                                muc_report **out)
{
    compile_job job = { .ctx = ctx, .model = model, .options = options, .out_path = out_path };
    muc_status status = compile(&job);

    if (status == MUC_OK)
        status = make_report(&job, out);
    if (job.output)
        muc_output_discard(job.output);
    muc_uthinker_build_free(job.build);
    muc_graph_free(job.graph);
    muc_arena_free(&job.arena);
    return status;
}
