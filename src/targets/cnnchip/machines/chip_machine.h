/* chip_machine.h - which CNN chip: elements, processing elements, memories. */
#ifndef MUC_CNNCHIP_MACHINE_H
#define MUC_CNNCHIP_MACHINE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/text.h"

enum { MUC_CNNCHIP_MOST_PES = 65535 };

typedef struct muc_cnnchip_machine {
    const char *name;
    uint32_t element;   /* a number of chip_isa.def */
    uint32_t pes;       /* 4..MUC_CNNCHIP_MOST_PES; 0: unlimited */
    uint32_t bus_bytes; /* a cycle, 0: unlimited */
    uint32_t clock_mhz;
    uint64_t frame_bytes, filter_bytes, program_bytes; /* 0: as much as addresses reach, 4 GiB */
} muc_cnnchip_machine;

/* A built-in machine's name (NULL: the default), else a file's path. The name is in arena. Fails
 * with MUC_USAGE naming the machines there are, MUC_MALFORMED naming file, line and column. */
muc_status muc_cnnchip_find_machine(muc_context *ctx, muc_arena *arena, const char *name,
                                    muc_cnnchip_machine *out);
muc_status muc_cnnchip_read_machine(muc_context *ctx, muc_arena *arena, muc_bytes text,
                                    muc_cnnchip_machine *out);

#endif
