/* builtin.c - finds the built-in model. */
#include "base/file.h"
#include "base/locale.h"
#include "muc/model.h"
#include "run/installed.h"

muc_status muc_builtin_path(muc_context *ctx, const char **out)
{
    MUC_IN_C_LOCALE;
    const char *folder = muc_builtin_folder();

    if (!muc_path_is_dir(folder))
        return muc_fail(ctx, MUC_IO, folder, MUC_NO_OFFSET,
                        "the built-in model is not there; name a model instead");
    *out = folder;
    return MUC_OK;
}
