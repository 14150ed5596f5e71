/* machine_costs.h - what a machine takes of time and energy, as machine_keys.def lists it. */
#ifndef MUC_UTHINKER_COSTS_H
#define MUC_UTHINKER_COSTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct muc_uthinker_time {
#define MUC_MACHINE_TIME(name, min, max, meaning) uint32_t name;
#include "targets/uthinker/machines/machine_keys.def"
} muc_uthinker_time;

typedef struct muc_uthinker_energy {
#define MUC_MACHINE_ENERGY(name, min, max, meaning) uint32_t name;
#include "targets/uthinker/machines/machine_keys.def"
} muc_uthinker_energy;

typedef struct muc_uthinker_costs {
    bool has_time, has_energy; /* the machine's file has these sections */
    muc_uthinker_time time;
    muc_uthinker_energy energy;
} muc_uthinker_costs;

#endif
