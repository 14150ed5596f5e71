/* clock_report.h - what the clock says of a program, as rows of a report. */
#ifndef MUC_UTHINKER_CLOCK_REPORT_H
#define MUC_UTHINKER_CLOCK_REPORT_H

#include "report/report_builder.h"
#include "targets/uthinker/clock/clock.h"

/* The first built-in machine that the program is made for; *found is false if there is none. */
muc_status muc_clock_built_in(muc_context *ctx, muc_arena *arena, const mur_program *program,
                              muc_uthinker_machine *out, bool *found);

/* The machine whose times a program takes: name as of muc_uthinker_find_machine, or NULL for the
 * first built-in one that the program is made for. Fails with MUC_MISMATCH for a machine of other
 * buffers, with MUC_USAGE for one without [time]. */
muc_status muc_clock_machine(muc_context *ctx, muc_arena *arena, const mur_program *program,
                             const char *program_name, const char *name, muc_uthinker_machine *out);

/* seconds, tokens_per_second, shares of roofs and, where the machine has energies, millijoules:
 * keys of what is open, a row or a group. */
void muc_clock_add_summary(muc_report *report, const muc_uthinker_machine *machine,
                           const muc_clock_sums *sums);

double muc_clock_energy_sum(const muc_clock_energy *energy);

/* What the calls did in numbers, and the tables "engines" and "energy". */
void muc_clock_add_details(muc_report *report, const muc_uthinker_machine *machine,
                           const muc_clock_sums *sums);

#endif
