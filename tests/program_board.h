/* program_board.h - a board in memory: the simulated machine, sized for a program, and a language
 * model on it. */
#ifndef PROGRAM_BOARD_H
#define PROGRAM_BOARD_H

#include "check.h"

#include "mur_lm.h"
#include "targets/uthinker/sim/uthinker_sim.h"

typedef struct board {
    mur_sim sim;
    mur_sim_memory memory;
    mur_hal hal;
    mur_lm lm;
} board;

static inline void board_open(board *b, const mur_program *program, enum mur_sim_policy policy)
{
    const mur_mach *mach = program->mach;
    const uint32_t bytes[MUR_BUFFERS] = { mach->i0, mach->i1, mach->w0, mach->w1, mach->gb };

    memset(b, 0, sizeof(*b));
    for (uint32_t i = 0; i < MUR_GB; i++)
        b->memory.buffer[i] = calloc(1, bytes[i]);
    b->memory.gb = calloc(1, bytes[MUR_GB]);
    memcpy(b->memory.buffer_bytes, bytes, sizeof(bytes));
    b->memory.isa = mach->isa;
    b->memory.wgts = program->section[MUR_SECTION_WGTS];
    b->memory.parm = program->section[MUR_SECTION_PARM];
    b->memory.kv = calloc(1, program->region_bytes[MUR_KV]);
    b->memory.io = calloc(1, program->region_bytes[MUR_IO]);
    memcpy(b->memory.region_bytes, program->region_bytes, sizeof(b->memory.region_bytes));
    mur_sim_init(&b->sim, &b->memory, policy, 7);
    b->hal = mur_sim_hal(&b->sim);
    CHECK_EQ(mur_lm_open(&b->lm, program, &b->hal, b->memory.io), MUR_OK);
}

static inline void board_close(board *b)
{
    for (uint32_t i = 0; i < MUR_GB; i++)
        free(b->memory.buffer[i]);
    free(b->memory.gb);
    free(b->memory.kv);
    free(b->memory.io);
}

#endif
