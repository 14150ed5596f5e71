/* compile.c - chooses the target for a model and compiles it; lists all targets. */
#include "driver/compile/chosen_target.h"

#include <string.h>

#include "base/choice.h"
#include "base/file.h"
#include "base/output_folder.h"
#include "base/locale.h"
#include "passes/simplify/outline.h"
#include "report/report_builder.h"

enum { MOST_TARGETS = 32 };

static const char *const kind_names[] = {
    [MUC_MODEL_CHECKPOINT] = "checkpoints of language models",
    [MUC_MODEL_BLOCKS] = ".bdt files",
    [MUC_MODEL_NETWORK] = "networks",
    [MUC_MODEL_COMPILED] = "programs",
};

bool muc_target_takes(const muc_target *target, const muc_model *model)
{
    return target->takes >> model->kind & 1;
}

static bool has_machine(const muc_target *target, const char *name)
{
    const muc_target_machine *machine;

    for (size_t i = 0; (machine = target->machine_at(i)); i++)
        if (muc_machine_is_called(machine->name, name))
            return true;
    return false;
}

/* the first that takes the model and has the machine, or that takes the model, or NULL */
static const muc_target *find_default(const muc_model *model, const char *machine, bool *known)
{
    const muc_target *target, *first = NULL;

    *known = true;
    for (size_t i = 0; (target = muc_target_get(i)); i++) {
        if (!muc_target_takes(target, model))
            continue;
        if (!machine || has_machine(target, machine))
            return target;
        first = first ? first : target;
    }
    *known = machine && muc_path_exists(machine); /* whose description is the target's to read */
    return first;
}

/* a machine that no target of the model has */
static muc_status refuse_machine(muc_context *ctx, const muc_model *model, const char *name)
{
    const muc_target_machine *machine;
    const muc_target *target;
    muc_choice choice;

    muc_choice_begin(&choice, name, strlen(name));
    for (size_t i = 0; (target = muc_target_get(i)); i++)
        for (size_t j = 0; muc_target_takes(target, model) && (machine = target->machine_at(j));
             j++)
            muc_choice_add(&choice, machine->name);
    return muc_choice_refuse(ctx, &choice, MUC_USAGE, "--machine", "");
}

static muc_status find_named(muc_context *ctx, const char *name, const muc_target **out)
{
    const char *names[MOST_TARGETS];
    const muc_target *target;
    size_t count = 0;
    unsigned found = 0;

    for (; count < MOST_TARGETS && (target = muc_target_get(count)); count++)
        names[count] = target->name;
    MUC_TRY(muc_choose(ctx, "--target", name, names, count, &found));
    *out = muc_target_get(found);
    return MUC_OK;
}

muc_status muc_target_find(muc_context *ctx, const muc_model *model,
                           const muc_compile_options *options, const muc_target **out)
{
    bool known;
    const muc_target *fitting = find_default(model, options->machine, &known);
    const char *name = options->target;

    if (!fitting)
        return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                        "is compiled already: no target takes %s", kind_names[model->kind]);
    *out = fitting;
    if (!name)
        return known ? MUC_OK : refuse_machine(ctx, model, options->machine);
    MUC_TRY(find_named(ctx, name, out));
    if (muc_target_takes(*out, model))
        return MUC_OK;
    return muc_fail(ctx, MUC_UNSUPPORTED, model->path, MUC_NO_OFFSET,
                    "target %s does not take %s; --target %s does", name, kind_names[model->kind],
                    fitting->name);
}

/* a target that makes nothing of inputs must not be given any */
static muc_status check_inputs(muc_context *ctx, const muc_model *model, const muc_target *target)
{
    const muc_target *other = NULL;

    if (!model->array_count || target->keeps_inputs)
        return MUC_OK;
    for (size_t i = 0; (other = muc_target_get(i)) && !other->keeps_inputs;)
        i++;
    return muc_fail(ctx, MUC_USAGE, model->path, MUC_NO_OFFSET,
                    "inputs become part of what target %s makes, not of target %s",
                    other ? other->name : "another", target->name);
}

/* the target, to which nothing but its memories stands in the way */
static muc_status choose(muc_context *ctx, const muc_model *model,
                         const muc_compile_options *options, const char *out_path,
                         const muc_target **out)
{
    MUC_TRY(muc_target_find(ctx, model, options, out));
    if (model->kind != MUC_MODEL_NETWORK)
        MUC_TRY(muc_model_need_tokenizer(ctx, model));
    MUC_TRY((*out)->check_output(ctx, out_path));
    return check_inputs(ctx, model, *out);
}

