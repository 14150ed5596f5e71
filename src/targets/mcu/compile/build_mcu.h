/* build_mcu.h - makes a folder of C for a microcontroller of any graph. */
#ifndef MUC_BUILD_MCU_H
#define MUC_BUILD_MCU_H

#include "base/output_folder.h"
#include "targets/mcu/tiles/chains.h"
#include "targets/mcu/emit/emit_language.h"
#include "targets/mcu/machines/mcu_machine.h"
#include "targets/mcu/plan/patch_program.h"
#include "targets/mcu/program/mcu_program.h"
#include "targets/target.h"

/* A compilation with its stages, for reports and tests. */
typedef struct muc_mcu_build {
    muc_mcu_machine machine;
    muc_mcu_program program;
} muc_mcu_build;

/* How a graph is compiled. */
typedef struct muc_mcu_choices {
    muc_mcu_patches patches; /* whether the first stages run patch by patch (patch_program.h) */
    muc_mcu_fuse fuse;       /* whether steps in tiles become chains (chains.h) */
    const muc_mcu_lm *lm;    /* of a language model, for the code around it; borrowed; or NULL */
    const char *package;     /* a name of emit/packages.def; NULL: the first */
    bool weights_file;       /* constants are a binary file, however few they are */
    muc_target_need
        *need; /* filled as soon as memory is planned, whether it fits or not; or NULL */
} muc_mcu_choices;

/* A program's name, machine and package, before it has steps; all as below. On failure there may be
 * memory in its arena. */
muc_status muc_mcu_begin(muc_context *ctx, const char *name, const char *machine,
                         const char *package, muc_mcu_build *build);
/* The passes that a network's graph goes through before it is compiled for a machine, a built-in
 * name, a file's path, or NULL: the host. */
muc_status muc_mcu_prepare_for(muc_context *ctx, muc_graph *graph, const char *machine);
/* Compiles a graph, which the build borrows, for a machine, as above. name becomes the prefix of
 * all that is public in the C code. On failure there is nothing to free. */
muc_status muc_mcu_compile_as(muc_context *ctx, muc_graph *graph, const char *name,
                              const char *machine, const muc_mcu_choices *choices,
                              muc_mcu_build **out);
/* The same with chains where they are cheaper. */
muc_status muc_mcu_compile(muc_context *ctx, muc_graph *graph, const char *name,
                           const char *machine, muc_mcu_patches patches, muc_mcu_build **out);
void muc_mcu_build_free(muc_mcu_build *build); /* NULL is fine */

/* What a planned program needs of its machine; time and energy of networks with products of one
 * type on cores that core_cycles.def has for it, and of a language model's token, at its first and
 * its last position, on those of token_cycles.def. */
muc_target_need muc_mcu_need(const muc_mcu_program *program);

/* Between which times `macs` products of a type take on a core; 0 and 0 where core_cycles.def has
 * no row. clock_mhz above 0. */
void muc_mcu_guess_ms(muc_mcu_core core, muc_dtype type, double macs, double clock_mhz,
                      double *least, double *most);

typedef void muc_mcu_emitter(const muc_mcu_program *program, muc_text *text);
/* A file of the folder. */
muc_status muc_mcu_write_text(const muc_mcu_program *program, muc_mcu_emitter *emit,
                              const char *name, muc_folder *folder);
/* The same where the package has sources: "src/NAME_lm.c" of end "_lm.c". */
muc_status muc_mcu_write_code(muc_context *ctx, const muc_mcu_program *program,
                              muc_mcu_emitter *emit, const char *end, muc_folder *folder);
/* Writes NAME.c, NAME.h, main.c, README.md, the package's and the runtime's files into a folder,
 * which appears whole or not at all, after check, which may be NULL. The same build gives the same
 * bytes. */
muc_status muc_mcu_write_folder(muc_context *ctx, const muc_mcu_build *build, const char *path,
                                muc_folder_check *check);

#endif
