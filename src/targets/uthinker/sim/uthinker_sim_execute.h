/* uthinker_sim_execute.h - what each instruction of µThinker does, for uthinker_sim.c, which says
 * when. */
#ifndef MUR_SIM_EXECUTE_H
#define MUR_SIM_EXECUTE_H

#include "uthinker_sim.h"

typedef struct mur_sim_instruction {
    /* returns why the machine stops, or NULL; run is NULL where there is no such instruction */
    const char *(*run)(mur_sim *sim, const uint32_t *words);
    uint8_t engine, words;
} mur_sim_instruction;

/* by opcode */
extern const mur_sim_instruction mur_sim_instructions[MUR_SIM_OPCODES];

/* Adds the product to op->out, as MM does. Returns 0 if a block is malformed. */
int mur_sim_multiply(mur_sim *sim, const mur_sim_product *op);

#endif
