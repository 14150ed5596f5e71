/* account_report.h - an account of the clock as tables of a report. */
#ifndef MUC_UTHINKER_ACCOUNT_REPORT_H
#define MUC_UTHINKER_ACCOUNT_REPORT_H

#include "report/report_builder.h"
#include "targets/uthinker/clock/clock_account.h"

/* Cycles of the accelerator's clock, rounded. */
uint64_t muc_clock_cycles(const muc_uthinker_machine *machine, uint64_t ps);

/* "waits", "stages", "layers", "stage_layers" and "dram". sums: of the same calls. */
void muc_clock_add_account(muc_report *report, const muc_uthinker_machine *machine,
                           const muc_clock_sums *sums, const muc_clock_account *account);

#endif
