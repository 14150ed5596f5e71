/* report_program.c - what a program's calls take on a machine: the clock of SPEC.md section 9. */
#include "base/file.h"
#include "report/answers.h"
#include "targets/target.h"
#include "targets/uthinker/clock/account_report.h"
#include "targets/uthinker/clock/clock_report.h"
#include "targets/uthinker/run/advise_program.h"
#include "targets/uthinker/run/draw_program.h"
#include "targets/uthinker/run/engine_machine.h"
#include "targets/uthinker/run/open_program.h"
#include "targets/uthinker/run/trace_program.h"

typedef struct program_report {
    muc_context *ctx;
    mur_program program;
    uint64_t program_bytes; /* of its file */
    muc_uthinker_machine machine;
    muc_report *report;
} program_report;

static muc_status add_call(program_report *r, uint32_t pos, uint32_t m)
{
    muc_clock_sums sums = { 0 };

    MUC_TRY(muc_clock_feed(r->ctx, &r->program, &r->machine, pos, m, MUC_CLOCK_LIKELIEST, &sums));
    muc_report_begin_row(r->report);
    muc_report_add_count(r->report, "position", pos);
    muc_report_add_count(r->report, "tokens", m);
    muc_clock_add_summary(r->report, &r->machine, &sums);
    muc_report_end(r->report);
    return MUC_OK;
}

/* one token at the first position, in the middle and at the last, and the largest first call */
static muc_status add_calls(program_report *r)
{
    static const muc_report_column columns[] = {
        { "position", NULL, "of the first token" },
        { "tokens", NULL, "that are fed; the likeliest next one is then chosen" },
        { "seconds", "s", "from the call to the choice" },
        { "tokens_per_second", NULL, NULL },
        { "array_share", NULL, "of the time that the array's passes need" },
        { "dram_share", NULL, "of the time that the fewest bytes need" },
        { "cpu_share", NULL, "of the time that the CPU executes" },
        { "millijoules", NULL, NULL },
        { NULL, NULL, NULL },
    };
    const mur_meta *meta = r->program.meta;
    uint32_t last = meta->context - 1;

    muc_report_begin_columns(r->report, "calls", columns);
    MUC_TRY(add_call(r, 0, 1));
    if (last > 1)
        MUC_TRY(add_call(r, last / 2, 1));
    if (last > 0)
        MUC_TRY(add_call(r, last, 1));
    if (meta->rows > 1)
        MUC_TRY(add_call(r, 0, meta->rows));
    muc_report_end(r->report);
    return MUC_OK;
}

/* the roof that is nearest to the time */
static void add_roof(program_report *r, const muc_clock_sums *sums)
{
    const muc_clock_roofs roofs = muc_clock_roofs_of(&r->machine, sums);
    const char *name = "DRAM";
    uint64_t ps = roofs.least_ps;

    if (roofs.array_ps > ps) {
        name = "array";
        ps = roofs.array_ps;
    }
    if (roofs.cpu_ps > ps) {
        name = "CPU";
        ps = roofs.cpu_ps;
    }
    muc_report_add_text(r->report, "binding_roof", "%s", name);
    muc_report_add_real(r->report, "binding_share", (double)ps / (double)sums->ps);
}

/* a prompt that ends with this call, from the first position on */
static muc_status add_first_token(program_report *r, uint32_t end)
{
    muc_clock_sums sums = { 0 };

    MUC_TRY(muc_clock_feed(r->ctx, &r->program, &r->machine, 0, end, MUC_CLOCK_LIKELIEST, &sums));
    muc_report_add_real(r->report, "first_token_seconds", (double)sums.ps * 1e-12);
    return MUC_OK;
}

static uint64_t buffer_bytes(const muc_uthinker_machine *machine)
{
    uint64_t bytes = 0;

    for (unsigned b = 0; b < MUR_BUFFERS; b++)
        bytes += machine->buffer_bytes[b];
    return bytes;
}

