/* fit.c - tells which machines a model fits, about how fast it runs there, and what would help. */
#include "driver/compile/chosen_target.h"

#include <string.h>

#include "base/locale.h"
#include "report/answers.h"

typedef struct fit_job {
    muc_context *ctx;
    const muc_model *model;
    muc_arena arena;
    muc_report *report;
    uint32_t done, machines; /* for progress */
    uint32_t rows, fitting;
    struct {
        const char *machine, *weights;
        muc_target_need need;
    } last_fit, fastest; /* of those that fit; fastest by its most ms */
    struct advice {
        const char *target, *machine, *weights, *text;
        struct advice *next;
    } * advice, **last;
} fit_job;

/* whether `muc compile --quant int8` could make it int8 */
static bool is_float_network(const muc_model *model)
{
    const muc_graph *graph = model->network.graph;
    bool takes_floats = false;

    if (model->kind != MUC_MODEL_NETWORK)
        return false;
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        if (graph->tensors[i].quantization && graph->tensors[i].kind != MUC_TENSOR_CONST)
            return false;
        if (graph->tensors[i].kind == MUC_TENSOR_INPUT && graph->tensors[i].dtype == MUC_F32)
            takes_floats = true;
    }
    return takes_floats;
}

static void add_figures(muc_report *report, const muc_target_need *need)
{
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        { "flash_bytes", need->flash_bytes },
        { "flash_limit", need->flash_limit },
        { "ram_bytes", need->ram_bytes },
        { "ram_limit", need->ram_limit },
    };
    const struct {
        const char *key;
        double value;
    } reals[] = {
        { "ms_least", need->ms_least },
        { "ms_most", need->ms_most },
        { "mj_least", need->millijoules_least },
        { "mj_most", need->millijoules_most },
    };

    for (size_t i = 0; i < MUC_COUNT(counts); i++)
        if (counts[i].value)
            muc_report_add_count(report, counts[i].key, counts[i].value);
    for (size_t i = 0; i < MUC_COUNT(reals); i++)
        if (reals[i].value > 0)
            muc_report_add_real(report, reals[i].key, reals[i].value);
    if (*need->power_source)
        muc_report_add_text(report, "power_source", "%s", need->power_source);
}

/* what the failure says, for a table below the figures */
static muc_status keep_advice(fit_job *job, const char *target, const char *machine,
                              const char *weights)
{
    const char *text = muc_error_message(job->ctx), *path = job->model->path;
    struct advice *advice;

    if (strncmp(text, path, strlen(path)) == 0 && strncmp(text + strlen(path), ": ", 2) == 0)
        text += strlen(path) + 2;
    MUC_TRY(MUC_ARENA_NEW(job->ctx, &job->arena, 1, &advice));
    MUC_TRY(muc_arena_string(job->ctx, &job->arena, text, strlen(text), &advice->text));
    advice->target = target;
    advice->machine = machine;
    advice->weights = weights;
    *job->last = advice;
    job->last = &advice->next;
    muc_error_clear(job->ctx);
    return MUC_OK;
}

static muc_status measure(fit_job *job, const muc_target *target,
                          const muc_compile_options *options, const muc_int8_guess *int8,
                          muc_target_need *need)
{
    muc_model copy;
    muc_status status;

    *need = (muc_target_need){ 0 };
    if (job->model->kind != MUC_MODEL_NETWORK)
        return target->fit(job->ctx, job->model, options, need);
    MUC_TRY(muc_outline_model(job->ctx, job->model, 0, int8, &copy));
    status = target->fit(job->ctx, &copy, options, need);
    muc_graph_free(copy.network.graph);
    return status;
}

static void keep_fit(fit_job *job, const char *machine, const char *weights,
                     const muc_target_need *need)
{
    job->fitting++;
    job->last_fit.machine = machine;
    job->last_fit.weights = weights;
    job->last_fit.need = *need;
    if (need->ms_most > 0 && (!job->fastest.machine || need->ms_most < job->fastest.need.ms_most))
        job->fastest = job->last_fit;
}

