/* child_process.h - starts other programs and waits for them. */
#ifndef MUC_CHILD_PROCESS_H
#define MUC_CHILD_PROCESS_H

#include "base/arena.h"

/* Runs words[0], which is looked for on the path, until it ends. words ends with NULL; stdin,
 * stdout and stderr are files, or NULL: this program's. step names the work for the progress hook;
 * NULL: not told, as the child itself writes to the terminal. *code is the status with which it
 * ended, or -N: signal N ended it. A signal that ends this program ends the child. MUC_IO if it
 * cannot be started, MUC_UNSUPPORTED on Windows. */
muc_status muc_child_await(muc_context *ctx, const char *const *words, const char *in,
                           const char *out, const char *err, const char *step, int *code);
/* MUC_IO, about name, unless the child ended with status 0. */
muc_status muc_child_judge(muc_context *ctx, const char *name, int code);
/* Where the path has this program, in arena; NULL: nowhere. */
muc_status muc_find_program(muc_context *ctx, muc_arena *arena, const char *name, const char **out);

#endif
