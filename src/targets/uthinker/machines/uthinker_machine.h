/* uthinker_machine.h - descriptions of µThinker machines: small .ini files, some of them built in.
 */
#ifndef MUC_UTHINKER_MACHINE_H
#define MUC_UTHINKER_MACHINE_H

#include "base/bytes.h"
#include "targets/uthinker/lower/uthinker_layout.h"

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

/* What a program for the machine has as its section MACH. */
mur_mach muc_uthinker_mach(const muc_uthinker_machine *machine);

#endif
