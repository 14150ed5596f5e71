/* muc/status.h - what can go wrong, and where the first failure is told.
 *
 * Every fallible function returns a muc_status. The first failure in a context, where knowledge is
 * richest, writes the message; callers only unwind. The enum value is the exit code of `muc`.
 */
#ifndef MUC_STATUS_H
#define MUC_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Around declarations, which are C's in C++ too. */
#ifdef __cplusplus
#define MUC_API_BEGIN extern "C" {
#define MUC_API_END }
#else
#define MUC_API_BEGIN
#define MUC_API_END
#endif

MUC_API_BEGIN

/* name, value, meaning */
#define MUC_STATUS_TABLE(X) \
    X(OK, 0, "success") \
    X(MALFORMED, 1, "the input violates its file format") \
    X(UNSUPPORTED, 2, "valid input that muc does not support") \
    X(NOFIT, 3, "the plan exceeds the memory of the machine") \
    X(NOMEM, 4, "out of memory on the host") \
    X(IO, 5, "a read or write failed") \
    X(BUG, 6, "the verifier refuses the output of muc: a bug") \
    X(USAGE, 7, "the command line or the call is wrong") \
    X(MISMATCH, 8, "two results that must agree differ")

typedef enum muc_status {
#define MUC_STATUS_ENUM(name, value, meaning) MUC_##name = value,
    MUC_STATUS_TABLE(MUC_STATUS_ENUM)
#undef MUC_STATUS_ENUM
} muc_status;

/* Owns the error sink, the thread count and the progress hook of one use of the library.
 * Not for use by two threads at once, except through muc_parallel_for. */
typedef struct muc_context muc_context;

/* Called with a step's name and done/total units; total 0 means that how far it is
 * is not known: it goes on. */
typedef void muc_progress_fn(void *arg, const char *step, uint64_t done, uint64_t total);

/* threads: 0 = one per processor of the affinity mask. NULL if memory is out. */
muc_context *muc_context_new(unsigned threads);
void muc_context_free(muc_context *ctx);
void muc_context_set_progress(muc_context *ctx, muc_progress_fn *fn, void *arg);
unsigned muc_context_threads(const muc_context *ctx);

/* What a call of this context has read no later call of it overwrites, under whatever name. A file
 * that the caller itself has read is protected in the same way. */
muc_status muc_input_protect(muc_context *ctx, const char *path);
/* Folders that calls write replace those of earlier calls, but not if a file in them was edited
 * since: unless forced. Files that no call wrote are never removed. */
void muc_context_set_force(muc_context *ctx, bool force);

/* Removes the temporary files and folders of all calls that have not returned: for a program that a
 * signal ends. Not for signal handlers; nothing of this library may be called afterwards. */
void muc_remove_temporaries(void);

/* The first failure's sentence, without a line end; "" if none. Owned by the context. */
const char *muc_error_message(const muc_context *ctx);
/* Forgets the failure, so that the context can be used again. */
void muc_error_clear(muc_context *ctx);

const char *muc_status_name(muc_status status);    /* "MALFORMED" */
const char *muc_status_meaning(muc_status status); /* "the input violates its file format" */

MUC_API_END

#endif