static muc_status add_facts(program_report *r, const char *path, const muc_advised_call *call)
{
    const muc_clock_sums *sums = call->sums;
    const muc_clock_energy energy = muc_clock_energy_of(&r->machine, sums);

    muc_report_add_text(r->report, "file", "%s", path);
    muc_report_add_text(r->report, "machine", "%s", r->machine.name);
    muc_report_add_count(r->report, "position", call->position);
    muc_report_add_count(r->report, "tokens", call->tokens);
    muc_clock_add_summary(r->report, &r->machine, sums);
    MUC_TRY(add_first_token(r, call->position + call->tokens));
    add_roof(r, sums);
    if (r->machine.costs.has_energy)
        muc_report_add_real(r->report, "millijoules_per_token",
                            muc_clock_energy_sum(&energy) * 1e-12 / (double)sums->tokens);
    muc_report_add_count(r->report, "cycles", muc_clock_cycles(&r->machine, sums->ps));
    muc_report_add_count(r->report, "buffer_bytes", buffer_bytes(&r->machine));
    muc_report_add_count(r->report, "program_bytes", r->program_bytes);
    muc_clock_add_details(r->report, &r->machine, sums);
    return MUC_OK;
}

/* ---- answers ---- */

static void add_memories(program_report *r)
{
    const mur_meta *meta = r->program.meta;
    const muc_memory_use uses[] = {
        { "program", "flash", r->program_bytes, r->machine.flash_bytes },
        { "caches and logits", "DRAM", (uint64_t)meta->kv_bytes + meta->io_bytes,
          r->machine.dram_bytes },
    };

    muc_report_begin_memories(r->report);
    for (size_t i = 0; i < MUC_COUNT(uses); i++)
        muc_report_add_memory_use(r->report, &uses[i]);
    muc_report_end(r->report);
}

static muc_status answer_speed(program_report *r, muc_arena *arena, const muc_advised_call *call)
{
    const muc_clock_sums *sums = call->sums;
    const muc_clock_energy energy = muc_clock_energy_of(&r->machine, sums);
    double seconds = (double)sums->ps * 1e-12;
    const char *answer, *energy_words = "", *detail;

    MUC_TRY(
        muc_arena_format(r->ctx, arena, &answer, "%.4g tokens/s", (double)sums->tokens / seconds));
    if (r->machine.costs.has_energy)
        MUC_TRY(muc_arena_format(r->ctx, arena, &energy_words, ", %.3g mJ a token",
                                 muc_clock_energy_sum(&energy) * 1e-12 / (double)sums->tokens));
    MUC_TRY(muc_arena_format(
        r->ctx, arena, &detail, "On %s: %.4g ms for %u token%s at position %u%s.", r->machine.name,
        1e3 * seconds, call->tokens, call->tokens == 1 ? "" : "s", call->position, energy_words));
    muc_report_answer_speed(r->report, answer, detail);
    return MUC_OK;
}

/* of the tables that are there by now */
static muc_status add_answers(program_report *r, muc_arena *arena, const muc_advised_call *call)
{
    add_memories(r);
    muc_report_begin_answers(r->report);
    muc_report_answer_fit(r->report);
    MUC_TRY(answer_speed(r, arena, call));
    muc_report_answer_costs(r->report);
    muc_report_end(r->report);
    return muc_program_advise(r->ctx, call, r->report);
}

/* ---- all of it ---- */

static muc_status check_call(program_report *r, const char *path, uint32_t position,
                             uint32_t tokens)
{
    uint32_t context = r->program.meta->context;

    if (tokens > context || position > context - tokens)
        return muc_fail(r->ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "%u tokens at position %u: the context has %u", tokens, position, context);
    return MUC_OK;
}

