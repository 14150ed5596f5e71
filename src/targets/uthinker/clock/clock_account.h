/* clock_account.h - where the time of calls goes: by stage and layer, and why engines waited. */
#ifndef MUC_UTHINKER_CLOCK_ACCOUNT_H
#define MUC_UTHINKER_CLOCK_ACCOUNT_H

#include "base/arena.h"
#include "targets/uthinker/clock/clock.h"
#include "targets/uthinker/clock/dram_classes.h"

/* A stage of a layer, or sums of several. */
typedef struct muc_clock_cell {
    uint64_t ps; /* that the CPU spends on it, its waiting too: all cells add up to the calls' time
                  */
    uint64_t work_ps[MUC_CLOCK_PARTS]; /* at work for it */
    uint64_t dram_bytes, macs, instructions;
} muc_clock_cell;

/* Engines that wait. */
typedef enum muc_clock_engine {
    MUC_ENGINE_DMA,
    MUC_ENGINE_ACCELERATOR,
    MUC_ENGINE_CPU,
    MUC_CLOCK_ENGINES
} muc_clock_engine;

/* A loop whose rounds are layers: it holds attention, and no other loop holds it. */
typedef struct muc_clock_loop {
    uint32_t begin, next; /* words of its FOR and NEXT */
    uint32_t before;      /* layers of the entry's loops before it */
} muc_clock_loop;

typedef struct muc_clock_account {
    const mur_program *program;
    muc_dram_places places;
    const char **stages; /* [stage_count] in the order of CODE, then the choice of the token */
    uint32_t stage_count, layers;
    uint16_t *stage_of;    /* [words of CODE] */
    muc_clock_cell *cells; /* [stage_count][layers + 1], 0: outside of layers */
    uint64_t idle_ps[MUC_CLOCK_ENGINES][MUC_CLOCK_REASONS];
    uint64_t read_bytes[MUC_DRAM_CLASSES], written_bytes[MUC_DRAM_CLASSES];

    muc_clock_loop *loops; /* [loop_count], ascending */
    size_t loop_count, loop_capacity;
    uint64_t first_layer[2]; /* from and to: its first round, as the CPU passes it */
    uint32_t round;          /* the layer at hand, while in one */
    uint64_t free_at[MUC_ENGINE_CPU];
} muc_clock_account;

/* An account of nothing yet, in arena; borrows the program, which was opened. */
muc_status muc_clock_account_begin(muc_context *ctx, muc_arena *arena, const mur_program *program,
                                   const muc_uthinker_machine *machine, muc_clock_account *out);

/* What keeps it: the watch of one feed. Others may call its functions, too. */
muc_clock_watch muc_clock_account_watch(muc_clock_account *account);

/* 1.. of the item at a word of CODE, as of the last call of the watch; 0: outside of layers. */
uint32_t muc_clock_layer(const muc_clock_account *account, uint32_t at);

/* The cell of a stage summed over layers, or of a layer (0: what belongs to none) over stages. */
muc_clock_cell muc_clock_stage_sum(const muc_clock_account *account, uint32_t stage);
muc_clock_cell muc_clock_layer_sum(const muc_clock_account *account, uint32_t layer);

const char *muc_clock_reason_words(muc_clock_reason reason);
bool muc_clock_reason_waits(muc_clock_reason reason);

#endif
