/* answer_code.h - what a report on generated C answers first, and what would help. */
#ifndef MUC_MCU_ANSWER_CODE_H
#define MUC_MCU_ANSWER_CODE_H

#include "report/report_builder.h"
#include "targets/mcu/emit/code_folder.h"

/* Adds the tables "answers" and "what_to_change", of the folder's description and of what the
 * report has: "layers", "memory", and, of a board, instructions, modelled_cycles and modelled_ms.
 * cycles: [steps] modelled ones, or NULL; slow: [steps] of muc_code_judge_layer. */
muc_status muc_code_answer(muc_context *ctx, muc_arena *arena, const muc_code_folder *folder,
                           const uint64_t *cycles, const char *const *slow, muc_report *report);

/* Draws the layers of an int8 network below the core's roofs; cycles: [steps] modelled ones. */
muc_status muc_code_draw_roofline(muc_context *ctx, muc_arena *arena, const muc_code_folder *folder,
                                  const uint64_t *cycles, muc_report *report);

#endif
