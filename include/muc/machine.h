/* muc/machine.h - a machine of one's own (an RTL model, a board on a cable, another simulator) runs
 * a program beside the simulator, and every stage is compared.
 *
 * The library interprets the program, as a device's runtime does, and gives the machine resolved
 * instructions of two engines (src/targets/uthinker/SPEC.md section 4). The machine's memory is the
 * library's. docs/INTEGRATION.md has an example.
 */
#ifndef MUC_MACHINE_H
#define MUC_MACHINE_H

#include <stdint.h>

#include "muc/model.h"

MUC_API_BEGIN

typedef enum muc_machine_engine { MUC_MACHINE_DMA, MUC_MACHINE_ACCELERATOR } muc_machine_engine;

typedef enum muc_machine_answer {
    MUC_MACHINE_TAKEN, /* the instruction is queued, or done */
    MUC_MACHINE_BUSY,  /* nothing was taken: the queue is full; it is offered again */
    MUC_MACHINE_FAULT  /* the machine has stopped */
} muc_machine_answer;

/* What the machine works on; valid until muc_verify_machine returns. */
typedef struct muc_machine_memory {
    uint32_t isa;               /* version and array: word `isa` of section MACH */
    uint32_t buffer_bytes[5];   /* of I0, I1, W0, W1 and GB, which the machine has itself */
    const uint8_t *wgts, *parm; /* regions that it only reads, */
    uint8_t *kv, *io;           /* and those that it writes too */
    uint32_t wgts_bytes, parm_bytes, kv_bytes, io_bytes; /* 16-byte-aligned */
} muc_machine_memory;

/* words: one instruction, valid during the call, with the fields that the SPEC names; an engine
 * executes its instructions in order. */
typedef struct muc_machine {
    void *arg; /* the first argument of each function */
    /* Called once, before any instruction; false: the machine cannot run the program. */
    bool (*start)(void *arg, const muc_machine_memory *memory);
    muc_machine_answer (*dma)(void *arg, const uint32_t *words);
    muc_machine_answer (*accelerator)(void *arg, const uint32_t *words);
    /* How many instructions the engine has completed since start, modulo 2^32. Called again and
     * again while the program waits: a simulated machine may advance its clock here. */
    uint32_t (*completed)(void *arg, muc_machine_engine engine);
    /* Calls of `completed` in a row with the same answer after which the machine is taken to have
     * stopped; 0: 100 million. */
    uint64_t patience;
} muc_machine;

/* Runs a program's golden tokens (prompt NULL), or a prompt's, on the machine and on the simulator,
 * first in calls as large as the program takes, then token by token, and compares the bits of each
 * stage. Keys: exact, positions, first_divergence, and of the first difference position, layer,
 * stage, column; the table "stages" (stage, values, wrong, error: the largest difference).
 * MUC_MISMATCH if a bit differs or the machine stops; the report is made all the same. */
muc_status muc_verify_machine(muc_context *ctx, const muc_model *program,
                              const muc_machine *machine, const char *prompt, muc_report **out);

MUC_API_END

#endif
