/* builtin.c - where the built-in model lies. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/locale.h"
#include "muc/model.h"

#define BUILTIN "models/rescue"

muc_status muc_builtin_path(muc_context *ctx, const char **out)
{
    MUC_IN_C_LOCALE;

    static const char in_source[] = MUC_SOURCE_ROOT "/" BUILTIN;
    static char beside_command[4096];
    char command[3072];
    ssize_t length = readlink("/proc/self/exe", command, sizeof(command) - 1);

    if (length > 0) {
        command[length] = '\0';
        *strrchr(command, '/') = '\0';
        snprintf(beside_command, sizeof(beside_command), "%s/../share/muc/" BUILTIN, command);
        if (muc_path_is_dir(beside_command)) {
            *out = beside_command;
            return MUC_OK;
        }
    }
    if (muc_path_is_dir(in_source)) {
        *out = in_source;
        return MUC_OK;
    }
    return muc_fail(ctx, MUC_IO, "built-in model", MUC_NO_OFFSET,
                    "neither %s nor %s is there; name a model instead", beside_command, in_source);
}
