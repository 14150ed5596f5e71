/* weights_file.h - constants too large for text, or to be replaced apart from the code: one binary
 * file, an assembler's line that takes it in, and a function that checks it. */
#ifndef MUC_MCU_WEIGHTS_H
#define MUC_MCU_WEIGHTS_H

#include "base/output_folder.h"
#include "base/text.h"
#include "targets/mcu/program/mcu_program.h"

/* Beyond this many bytes a program's constants are not arrays of C, whatever its weights_file. */
enum { MUC_MCU_MOST_TEXT_BYTES = 4 << 20 };

/* Whether they are; to be asked after lowering. */
bool muc_mcu_weights_are_binary(const muc_mcu_program *program);
/* The file's bytes: constants and what checks them. */
uint64_t muc_mcu_weights_bytes(const muc_mcu_program *program);
/* NAME_weights.S and NAME_weights.c among the program's sources, if they are. */
muc_status muc_mcu_weights_source(muc_context *ctx, muc_mcu_program *program);
/* What stands in NAME.c for the arrays: a name for each place in NAME_weights. */
void muc_mcu_weights_names(const muc_mcu_program *program, muc_text *text);
/* NAME_weights.bin, NAME_weights.S and NAME_weights.c */
muc_status muc_mcu_weights_write(muc_context *ctx, const muc_mcu_program *program,
                                 muc_folder *folder);

#endif