static muc_status add_row(fit_job *job, const muc_target *target, const char *machine,
                          const char *weights, const muc_int8_guess *int8)
{
    const muc_compile_options options = { .target = target->name, .machine = machine };
    muc_target_need need;
    muc_status status = measure(job, target, &options, int8, &need);

    if (status == MUC_UNSUPPORTED && int8) { /* whatever the scales are? */
        const muc_int8_guess unlike = { .unlike = true };

        muc_error_clear(job->ctx);
        status = measure(job, target, &options, &unlike, &need);
    }
    if (status == MUC_UNSUPPORTED && int8) { /* nothing to choose */
        muc_error_clear(job->ctx);
        return MUC_OK;
    }
    if (status != MUC_OK && status != MUC_NOFIT && status != MUC_UNSUPPORTED)
        return status;
    muc_report_begin_row(job->report);
    muc_report_add_text(job->report, "target", "%s", target->name);
    muc_report_add_text(job->report, "machine", "%s", machine);
    if (weights)
        muc_report_add_text(job->report, "weights", "%s", weights);
    muc_report_add_text(job->report, "fits", "%s", status == MUC_OK ? "yes" : "no");
    add_figures(job->report, &need);
    muc_report_end(job->report);
    job->rows++;
    if (status == MUC_OK)
        keep_fit(job, machine, weights, &need);
    return status == MUC_OK ? MUC_OK : keep_advice(job, target->name, machine, weights);
}

static muc_status add_machine(fit_job *job, const muc_target *target, const char *machine)
{
    const muc_int8_guess guess = { 0 };
    bool is_float = is_float_network(job->model);

    muc_progress(job->ctx, "fitting", job->done++, job->machines);
    MUC_TRY(add_row(job, target, machine, is_float ? "float32" : NULL, NULL));
    return is_float ? add_row(job, target, machine, "int8", &guess) : MUC_OK;
}

/* of all targets or of one, all machines or one; named: that of --target or --machine, or NULL */
static muc_status add_machines(fit_job *job, const muc_target *named, const char *machine)
{
    static const muc_report_column columns[] = {
        { "target", NULL, NULL },
        { "machine", NULL, NULL },
        { "weights", NULL, "as the file has them, or as --quant int8 would make them" },
        { "fits", NULL, NULL },
        { "flash_bytes", NULL, "constants of a network, the program of a language model" },
        { "flash_limit", NULL, NULL },
        { "ram_bytes", NULL, NULL },
        { "ram_limit", NULL, NULL },
        { "ms_least", NULL, "modelled, of a run or a token" },
        { "ms_most", NULL, NULL },
        { "mj_least", NULL, NULL },
        { "mj_most", NULL, NULL },
        { "power_source", NULL, "of the milliwatts in mj" },
        { NULL, NULL, NULL },
    };
    const muc_target_machine *known;
    const muc_target *target;

    muc_report_begin_columns(job->report, "machines", columns);
    for (size_t i = 0; (target = muc_target_get(i)); i++) {
        if (named ? target != named : !muc_target_takes(target, job->model))
            continue;
        if (machine)
            MUC_TRY(add_machine(job, target, machine));
        for (size_t k = 0; !machine && (known = target->machine_at(k)); k++)
            MUC_TRY(add_machine(job, target, known->name));
    }
    muc_report_end(job->report);
    muc_progress(job->ctx, "fitting", job->machines, job->machines);
    return MUC_OK;
}

static void add_advice(const fit_job *job)
{
    if (!job->advice)
        return;
    muc_report_begin_table(job->report, "why_not");
    for (const struct advice *at = job->advice; at; at = at->next) {
        muc_report_begin_row(job->report);
        muc_report_add_text(job->report, "machine", "%s", at->machine);
        if (at->weights)
            muc_report_add_text(job->report, "weights", "%s", at->weights);
        muc_report_add_text(job->report, "reason", "%s", at->text);
        muc_report_end(job->report);
    }
    muc_report_end(job->report);
}

