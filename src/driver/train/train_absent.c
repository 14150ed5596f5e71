/* train_absent.c - stands in for muc_train in a build without OpenBLAS. */
#include "base/base.h"
#include "base/locale.h"
#include "muc/train.h"

muc_status muc_train(muc_context *ctx, const char *path, const muc_train_options *options,
                     const char *out_path, muc_report **out)
{
    MUC_IN_C_LOCALE;

    (void)options;
    (void)out_path;
    (void)out;
    return muc_fail(ctx, MUC_UNSUPPORTED, path, MUC_NO_OFFSET,
                    "this muc was built without OpenBLAS, which training needs");
}
