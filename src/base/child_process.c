/* child_process.c - finds other programs, and tells how they ended. */
#include "base/child_process.h"

#include <stdlib.h>
#include <string.h>

#include "base/file_system.h"

muc_status muc_child_judge(muc_context *ctx, const char *name, int code)
{
    if (code == 0)
        return MUC_OK;
    return muc_fail(ctx, MUC_IO, name, MUC_NO_OFFSET, "%s %d",
                    code < 0 ? "was ended by signal" : "failed with status", abs(code));
}

muc_status muc_find_program(muc_context *ctx, muc_arena *arena, const char *name, const char **out)
{
    const char *at = getenv("PATH");

    for (*out = NULL; at && *at && !*out; at += *at != '\0') {
        size_t length = strcspn(at, muc_path_separator);

        MUC_TRY(muc_arena_format(ctx, arena, out, "%.*s/%s", (int)length, at, name));
        if (!muc_may_run(*out))
            *out = NULL;
        at += length;
    }
    return MUC_OK;
}
