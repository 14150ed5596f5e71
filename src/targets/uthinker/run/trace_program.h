/* trace_program.h - a call as a file of trace events, which Perfetto and chrome://tracing open. */
#ifndef MUC_TRACE_PROGRAM_H
#define MUC_TRACE_PROGRAM_H

#include "targets/uthinker/run/advise_program.h"

/* Runs the clock once more. The file appears whole or not at all; docs/REPORTS.md says what it
 * holds. */
muc_status muc_program_trace(muc_context *ctx, muc_arena *arena, const muc_advised_call *call,
                             const char *program, const char *path);

#endif
