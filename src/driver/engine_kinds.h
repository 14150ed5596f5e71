/* engine_kinds.h - the ways to compute logits. */
#ifndef MUC_ENGINE_KINDS_H
#define MUC_ENGINE_KINDS_H

#include "driver/engine.h"
#include "targets/uthinker/sim.h"

extern const muc_engine_kind muc_engine_float;   /* a checkpoint, by the reference */
extern const muc_engine_kind muc_engine_code;    /* C for a microcontroller, built for the host */
extern const muc_engine_kind muc_engine_machine; /* a program, on the simulated machine */

/* Has watch called after each instruction of a program's engine. */
void muc_engine_watch(muc_engine *engine,
                      void (*watch)(void *arg, const mur_sim *sim, enum mur_engine engine,
                                    const uint32_t *words),
                      void *arg);

#endif
