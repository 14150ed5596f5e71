/* mcu_machine.h - descriptions of microcontrollers: .ini files, those of machines/ built in.
 *
 * "[machine]" has name, core (cores.def), clock_mhz and, if they are known, milliwatts at that
 * clock, power_source, who says so, and, beyond one, cores. flash, up to four times, is a command
 * that brings firmware.elf or firmware.bin, in the folder where it is run, onto the board. boot
 * (boots.def) is what an image has beside its vectors, kit the --package that the maker's
 * development kit takes, for boards that muc new does not start. Each "[memory]" has name, bytes
 * (0: no limit), cycles_per_kb (to move 1024 bytes), holds: some of weights, arena, state, tiles,
 * code (where that lies apart from weights), and, if it answers late, line_bytes that it gives at a
 * time and line_cycles that the core waits for them; origin, its address, if firmware is linked by
 * it (muc new). "[dma]", between the memory that holds tiles and those that hold weights and the
 * arena, has setup_cycles and cycles_per_kb.
 */
#ifndef MUC_MCU_MACHINE_H
#define MUC_MCU_MACHINE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/text.h"

/* What kernels may use: one row a folder of runtime/kernels besides ref; those of SINGLE are dsp's.
 */
typedef enum muc_mcu_isa {
    MUC_MCU_ISA_NONE,
    MUC_MCU_ISA_DSP,    /* Armv7E-M: pairs of 16 bits */
    MUC_MCU_ISA_MVE,    /* Armv8.1-M: vectors of 128 bits */
    MUC_MCU_ISA_RV,     /* RV32IM */
    MUC_MCU_ISA_RVV,    /* that with Zve32x: vectors of any length */
    MUC_MCU_ISA_SINGLE, /* Armv7E-M, one instruction issued at a time */
    MUC_MCU_ISA_HOST,   /* of the compiler's machine, asked when code runs */
    MUC_MCU_ISA_COUNT,
} muc_mcu_isa;

typedef enum muc_mcu_core {
#define MUC_MCU_CORE(id, name, isa, as, flags, meaning) MUC_MCU_CORE_##id,
#include "targets/mcu/machines/cores.def"
#undef MUC_MCU_CORE
    MUC_MCU_CORE_COUNT
} muc_mcu_core;

typedef struct muc_mcu_core_info {
    const char *name;
    muc_mcu_isa isa;
    muc_mcu_core as;   /* whose measured figures hold for it */
    const char *flags; /* of gcc and clang */
} muc_mcu_core_info;

/* What a memory may hold. */
typedef enum muc_mcu_use {
    MUC_MCU_WEIGHTS, /* constants, and code if no other memory does */
    MUC_MCU_ARENA,   /* activations and scratch */
    MUC_MCU_STATE,   /* what lives from run to run */
    MUC_MCU_TILES,   /* what DMA brings */
    MUC_MCU_CODE,
    MUC_MCU_USES
} muc_mcu_use;

enum { MUC_MCU_MOST_MEMORIES = 8, MUC_MCU_MOST_COMMANDS = 4 };
#define MUC_MCU_NO_ORIGIN UINT32_MAX

typedef struct muc_mcu_memory {
    const char *name;
    uint32_t bytes;                   /* 0: no limit */
    uint32_t cycles_per_kb;           /* to move 1024 bytes */
    uint32_t line_bytes, line_cycles; /* 0: it answers at once */
    uint32_t origin;                  /* its address, or MUC_MCU_NO_ORIGIN */
    unsigned holds;                   /* bit u: a muc_mcu_use */
} muc_mcu_memory;

typedef struct muc_mcu_machine {
    const char *name;
    muc_mcu_core core;
    uint32_t cores, clock_mhz;
    uint32_t milliwatts;      /* at that clock; 0: not known */
    const char *power_source; /* of milliwatts, or NULL */
    const char *boot, *kit;   /* or NULL */
    muc_mcu_memory memories[MUC_MCU_MOST_MEMORIES];
    uint32_t memory_count;
    bool has_dma;
    uint32_t dma_setup_cycles, dma_cycles_per_kb;
    const char *flash[MUC_MCU_MOST_COMMANDS + 1]; /* NULL after the last */
} muc_mcu_machine;

const muc_mcu_core_info *muc_mcu_core_get(muc_mcu_core core);
bool muc_mcu_core_find(const char *name, muc_mcu_core *out);
/* How well a kernel's instruction set suits a machine's: 2 its own, 1 one that it has too, 0 plain
 * C, below 0 not at all. */
int muc_mcu_isa_suits(muc_mcu_isa machine, muc_mcu_isa kernel);

/* A built-in machine's name ("host" for NULL), else a file's path. The names are in arena. Fails
 * with MUC_USAGE naming the machines there are, MUC_MALFORMED naming file, line and column. */
muc_status muc_mcu_find_machine(muc_context *ctx, muc_arena *arena, const char *name,
                                muc_mcu_machine *out);
muc_status muc_mcu_read_machine(muc_context *ctx, muc_arena *arena, muc_bytes text,
                                muc_mcu_machine *out);
/* The text of such a description, in arena. */
muc_status muc_mcu_machine_text(muc_context *ctx, muc_arena *arena, const char *name,
                                muc_bytes *out);
/* The memory for a use; every machine has one for weights, the arena and state, and code lies with
 * weights if no other memory is for it. NULL: no tiles. */
const muc_mcu_memory *muc_mcu_memory_for(const muc_mcu_machine *machine, muc_mcu_use use);

#endif
