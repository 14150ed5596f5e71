/* machine.h - descriptions of µThinker machines: small .ini files, one of them built in. */
#ifndef MUC_UTHINKER_MACHINE_H
#define MUC_UTHINKER_MACHINE_H

#include "base/bytes.h"
#include "targets/uthinker/layout.h"

/* The text of machines/uthinker.ini; its name is "uthinker.ini". */
muc_bytes muc_uthinker_default_machine(void);

/* Reads a description: "[machine]", then "key = value" lines; ';' and '#' begin comments. Every key
 * must be there once. The name is in arena. Fails with MUC_MALFORMED naming file, line and column,
 * with MUC_UNSUPPORTED for another isa. */
muc_status muc_uthinker_read_machine(muc_context *ctx, muc_arena *arena, muc_bytes text,
                                     muc_uthinker_machine *out);

#endif
