/* draw_program.h - pictures of a call: engines over time, the roofline, what lies in the buffers.
 */
#ifndef MUC_DRAW_PROGRAM_H
#define MUC_DRAW_PROGRAM_H

#include "targets/uthinker/run/advise_program.h"

/* Runs the clock once more. Adds the table "buffers", too. */
muc_status muc_program_draw(muc_context *ctx, muc_arena *arena, const muc_advised_call *call,
                            muc_report *report);

#endif