/* Constants from which on a plan that only shapes decide is worth its time before they are read. */
#define LARGE_CONSTANTS ((uint64_t)16 << 20)

muc_status muc_outline_model(muc_context *ctx, const muc_model *model, uint64_t least_bytes,
                             const muc_int8_guess *int8, muc_model *out)
{
    muc_status status;

    *out = (muc_model){ .kind = MUC_MODEL_NETWORK,
                        .path = model->path,
                        .options = model->options,
                        .unified = model->unified };
    MUC_TRY(muc_outline(ctx, model->network.graph, least_bytes, &out->network.graph));
    if (!out->network.graph || !int8)
        return MUC_OK;
    status = muc_network_assume_int8(ctx, out->network.graph, int8);
    if (status != MUC_OK)
        muc_graph_free(out->network.graph);
    return status;
}

/* Plans a copy of the network without its weights, unless their bytes are fewer than least_bytes.
 */
static muc_status plan(muc_context *ctx, const muc_model *model, const muc_target *target,
                       const muc_compile_options *options, uint64_t least_bytes,
                       const muc_int8_guess *int8)
{
    muc_model copy;
    muc_status status;

    MUC_TRY(muc_outline_model(ctx, model, least_bytes, int8, &copy));
    if (!copy.network.graph)
        return MUC_OK;
    status = target->compile(ctx, &copy, options, NULL, NULL);
    muc_graph_free(copy.network.graph);
    return status;
}

/* What weights do not change is a refusal; all else is for the compilation itself to tell. */
static muc_status judge(muc_context *ctx, muc_status status)
{
    if (status == MUC_NOFIT || status == MUC_USAGE || status == MUC_IO || status == MUC_UNSUPPORTED)
        return status;
    muc_error_clear(ctx);
    return MUC_OK;
}

muc_status muc_compile_precheck(muc_context *ctx, const muc_model *model,
                                const muc_compile_options *options, const char *keep,
                                const char *out_path)
{
    const muc_target *target = NULL;
    muc_int8_guess guess = { .keep = keep };
    muc_status status;

    MUC_TRY(choose(ctx, model, options, out_path, &target));
    status = plan(ctx, model, target, options, 0, &guess);
    if (status == MUC_UNSUPPORTED) { /* whatever the scales are? */
        muc_error_clear(ctx);
        guess.unlike = true;
        status = plan(ctx, model, target, options, 0, &guess);
    }
    return judge(ctx, status);
}

muc_status muc_compile(muc_context *ctx, const muc_model *model, const muc_compile_options *options,
                       const char *out_path, muc_report **out)
{
    MUC_IN_C_LOCALE;
    const muc_target *target = NULL;

    MUC_TRY(choose(ctx, model, options, out_path, &target));
    if (model->kind == MUC_MODEL_NETWORK)
        MUC_TRY(judge(ctx, plan(ctx, model, target, options, LARGE_CONSTANTS, NULL)));
    return target->compile(ctx, model, options, out_path, out);
}

/* those that are built in; every target takes the file of another */
static void add_machines(muc_report *report, const muc_target *target)
{
    const muc_target_machine *machine;

    for (size_t i = 0; (machine = target->machine_at(i)); i++) {
        muc_report_begin_row(report);
        muc_report_add_text(report, "target", "%s", target->name);
        muc_report_add_text(report, "name", "%s", machine->name);
        muc_report_add_text(report, "meaning", "%s", machine->meaning);
        muc_report_end(report);
    }
}

muc_status muc_list_targets(muc_context *ctx, muc_report **out)
{
    MUC_IN_C_LOCALE;
    const muc_target *target;

    MUC_TRY(muc_report_new(ctx, out));
    muc_report_begin_table(*out, "targets");
    for (size_t i = 0; (target = muc_target_get(i)); i++) {
        muc_report_begin_row(*out);
        muc_report_add_text(*out, "name", "%s", target->name);
        muc_report_add_text(*out, "meaning", "%s", target->meaning);
        muc_report_end(*out);
    }
    muc_report_end(*out);
    muc_report_begin_table(*out, "machines");
    for (size_t i = 0; (target = muc_target_get(i)); i++)
        add_machines(*out, target);
    muc_report_end(*out);
    return muc_report_status(ctx, *out);
}
