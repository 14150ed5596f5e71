/* clock_report.c - sums of the clock in seconds, shares and millijoules. */
#include "targets/uthinker/clock/clock_report.h"

#include <string.h>

#include "targets/target.h"
#include "targets/uthinker/machines/uthinker_machine.h"

static const double seconds_per_ps = 1e-12, millijoules_per_fj = 1e-12;

static bool is_for(const mur_program *program, const muc_uthinker_machine *machine)
{
    const mur_mach mach = muc_uthinker_mach(machine);

    return memcmp(program->mach, &mach, sizeof(mach)) == 0;
}

muc_status muc_clock_built_in(muc_context *ctx, muc_arena *arena, const mur_program *program,
                              muc_uthinker_machine *out, bool *found)
{
    const muc_target_machine *row;

    *found = false;
    for (size_t i = 0; !*found && (row = muc_machine_at_uthinker(i)); i++) {
        MUC_TRY(muc_uthinker_find_machine(ctx, arena, row->name, out));
        *found = is_for(program, out);
    }
    return MUC_OK;
}

muc_status muc_clock_machine(muc_context *ctx, muc_arena *arena, const mur_program *program,
                             const char *program_name, const char *name, muc_uthinker_machine *out)
{
    bool found;

    if (!name) {
        MUC_TRY(muc_clock_built_in(ctx, arena, program, out, &found));
        if (found)
            return MUC_OK;
        return muc_fail(ctx, MUC_USAGE, program_name, MUC_NO_OFFSET,
                        "is made for a machine that is not built in: say which times it has with "
                        "--machine FILE");
    }
    MUC_TRY(muc_uthinker_find_machine(ctx, arena, name, out));
    if (!is_for(program, out))
        return muc_fail(ctx, MUC_MISMATCH, program_name, MUC_NO_OFFSET,
                        "is made for a machine of another array, other buffers or rows than %s: "
                        "compile it with --machine %s",
                        out->name, name);
    if (!out->costs.has_time)
        return muc_fail(ctx, MUC_USAGE, name, MUC_NO_OFFSET,
                        "has no section [time], which says how long instructions take");
    return MUC_OK;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

double muc_clock_energy_sum(const muc_clock_energy *e)
{
    return e->dram + e->sram + e->array + e->vector + e->cpu + e->idle;
}

void muc_clock_add_summary(muc_report *report, const muc_uthinker_machine *machine,
                           const muc_clock_sums *sums)
{
    const muc_clock_roofs roofs = muc_clock_roofs_of(machine, sums);
    const muc_clock_energy energy = muc_clock_energy_of(machine, sums);
    double seconds = (double)sums->ps * seconds_per_ps;

    muc_report_add_real(report, "seconds", seconds);
    muc_report_add_real(report, "tokens_per_second",
                        seconds > 0 ? (double)sums->tokens / seconds : 0);
    muc_report_add_real(report, "array_share", share(roofs.array_ps, sums->ps));
    muc_report_add_real(report, "dram_share", share(roofs.least_ps, sums->ps));
    muc_report_add_real(report, "cpu_share", share(roofs.cpu_ps, sums->ps));
    if (machine->costs.has_energy)
        muc_report_add_real(report, "millijoules",
                            muc_clock_energy_sum(&energy) * millijoules_per_fj);
}

static void add_engine(muc_report *report, const char *name, uint64_t ps, uint64_t whole)
{
    muc_report_begin_row(report);
    muc_report_add_text(report, "engine", "%s", name);
    muc_report_add_real(report, "busy_seconds", (double)ps * seconds_per_ps);
    muc_report_add_real(report, "share", share(ps, whole));
    muc_report_end(report);
}

static void add_energy(muc_report *report, const char *name, double fj, double whole,
                       uint64_t tokens)
{
    muc_report_begin_row(report);
    muc_report_add_text(report, "part", "%s", name);
    muc_report_add_real(report, "millijoules", fj * millijoules_per_fj);
    muc_report_add_real(report, "millijoules_per_token", fj * millijoules_per_fj / (double)tokens);
    muc_report_add_real(report, "share", whole > 0 ? fj / whole : 0);
    muc_report_end(report);
}

static void add_energies(muc_report *report, const muc_clock_energy *energy, uint64_t tokens)
{
    double whole = muc_clock_energy_sum(energy);

    muc_report_begin_table(report, "energy");
    add_energy(report, "DRAM", energy->dram, whole, tokens);
    add_energy(report, "buffers", energy->sram, whole, tokens);
    add_energy(report, "array", energy->array, whole, tokens);
    add_energy(report, "vector unit", energy->vector, whole, tokens);
    add_energy(report, "CPU", energy->cpu, whole, tokens);
    add_energy(report, "at rest", energy->idle, whole, tokens);
    muc_report_end(report);
}

void muc_clock_add_details(muc_report *report, const muc_uthinker_machine *machine,
                           const muc_clock_sums *sums)
{
    const muc_clock_energy energy = muc_clock_energy_of(machine, sums);
    uint64_t issued = sums->instructions;

    muc_report_add_count(report, "macs", sums->macs);
    muc_report_add_count(report, "dram_bytes", sums->dram_bytes);
    muc_report_add_count(report, "least_dram_bytes", sums->least_bytes);
    muc_report_add_count(report, "instructions", issued);
    muc_report_add_count(report, "cpu_instructions", sums->cpu_instructions);
    muc_report_begin_table(report, "engines");
    add_engine(report, "DMA", sums->dma_ps, sums->ps);
    add_engine(report, "array", sums->array_ps, sums->ps);
    add_engine(report, "vector unit", sums->vector_ps, sums->ps);
    add_engine(report, "CPU", sums->cpu_ps, sums->ps);
    add_engine(report, "CPU: EMBED", sums->embed_ps, sums->ps);
    add_engine(report, "CPU: choice of the token", sums->choice_ps, sums->ps);
    muc_report_end(report);
    if (machine->costs.has_energy)
        add_energies(report, &energy, sums->tokens);
}
