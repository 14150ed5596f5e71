/* advise_program.h - what would make a call faster or take less energy, in figures and in words. */
#ifndef MUC_ADVISE_PROGRAM_H
#define MUC_ADVISE_PROGRAM_H

#include "report/report_builder.h"
#include "targets/uthinker/clock/clock_account.h"

typedef struct muc_advised_call {
    const mur_program *program;
    const muc_uthinker_machine *machine;
    uint32_t position, tokens;
    const muc_clock_sums *sums;       /* of the call and the choice of the likeliest token */
    const muc_clock_account *account; /* of the same */
} muc_advised_call;

/* Adds the tables "what_if" (the clock of the same call on machines that are better in one thing)
 * and "what_to_change" (sentences). */
muc_status muc_program_advise(muc_context *ctx, const muc_advised_call *call, muc_report *report);

#endif
