/* runtime_files.h - the texts of runtime/ that generated programs take along, built in. */
#ifndef MUC_MCU_RUNTIME_H
#define MUC_MCU_RUNTIME_H

#include "base/output_folder.h"
#include "targets/mcu/program/mcu_program.h"

/* Adds the source that defines a function of the runtime to the program's. MUC_BUG if none does. */
muc_status muc_mcu_need_function(muc_context *ctx, muc_mcu_program *program, const char *function);
/* Writes the program's sources, and every header that they and NAME.c include, below
 * folder: sources as they are named, in the folders that the package has for sources and
 * headers. */
muc_status muc_mcu_write_runtime(const muc_mcu_program *program, muc_folder *folder);

/* Headers of functions that are written out where a step's own code calls them; a NULL ends them.
 */
extern const char *const muc_mcu_inline_headers[];
bool muc_mcu_calls_header(const muc_mcu_program *program, const char *header);

#endif
