/* compress_absent.c - stands in for compress_train.c in a build without OpenBLAS. */
#include "driver/compress/compress_stages.h"

muc_status muc_compress_train(muc_context *ctx, const muc_model *model, const muc_model *teacher,
                              const muc_graph *graph, const muc_compress_options *options,
                              const muc_lowbit_result *rounded, muc_compress_trained *out)
{
    (void)teacher;
    (void)graph;
    (void)options;
    (void)rounded;
    (void)out;
    return muc_fail(ctx, MUC_UNSUPPORTED, model->path, MUC_NO_OFFSET,
                    "this muc was built without OpenBLAS, which training needs");
}
