/* clock_machine.h - a machine's times, as the second clock takes them. */
#ifndef CLOCK_MACHINE_H
#define CLOCK_MACHINE_H

#include "oracle/clock_judge.h"
#include "targets/uthinker/clock/clock.h"

static inline clock_machine clock_machine_of(const muc_uthinker_machine *machine)
{
    const muc_uthinker_time *time = &machine->costs.time;

    return (clock_machine){
#define MUC_MACHINE_TIME(name, min, max, meaning) .name = time->name,
#include "targets/uthinker/machines/machine_keys.def"
        .tile_k = machine->tile_k,
        .tile_n = machine->tile_n,
        .tokens = machine->tokens,
    };
}

#endif
