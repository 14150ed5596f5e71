/* blas.c - OpenBLAS, loaded by the first training.
 *
 * Not linked: it starts a thread a processor and picks its kernels when it is loaded, and only
 * then can it be told which. Kernels of one kind of processor sum in one order, those of another
 * in another; so every x86-64 that can gets the same. Verbs that do not train are spared both.
 */
#include <stdlib.h>

#include "base/system.h"
#include "train/ops.h"

#ifdef MUC_TRAIN_DOUBLE
#define GEMM_NAME "cblas_dgemm"
#else
#define GEMM_NAME "cblas_sgemm"
#endif

/* what it reads while it is loaded */
static const char CORE[] = "OPENBLAS_CORETYPE", THREADS[] = "OPENBLAS_NUM_THREADS";

muc_train_gemm_function *muc_train_blas_gemm;

static muc_lock lock = MUC_LOCK_OPEN;

static bool has_fused_products(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

/* What the user has set stays; what is set here, only while the library is loaded. */
static void *load(void)
{
    bool sets_core = !getenv(CORE) && has_fused_products(), sets_threads = !getenv(THREADS);
    void *library;

    if (sets_core)
        muc_set_variable(CORE, "Haswell");
    if (sets_threads)
        muc_set_variable(THREADS, "1");
    library = muc_library_open("libopenblas.so.0");
    if (!library)
        library = muc_library_open("libopenblas.so");
    if (sets_core)
        muc_set_variable(CORE, NULL);
    if (sets_threads)
        muc_set_variable(THREADS, NULL);
    return library;
}

static muc_status open_library(muc_context *ctx)
{
    void *library = load(), *gemm, *set_threads;
    void (*set_threads_call)(int count);

    if (!library)
        return muc_fail(ctx, MUC_UNSUPPORTED, "OpenBLAS", MUC_NO_OFFSET,
                        "which training needs, cannot be loaded: %s", muc_library_error());
    gemm = muc_library_find(library, GEMM_NAME);
    set_threads = muc_library_find(library, "openblas_set_num_threads");
    if (!gemm || !set_threads)
        return muc_fail(ctx, MUC_UNSUPPORTED, "OpenBLAS", MUC_NO_OFFSET, "it lacks functions: %s",
                        muc_library_error());
    memcpy(&set_threads_call, &set_threads, sizeof(set_threads)); /* as POSIX has it */
    set_threads_call(1); /* the user, or a program that had loaded it before, may want more */
    memcpy(&muc_train_blas_gemm, &gemm, sizeof(gemm));
    return MUC_OK;
}

muc_status muc_train_open_blas(muc_context *ctx)
{
    muc_status status = MUC_OK;

    muc_lock_take(&lock);
    if (!muc_train_blas_gemm)
        status = open_library(ctx);
    muc_lock_give(&lock);
    return status;
}
