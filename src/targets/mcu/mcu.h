/* mcu.h - the back end for microcontrollers: any graph in, a folder of C out. */
#ifndef MUC_MCU_H
#define MUC_MCU_H

#include "targets/mcu/lm.h"
#include "targets/mcu/machine.h"
#include "targets/mcu/patch.h"
#include "targets/mcu/program.h"

/* A compilation with its stages, for reports and tests. */
typedef struct muc_mcu_build {
    muc_mcu_machine machine;
    muc_mcu_program program;
} muc_mcu_build;

/* Compiles a graph, which the build borrows, for a machine (a built-in name, a file's path, NULL:
 * the host). patches: the first stages may run patch by patch (patch.h). name becomes the prefix of
 * all that is public in the C code. On failure there is nothing to free. */
muc_status muc_mcu_compile(muc_context *ctx, muc_graph *graph, const char *name,
                           const char *machine, muc_mcu_patches patches, muc_mcu_build **out);
/* The same for a language model, with the code around it. lm is borrowed like the graph. */
muc_status muc_mcu_compile_lm(muc_context *ctx, muc_graph *graph, const char *name,
                              const char *machine, muc_mcu_patches patches, const muc_mcu_lm *lm,
                              muc_mcu_build **out);
void muc_mcu_build_free(muc_mcu_build *build); /* NULL is fine */

/* Writes NAME.c, NAME.h, main.c, CMakeLists.txt, README.md and the runtime's files into a folder,
 * which appears whole or not at all. The same build gives the same bytes. */
muc_status muc_mcu_write_folder(muc_context *ctx, const muc_mcu_build *build, const char *path);

#endif
