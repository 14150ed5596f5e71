/* builtin.c - finds the built-in model. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>

#include "base/file.h"
#include "base/locale.h"
#include "run/installed.h"
#include "muc/model.h"

static char builtin[PATH_MAX + 16];

static void find_builtin(void)
{
    snprintf(builtin, sizeof(builtin), "%s/models/rescue", muc_data_folder());
}

muc_status muc_builtin_path(muc_context *ctx, const char **out)
{
    MUC_IN_C_LOCALE;

    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_builtin);
    if (!muc_path_is_dir(builtin))
        return muc_fail(ctx, MUC_IO, builtin, MUC_NO_OFFSET,
                        "the built-in model is not there; name a model instead");
    *out = builtin;
    return MUC_OK;
}
