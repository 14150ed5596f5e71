/* mur_hal_host.h - the host's mur_hal.h, for tests: what it found, and in which order it runs. */
#ifndef MUR_HAL_HOST_H
#define MUR_HAL_HOST_H

#include <stdint.h>

/* Told of the first broken contract, in words; NULL (as at the start): the program traps. A handler
 * that returns lets the work go on. */
extern void (*mur_hal_host_problem)(const char *what);

/* Chooses the order of forked tasks and the bytes that fill destinations in flight. */
void mur_hal_host_seed(uint32_t seed);

/* Moves started and bytes moved since the program began. */
extern uint32_t mur_hal_host_moves;
extern uint64_t mur_hal_host_bytes;

#endif
