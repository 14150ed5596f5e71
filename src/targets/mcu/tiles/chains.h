/* chains.h - steps whose results never leave the small memory: producers and consumers of tiles,
 * fused where the plan of plan/chain.h costs fewer cycles than each by itself.
 *
 * A chain is some steps that follow one another, all of which work in tiles; mur_tiles_run_chain
 * runs them in one call. What only they need of each other takes no room in the arena.
 */
#ifndef MUC_MCU_CHAINS_H
#define MUC_MCU_CHAINS_H

#include "base/text.h"
#include "mur_tiles.h"
#include "plan/chain.h"
#include "targets/mcu/program/mcu_program.h"

typedef enum muc_mcu_fuse {
    MUC_MCU_FUSE_AUTO,  /* the fewest cycles; if the arena is too small then, as LEAST */
    MUC_MCU_FUSE_LEAST, /* the fewest bytes moved */
    MUC_MCU_FUSE_OFF,
} muc_mcu_fuse;

typedef struct muc_mcu_link {
    mur_tiles tiles;
    uint8_t column[MUR_TILES_OPERANDS], moves[MUR_TILES_OPERANDS];
    uint32_t skip[MUR_TILES_OPERANDS];
} muc_mcu_link;

typedef struct muc_mcu_chain_column {
    uint32_t step, operand; /* whose name it has */
    uint32_t row_bytes;     /* as in mur_tiles_column */
    muc_chain_room room;    /* links, from 0 */
} muc_mcu_chain_column;

struct muc_mcu_chain {
    uint32_t first, end; /* steps */
    uint32_t turns, column_count;
    muc_mcu_link *links; /* of each step */
    muc_mcu_chain_column *columns;
    muc_chain_span *spans; /* [turns][column_count] */
};

/* The chain that a step is in, or NULL. */
const muc_mcu_chain *muc_mcu_chain_of(const muc_mcu_program *program, uint32_t step);
/* Finds the program's chains, when the order of its steps is known and before memory is planned.
 * Those of before are given up. */
muc_status muc_mcu_find_chains(muc_context *ctx, muc_mcu_program *program, muc_mcu_fuse mode);
muc_status muc_mcu_add_chain_buffers(muc_context *ctx, muc_mcu_program *program,
                                     const muc_mcu_chain *chain);
/* Adds a buffer of the small memory. The name is borrowed. */
muc_status muc_mcu_add_tile_buffer(muc_context *ctx, muc_mcu_program *program,
                                   const muc_plan_buffer *at, const char *name);
/* What the run needs for its call, and the call. */
void muc_mcu_emit_chain(const muc_mcu_program *program, const muc_mcu_chain *chain, muc_text *text);
void muc_mcu_emit_chain_call(const muc_mcu_program *program, const muc_mcu_chain *chain,
                             muc_text *text);

#endif
