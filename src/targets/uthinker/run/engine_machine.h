/* engine_machine.h - a program, run by the device's interpreter on the simulated machine. */
#ifndef MUC_UTHINKER_ENGINE_MACHINE_H
#define MUC_UTHINKER_ENGINE_MACHINE_H

#include "run/engine.h"
#include "targets/uthinker/sim/uthinker_sim.h"

extern const muc_engine_kind muc_engine_machine;

/* muc_engine_kind's clock of programs (report_program.c). */
muc_status muc_clock_program(muc_context *ctx, const muc_model *model, const char *machine,
                             uint32_t prompt, uint32_t steps, bool drawn, muc_report *report);

/* muc_engine_kind's verify_machine (verify_machine.c). */
muc_status muc_verify_machine_uthinker(muc_context *ctx, const muc_model *program,
                                       const muc_machine *machine, const char *prompt,
                                       muc_report **out);

/* Has watch called after each instruction of a program's engine; it settles the simulator
 * (mur_sim_settle) before it reads its memory. */
void muc_engine_watch(muc_engine *engine,
                      void (*watch)(void *arg, mur_sim *sim, enum mur_engine engine,
                                    const uint32_t *words),
                      void *arg);

#endif
