/* clock.h - how long µThinker takes for a program's calls: SPEC.md section 9.
 *
 * The interpreter runs the program on a board that has no data: each instruction that reaches the
 * board, and each item that the CPU executes, moves the machine's clocks on. So any position costs
 * the same work, nothing has to be computed before it, and the result depends on the program, the
 * machine, the position and the number of tokens alone.
 *
 * Times are picoseconds, each rounded up; 2^64 of them are 213 days, and what takes longer fails
 * with MUC_UNSUPPORTED.
 */
#ifndef MUC_UTHINKER_CLOCK_H
#define MUC_UTHINKER_CLOCK_H

#include "base/base.h"
#include "mur.h"
#include "targets/uthinker/lower/uthinker_layout.h"

/* Sums over the calls that a clock has seen. */
typedef struct muc_clock_sums {
    uint64_t ps;                          /* from the first call's begin to the last one's end */
    uint64_t dma_ps, array_ps, vector_ps; /* at work */
    uint64_t cpu_ps;                      /* executing; the rest of `ps` it waits */
    uint64_t cpu_instructions;
    uint64_t embed_ps, choice_ps; /* of cpu_ps: what EMBED decodes, and the next token */
    uint64_t calls, tokens, items, instructions;
    uint64_t array_cycles;               /* passes of MM: its roof */
    uint64_t macs;                       /* rows x columns x K x terms */
    uint64_t elements;                   /* of vector instructions */
    uint64_t dram_bytes;                 /* whole bursts */
    uint64_t read_bytes[MUR_REGIONS];    /* as LD asks for them */
    uint64_t written_bytes[MUR_REGIONS]; /* ST */
    uint64_t sram_bytes;
    uint64_t least_bytes; /* that a machine with the same arithmetic must move, see SPEC.md */
} muc_clock_sums;

/* What is done with the logits after a call. */
typedef enum muc_clock_choice {
    MUC_CLOCK_NOTHING,   /* there are none: more tokens follow */
    MUC_CLOCK_LIKELIEST, /* the likeliest token is chosen */
    MUC_CLOCK_DRAWN      /* a token is drawn, at a temperature */
} muc_clock_choice;

/* Adds a call of m tokens at position pos, by the entry that takes so many. The machine has times.
 * Fails with MUC_USAGE if no entry takes the call, with MUC_BUG if the program, which is verified,
 * does not run. */
muc_status muc_clock_call(muc_context *ctx, const mur_program *program,
                          const muc_uthinker_machine *machine, uint32_t pos, uint32_t m,
                          muc_clock_choice choice, muc_clock_sums *sums);

/* The same for count tokens from position pos on, in calls as mur_lm makes them; the choice is
 * after the last one. */
muc_status muc_clock_feed(muc_context *ctx, const mur_program *program,
                          const muc_uthinker_machine *machine, uint32_t pos, uint32_t count,
                          muc_clock_choice choice, muc_clock_sums *sums);

/* Engines as the clock tells them apart: the accelerator is the array and the vector unit. */
typedef enum muc_clock_part {
    MUC_PART_DMA,
    MUC_PART_ARRAY,
    MUC_PART_VECTOR,
    MUC_PART_CPU,
    MUC_CLOCK_PARTS
} muc_clock_part;

/* What the CPU does, and what an engine waits for. */
typedef enum muc_clock_reason {
#define MUC_CLOCK_REASON(name, waits, words) MUC_CLOCK_##name,
#include "targets/uthinker/clock/clock_reasons.def"
    MUC_CLOCK_REASONS
} muc_clock_reason;

/* An instruction of DMA or accelerator; times count from the begin of the first call. */
typedef struct muc_clock_event {
    const uint32_t *words; /* resolved */
    uint32_t at;           /* of its INST in CODE */
    const struct muc_clock_work *work;
    muc_clock_part part;
    uint64_t issued, begin, end, complete; /* picoseconds */
    muc_clock_reason waited_for;           /* where tokens kept it from `ready` on, if they did */
    uint64_t ready;
} muc_clock_event;

/* What a clock tells while it runs, in the order of the CPU's time; nothing may be NULL. */
typedef struct muc_clock_watch {
    void *arg;
    /* The CPU does one thing from one time to another, for the item at a word of CODE; each time
     * begins where the one before it ended. Every item is executed once, in no time at least. */
    void (*cpu)(void *arg, uint64_t from, uint64_t to, muc_clock_reason reason, uint32_t at);
    void (*instruction)(void *arg, const muc_clock_event *event);
} muc_clock_watch;

/* muc_clock_feed, watched. */
muc_status muc_clock_watched(muc_context *ctx, const mur_program *program,
                             const muc_uthinker_machine *machine, uint32_t pos, uint32_t count,
                             muc_clock_choice choice, const muc_clock_watch *watch,
                             muc_clock_sums *sums);

/* What no machine of these costs can stay below, for the same calls; picoseconds, rounded down. */
typedef struct muc_clock_roofs {
    uint64_t array_ps; /* the passes of its products */
    uint64_t dram_ps;  /* the bytes that it moves */
    uint64_t least_ps; /* the bytes that must be moved: of programs as section 8 has them */
    uint64_t cpu_ps;   /* its instructions */
} muc_clock_roofs;
muc_clock_roofs muc_clock_roofs_of(const muc_uthinker_machine *machine, const muc_clock_sums *sums);

/* Femtojoules of parts; the machine has energies. */
typedef struct muc_clock_energy {
    double dram, sram, array, vector, cpu, idle;
} muc_clock_energy;
muc_clock_energy muc_clock_energy_of(const muc_uthinker_machine *machine,
                                     const muc_clock_sums *sums);

/* Bytes that a call of m tokens at pos, with logits or without, must at least move between DRAM and
 * chip (SPEC.md 9.6). */
uint64_t muc_clock_least_bytes(const mur_program *program, const muc_uthinker_machine *machine,
                               uint32_t pos, uint32_t m, bool logits);

#endif
