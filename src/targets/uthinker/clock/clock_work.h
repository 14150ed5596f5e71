/* clock_work.h - what one resolved instruction asks of its engine. */
#ifndef MUC_UTHINKER_CLOCK_WORK_H
#define MUC_UTHINKER_CLOCK_WORK_H

#include "targets/uthinker/machines/machine_costs.h"
#include "targets/uthinker/isa/uthinker_isa.h"
#include "targets/uthinker/lower/uthinker_layout.h"

typedef struct muc_clock_work {
    enum mur_engine engine;
    uint32_t op;           /* muc_uthinker_op */
    uint64_t array_cycles; /* of an MM: its passes */
    uint64_t macs;         /* rows x columns x K x terms */
    uint64_t elements;     /* of a vector instruction, of EMBED or AMAX */
    uint64_t bytes;        /* of a transfer */
    uint64_t burst_bytes;  /* that the DRAM moves for it */
    uint32_t region;       /* of a transfer, and */
    uint64_t offset;       /* where it begins there */
    uint64_t sram_bytes;
} muc_clock_work;

/* words: a resolved instruction that the verifier would accept. */
muc_clock_work muc_clock_work_of(const muc_uthinker_machine *machine, const uint32_t *words);

/* Rows of bytes of a buffer that an instruction reads or writes. */
typedef struct muc_clock_access {
    enum mur_buffer buffer;
    bool writes;                       /* else it reads */
    bool modifies;                     /* it writes, and what it writes depends on what was there */
    uint64_t begin, rows, pitch, size; /* bytes; rows of `size`, `pitch` apart */
} muc_clock_access;

enum { MUC_CLOCK_MOST_ACCESSES = 8 };

/* Returns their number. words: as of muc_clock_work_of. */
uint32_t muc_clock_accesses_of(const muc_uthinker_machine *machine, const uint32_t *words,
                               muc_clock_access out[MUC_CLOCK_MOST_ACCESSES]);

/* a * b / c, rounded up, or UINT64_MAX if a / c * b is above 2^63; c is 1..2^28, b at most 10^9. */
uint64_t muc_clock_scale(uint64_t a, uint64_t b, uint64_t c);

/* How long its engine is taken up, in picoseconds. */
uint64_t muc_clock_work_ps(const muc_uthinker_time *time, const muc_clock_work *work);

#endif
