/* emit_template.h - files of a folder that are written from templates, and the kinds of packages.
 */
#ifndef MUC_MCU_TEMPLATE_H
#define MUC_MCU_TEMPLATE_H

#include "base/output_folder.h"
#include "base/text.h"
#include "targets/mcu/program/mcu_program.h"

/* What stands in a template as @name@; a NULL ends a list. */
typedef struct muc_mcu_variable {
    const char *name;
    void (*print)(const muc_mcu_program *program, muc_text *text);
} muc_mcu_variable;

/* The template at a path below emit, with the variables of every program and these. A line with
 * @source@ or @kernel@ is repeated for each source of the program's own, or of the runtime, and
 * left out where there is none. */
void muc_mcu_print_template(const muc_mcu_program *program, const char *path,
                            const muc_mcu_variable *more, muc_text *text);

/* The kind of this name, NULL: the first. MUC_USAGE if there is none. */
muc_status muc_mcu_find_package(muc_context *ctx, const char *name, const muc_mcu_package **out);
/* Writes the package's own files. */
muc_status muc_mcu_write_package(muc_context *ctx, const muc_mcu_program *program,
                                 muc_folder *folder);

#endif
