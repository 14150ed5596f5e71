/* blas.c - OpenBLAS, loaded by the first training.
 *
 * Not linked: it starts a thread a processor and picks its kernels when it is loaded, and only
 * then can it be told which. Kernels of one kind of processor sum in one order, those of another
 * in another; so every x86-64 that can gets the same. Verbs that do not train are spared both.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "train/ops.h"

#ifdef MUC_TRAIN_DOUBLE
#define GEMM_NAME "cblas_dgemm"
#else
#define GEMM_NAME "cblas_sgemm"
#endif

/* what it reads while it is loaded */
static const char CORE[] = "OPENBLAS_CORETYPE", THREADS[] = "OPENBLAS_NUM_THREADS";

muc_train_gemm_function *muc_train_blas_gemm;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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
        setenv(CORE, "Haswell", 1);
    if (sets_threads)
        setenv(THREADS, "1", 1);
    library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libopenblas.so", RTLD_NOW | RTLD_LOCAL);
    if (sets_core)
        unsetenv(CORE);
    if (sets_threads)
        unsetenv(THREADS);
    return library;
}

static muc_status open_library(muc_context *ctx)
{
    void *library = load(), *gemm, *set_threads;
    void (*set_threads_call)(int count);

    if (!library)
        return muc_fail(ctx, MUC_UNSUPPORTED, "OpenBLAS", MUC_NO_OFFSET,
                        "which training needs, cannot be loaded: %s", dlerror());
    gemm = dlsym(library, GEMM_NAME);
    set_threads = dlsym(library, "openblas_set_num_threads");
    if (!gemm || !set_threads)
        return muc_fail(ctx, MUC_UNSUPPORTED, "OpenBLAS", MUC_NO_OFFSET, "it lacks functions: %s",
                        dlerror());
    memcpy(&set_threads_call, &set_threads, sizeof(set_threads)); /* as POSIX has it */
    set_threads_call(1); /* the user, or a program that had loaded it before, may want more */
    memcpy(&muc_train_blas_gemm, &gemm, sizeof(gemm));
    return MUC_OK;
}

muc_status muc_train_open_blas(muc_context *ctx)
{
    muc_status status = MUC_OK;

    pthread_mutex_lock(&lock);
    if (!muc_train_blas_gemm)
        status = open_library(ctx);
    pthread_mutex_unlock(&lock);
    return status;
}