static muc_status make_report(program_report *r, const char *path, muc_arena *arena,
                              const muc_report_options *options)
{
    uint32_t tokens = options->tokens ? options->tokens : 1;
    muc_clock_sums sums = { 0 };
    muc_clock_account account;
    const muc_advised_call call = { &r->program, &r->machine, options->position,
                                    tokens,      &sums,       &account };
    muc_clock_watch watch;

    MUC_TRY(check_call(r, path, options->position, tokens));
    if (options->brief) {
        MUC_TRY(muc_clock_feed(r->ctx, &r->program, &r->machine, options->position, tokens,
                               MUC_CLOCK_LIKELIEST, &sums));
        MUC_TRY(add_facts(r, path, &call));
        return muc_report_status(r->ctx, r->report);
    }
    MUC_TRY(muc_clock_account_begin(r->ctx, arena, &r->program, &r->machine, &account));
    watch = muc_clock_account_watch(&account);
    MUC_TRY(muc_clock_watched(r->ctx, &r->program, &r->machine, options->position, tokens,
                              MUC_CLOCK_LIKELIEST, &watch, &sums));
    MUC_TRY(add_facts(r, path, &call));
    muc_clock_add_account(r->report, &r->machine, &sums, &account);
    MUC_TRY(muc_program_draw(r->ctx, arena, &call, r->report));
    MUC_TRY(add_calls(r));
    MUC_TRY(add_answers(r, arena, &call));
    if (options->trace)
        MUC_TRY(muc_program_trace(r->ctx, arena, &call, path, options->trace));
    return muc_report_status(r->ctx, r->report);
}

static muc_status report_file(muc_context *ctx, const char *path, muc_bytes bytes, muc_arena *arena,
                              const muc_report_options *options, muc_report **out)
{
    program_report r = { .ctx = ctx, .program_bytes = bytes.size };
    muc_status status;

    MUC_TRY(muc_program_open(ctx, bytes, &r.program));
    MUC_TRY(muc_clock_machine(ctx, arena, &r.program, path, options->machine, &r.machine));
    MUC_TRY(muc_report_new(ctx, &r.report));
    status = make_report(&r, path, arena, options);
    if (status == MUC_OK)
        *out = r.report;
    else
        muc_report_free(r.report);
    return status;
}

muc_status muc_report_uthinker(muc_context *ctx, const char *path,
                               const muc_report_options *options, muc_report **out)
{
    muc_arena arena = { 0 };
    muc_file file;
    muc_status status;

    if (options->board || options->input)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "is a program: what its calls take does not depend on an input, and no "
                        "emulated board has the machine");
    MUC_TRY(muc_file_open(ctx, path, &file));
    status = report_file(ctx, path, file.bytes, &arena, options, out);
    muc_arena_free(&arena);
    muc_file_close(&file);
    return status;
}

static muc_status add_run(muc_context *ctx, const mur_program *program,
                          const muc_uthinker_machine *machine, uint32_t prompt, uint32_t steps,
                          muc_clock_choice choice, muc_report *report)
{
    muc_clock_sums first = { 0 }, others = { 0 };

    MUC_TRY(muc_clock_feed(ctx, program, machine, 0, prompt, choice, &first));
    for (uint32_t i = 0; i < steps; i++)
        MUC_TRY(muc_clock_call(ctx, program, machine, prompt + i, 1, choice, &others));
    muc_report_add_text(report, "machine", "%s", machine->name);
    muc_report_begin_group(report, "machine_prompt");
    muc_clock_add_summary(report, machine, &first);
    muc_report_end(report);
    muc_report_begin_group(report, "machine_steps");
    muc_clock_add_summary(report, machine, &others);
    muc_report_end(report);
    return MUC_OK;
}

muc_status muc_clock_program(muc_context *ctx, const muc_model *model, const char *machine,
                             uint32_t prompt, uint32_t steps, bool drawn, muc_report *report)
{
    const mur_program *program = muc_model_program(model);
    muc_uthinker_machine timed;
    muc_arena arena = { 0 };
    bool found = true;
    muc_status status = machine
                            ? muc_clock_machine(ctx, &arena, program, model->path, machine, &timed)
                            : muc_clock_built_in(ctx, &arena, program, &timed, &found);

    if (status == MUC_OK && found && prompt)
        status = add_run(ctx, program, &timed, prompt, steps,
                         drawn ? MUC_CLOCK_DRAWN : MUC_CLOCK_LIKELIEST, report);
    muc_arena_free(&arena);
    return status;
}
