/* weights_file.h - constants too large for text: one binary file, and an assembler's line that
 * takes it in. */
#ifndef MUC_MCU_WEIGHTS_H
#define MUC_MCU_WEIGHTS_H

#include "base/output_folder.h"
#include "base/text.h"
#include "targets/mcu/program/mcu_program.h"

/* Beyond this many bytes a program's constants are no arrays of C. */
enum { MUC_MCU_MOST_TEXT_BYTES = 4 << 20 };

/* Whether they are; to be asked after lowering. */
bool muc_mcu_weights_are_binary(const muc_mcu_program *program);
/* NAME_weights.S among the program's sources, if they are. */
muc_status muc_mcu_weights_source(muc_context *ctx, muc_mcu_program *program);
/* What stands in NAME.c for the arrays: a name for each place in NAME_weights. */
void muc_mcu_weights_names(const muc_mcu_program *program, muc_text *text);
/* NAME_weights.bin and NAME_weights.S */
muc_status muc_mcu_weights_write(muc_context *ctx, const muc_mcu_program *program,
                                 muc_folder *folder);

#endif
