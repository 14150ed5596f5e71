/* uthinker_machine.h - descriptions of µThinker machines: small .ini files, some of them built in.
 */
#ifndef MUC_UTHINKER_MACHINE_H
#define MUC_UTHINKER_MACHINE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "mur.h"
#include "targets/uthinker/machines/machine_costs.h"

enum { MUC_UTHINKER_BUFFER_MULTIPLE = 64 }; /* of buffers' bytes */

typedef struct muc_uthinker_machine {
    const char *name;
    uint32_t buffer_bytes[MUR_BUFFERS]; /* each a multiple of 64; a bank is half of one */
    uint32_t tile_k, tile_n;            /* rows, along the reduction, and columns of a tile */
    uint32_t tokens;                    /* of a step of attention: the T' tile of the paper */
    uint32_t rows;                      /* most tokens in one call, at most `tokens` */
    uint32_t flash_bytes, dram_bytes;   /* for the program, for KV and IO; 0: any */
    muc_uthinker_costs costs;           /* of a program only its parts depend on them */
} muc_uthinker_machine;

/* The text of machines/uthinker.ini; its name is "uthinker.ini". */
muc_bytes muc_uthinker_default_machine(void);

/* Reads a description: sections [machine] and, where it says what instructions take, [time] and
 * [energy], of "key = value" lines; ';' and '#' begin comments. Every key of a section that is
 * there must be there once. The name is in arena. Fails with MUC_MALFORMED naming file, line and
 * column, with MUC_UNSUPPORTED for another isa. */
muc_status muc_uthinker_read_machine(muc_context *ctx, muc_arena *arena, muc_bytes text,
                                     muc_uthinker_machine *out);

/* The machine built in under this name, or the description in the file at this path; NULL: the
 * default. */
muc_status muc_uthinker_find_machine(muc_context *ctx, muc_arena *arena, const char *name,
                                     muc_uthinker_machine *out);

/* "ibuf0", ...: a buffer's key in machine files. */
const char *muc_uthinker_machine_key(enum mur_buffer buffer);

/* What a program for the machine has as its section MACH. */
mur_mach muc_uthinker_mach(const muc_uthinker_machine *machine);

#endif