/* ---- answers ---- */

static muc_status answer_fit(fit_job *job, bool is_one)
{
    bool is_split =
        job->rows > job->machines; /* a machine has a row for each way to store weights */
    const char *answer = job->fitting ? "Yes" : "No", *detail;

    if (!is_one || (job->fitting && job->fitting < job->rows))
        MUC_TRY(muc_arena_format(job->ctx, &job->arena, &answer, "%u of %u %s", job->fitting,
                                 job->rows, is_split ? "combinations" : "machines"));
    if (is_one && job->fitting == 0)
        detail = "Without --machine, muc fit tells the machines that it fits.";
    else if (is_split)
        detail = "A combination is a machine with weights of float32 or int8.";
    else
        detail = "The table of machines has the bytes that each needs and has.";
    muc_report_answer(job->report, MUC_QUESTION_FIT, answer, detail);
    return MUC_OK;
}

static muc_status answer_speed(fit_job *job)
{
    const muc_target_need *need = &job->fastest.need;
    const char *weights = job->fastest.weights, *answer, *detail;

    if (!job->fastest.machine) {
        muc_report_answer_speed(job->report, "",
                                "No model of time has one of the machines that it fits.");
        return MUC_OK;
    }
    if (need->ms_least < need->ms_most)
        MUC_TRY(muc_arena_format(job->ctx, &job->arena, &answer, "%.3g to %.3g ms", need->ms_least,
                                 need->ms_most));
    else
        MUC_TRY(muc_arena_format(job->ctx, &job->arena, &answer, "%.3g ms", need->ms_most));
    MUC_TRY(muc_arena_format(job->ctx, &job->arena, &detail,
                             "A run or a token on %s%s%s, the fastest that it fits; modelled.",
                             job->fastest.machine, weights ? ", with weights of " : "",
                             weights ? weights : ""));
    muc_report_answer_speed(job->report, answer, detail);
    return MUC_OK;
}

static muc_status add_answers(fit_job *job, bool is_one)
{
    muc_report_begin_answers(job->report);
    MUC_TRY(answer_fit(job, is_one));
    if (job->fitting)
        MUC_TRY(answer_speed(job));
    muc_report_end(job->report);
    return MUC_OK;
}

static uint32_t count_machines(const muc_model *model)
{
    const muc_target *target;
    uint32_t count = 0;

    for (size_t i = 0; (target = muc_target_get(i)); i++)
        for (size_t k = 0; muc_target_takes(target, model) && target->machine_at(k); k++)
            count++;
    return count;
}

static muc_status fit(fit_job *job, const muc_compile_options *options)
{
    const muc_target *named = NULL;

    if (options->target || options->machine)
        MUC_TRY(muc_target_find(job->ctx, job->model, options, &named));
    job->machines = options->machine ? 1 : count_machines(job->model);
    muc_report_add_text(job->report, "file", "%s", job->model->path);
    if (job->model->one_sample)
        muc_report_add_text(job->report, "dim", "%s", job->model->one_sample);
    MUC_TRY(add_machines(job, named, options->machine));
    add_advice(job);
    MUC_TRY(add_answers(job, options->machine));
    MUC_TRY(muc_report_status(job->ctx, job->report));
    if (job->fitting)
        return MUC_OK;
    return muc_fail(job->ctx, MUC_NOFIT, job->model->path, MUC_NO_OFFSET,
                    options->machine ? "does not fit machine %s" : "fits no machine",
                    options->machine);
}

muc_status muc_fit(muc_context *ctx, const muc_model *model, const muc_compile_options *options,
                   muc_report **out)
{
    MUC_IN_C_LOCALE;
    fit_job job = { .ctx = ctx, .model = model, .last = &job.advice };
    muc_status status;

    MUC_TRY(muc_report_new(ctx, &job.report));
    status = fit(&job, options);
    muc_arena_free(&job.arena);
    if (status == MUC_OK || status == MUC_NOFIT)
        *out = job.report;
    else
        muc_report_free(job.report);
    return status;
}
