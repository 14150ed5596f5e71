/* chip_sim.h - the functional simulator of the CNN chip.
 *
 * Written from SPEC.md sections 1 to 8 and chip_isa.def alone, never from the encoder. Freestanding
 * C99, so that the same source runs on the host and in a device image: memory is the caller's, no
 * allocation, no recursion. Works on machines of either byte order.
 */
#ifndef CNNCHIP_SIM_H
#define CNNCHIP_SIM_H

#include <stddef.h>
#include <stdint.h>

typedef enum muc_cnnchip_element {
#define MUC_CNNCHIP_ELEMENT(name, number, bytes, meaning) MUC_CNNCHIP_##name = number,
#include "targets/cnnchip/isa/chip_isa.def"
} muc_cnnchip_element;

/* Why the chip stopped, as register CODE has it. */
typedef enum muc_cnnchip_fault {
    MUC_CNNCHIP_NO_FAULT,
#define MUC_CNNCHIP_FAULT(name, number, meaning) MUC_CNNCHIP_FAULT_##name = number,
#include "targets/cnnchip/isa/chip_isa.def"
} muc_cnnchip_fault;

/* Register STATUS. */
typedef enum muc_cnnchip_state {
    MUC_CNNCHIP_IDLE,
    MUC_CNNCHIP_BUSY, /* only while a trace is told */
    MUC_CNNCHIP_ENDED,
    MUC_CNNCHIP_FAULTED
} muc_cnnchip_state;

/* SPEC.md section 7: of one instruction, or summed over a run. */
typedef struct muc_cnnchip_counts {
    uint64_t instructions;
    uint64_t cycles, compute_cycles, memory_cycles;
    uint64_t operations; /* useful ones of PEs */
    uint64_t frame_read_bytes, frame_written_bytes, filter_read_bytes, filter_written_bytes;
    uint64_t program_bytes; /* fetched */
} muc_cnnchip_counts;

struct muc_cnnchip_sim;

/* Called after each instruction that worked, END included: pc is its byte offset in the program,
 * words its words in host order, counts its own. The memories of sim may be read, not written. */
typedef void muc_cnnchip_trace(void *arg, const struct muc_cnnchip_sim *sim, uint32_t pc,
                               const uint32_t *words, const muc_cnnchip_counts *counts);

typedef struct muc_cnnchip_sim {
    /* The caller's, to be set before muc_cnnchip_sim_start; memories are borrowed. */
    uint8_t *frame;
    uint32_t frame_bytes;
    uint8_t *filter; /* the filter image, then scratch */
    uint32_t filter_bytes, filter_image_bytes;
    const uint8_t *program; /* the instructions, without the file's header */
    uint32_t program_bytes;
    muc_cnnchip_element element;
    uint32_t pes;             /* 0: unlimited */
    uint32_t bus_bytes;       /* a cycle; 0: unlimited */
    muc_cnnchip_trace *trace; /* NULL: none */
    void *trace_arg;
    /* The chip's. */
    muc_cnnchip_state status;
    uint32_t code; /* END's code or the fault's number */
    uint32_t pc;
    muc_cnnchip_counts counts;
} muc_cnnchip_sim;

/* Runs from the first instruction, counts cleared, until END or a fault; returns status, which is
 * then MUC_CNNCHIP_ENDED or MUC_CNNCHIP_FAULTED. */
muc_cnnchip_state muc_cnnchip_sim_start(muc_cnnchip_sim *sim);
/* The same from pc on, counts kept: after a host step. Returns MUC_CNNCHIP_FAULTED at once after a
 * fault. */
muc_cnnchip_state muc_cnnchip_sim_resume(muc_cnnchip_sim *sim);

#endif
