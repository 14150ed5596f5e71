/* mur_hal.h - what a board brings to a network that works in tiles: a DMA and cores.
 *
 * Four functions. hal/host/mur_hal_host.c emulates them and checks their contracts; a board that
 * has its own defines MUR_HAL_BOARD, which empties that file.
 *
 * Moves. Between mur_hal_start and the end of the mur_hal_wait that covers it, a move is in flight:
 * nobody writes its source, nobody reads or writes its destination, and no other move in flight has
 * a byte of its destination or, as destination, one of its source. Moves end in the order in which
 * they were started: to wait for one is to wait for all that were started before it (a DMA without
 * that order waits for each). Both functions are called by one core only, the one that runs the
 * network; also between fork and join.
 *
 * Cores. mur_hal_fork has a function run once for every index 0..count-1, each on a core of its own
 * or several on one, in any order, at any time until mur_hal_join returns. What the caller wrote
 * before the fork, and what waited-for moves brought, the tasks see; what they wrote the caller
 * sees after the join, and so does every move started after it. Tasks call none of the four. There
 * is at most one fork without its join.
 */
#ifndef MUR_HAL_H
#define MUR_HAL_H

#include <stdint.h>

/* Most moves in flight at once. */
enum { MUR_HAL_MOST_MOVES = 64 };

/* Rows of bytes from one memory to another; source and destination share no byte. Pitches are in
 * bytes from row to row, at least row_bytes (of no meaning for one row). rows and row_bytes are at
 * least 1. No alignment is promised. */
typedef struct mur_hal_move {
    void *to;
    const void *from;
    uint32_t rows, row_bytes;
    uint32_t to_pitch, from_pitch;
} mur_hal_move;

/* Moves are numbered from 1 in the order of their starts, modulo 2^32 without 0. */
typedef uint32_t mur_hal_ticket;

/* The ticket is never 0. `move` is read before it returns. */
mur_hal_ticket mur_hal_start(const mur_hal_move *move);

/* Returns when the move of this ticket, and all before it, have ended. A ticket may be waited for
 * more than once, until 2^31 further moves; 0 waits for none. */
void mur_hal_wait(mur_hal_ticket ticket);

typedef void mur_hal_task(void *context, uint32_t index, uint32_t count);

/* count: at least 1; more than the board has cores is allowed. context: alive until the join. */
void mur_hal_fork(mur_hal_task *task, void *context, uint32_t count);
void mur_hal_join(void);

#endif
