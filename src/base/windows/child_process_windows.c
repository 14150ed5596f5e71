/* child_process_windows.c - no other program is started on Windows yet: compilers and emulators are
 * for Linux. */
#include "base/child_process.h"
#include "base/temporary.h"

muc_status muc_child_await(muc_context *ctx, const char *const *words, const char *in,
                           const char *out, const char *err, const char *step, int *code)
{
    (void)in;
    (void)out;
    (void)err;
    (void)step;
    *code = -1;
    return muc_fail(ctx, MUC_UNSUPPORTED, words[0], MUC_NO_OFFSET,
                    "muc starts no other program on Windows: build and run the folder by your own "
                    "tools, or use muc in WSL");
}

void muc_child_end(muc_child child)
{
    (void)child;
}
