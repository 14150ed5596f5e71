/* base.h - the error sink and the few helpers that every room uses. */
#ifndef MUC_BASE_H
#define MUC_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "muc/status.h"

#if defined(__MINGW32__) /* whose printf is C99's, though "printf" is Windows' to the compiler */
#define MUC_PRINTF(fmt_index, first) __attribute__((format(gnu_printf, fmt_index, first)))
#elif defined(__GNUC__)
#define MUC_PRINTF(fmt_index, first) __attribute__((format(printf, fmt_index, first)))
#else
#define MUC_PRINTF(fmt_index, first)
#endif

#define MUC_TRY(expr) \
    do { \
        muc_status try_ = (expr); \
        if (try_ != MUC_OK) \
            return try_; \
    } while (0)

#define MUC_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* offset to give to muc_fail where a position has no meaning */
#define MUC_NO_OFFSET UINT64_MAX

/* Records the context's first failure as "SOURCE: offset N: MESSAGE" and returns status.
 * source is a file's path or a room's name; later calls only return status. Thread-safe. */
muc_status muc_fail(muc_context *ctx, muc_status status, const char *source, uint64_t offset,
                    const char *format, ...) MUC_PRINTF(5, 6);
/* What a failure is about: a part of a file or graph, which messages name before they say what is
 * wrong. */
typedef struct muc_subject {
    muc_context *ctx;
    const char *source;
    uint64_t offset;
    char part[512]; /* cut off where it is longer */
} muc_subject;
muc_subject muc_subject_of(muc_context *ctx, const char *source, uint64_t offset,
                           const char *format, ...) MUC_PRINTF(4, 5);
/* muc_fail with "PART: MESSAGE". */
muc_status muc_fail_on(muc_subject subject, muc_status status, const char *format, ...)
    MUC_PRINTF(3, 4);
/* Adds "; HINT" to the context's failure, if there is one. */
void muc_hint(muc_context *ctx, const char *format, ...) MUC_PRINTF(2, 3);
/* The usual sentence for a failed host allocation. */
muc_status muc_fail_nomem(muc_context *ctx, const char *source, size_t bytes);

/* Files that the context has read are its inputs, unless they are its own, written by it: no input
 * is overwritten. path is copied. */
typedef struct muc_file_info muc_file_info;
muc_status muc_file_note(muc_context *ctx, const char *path, const muc_file_info *info, bool own);
/* The path of the input that a file is, or NULL. */
const char *muc_input_find(muc_context *ctx, const muc_file_info *info);
/* What muc_context_set_force was told. */
bool muc_context_force(const muc_context *ctx);

void muc_progress(muc_context *ctx, const char *step, uint64_t done, uint64_t total);
bool muc_tells_progress(const muc_context *ctx); /* whether somebody asked for it */

/* malloc family that reports; bytes 0 gives a non-NULL pointer. count*size is checked.
 * muc_alloc_fail_after(k): the k-th allocation from now on fails (tests); negative: never. */
muc_status muc_new_array(muc_context *ctx, const char *source, size_t count, size_t size,
                         void **out);
void muc_alloc_fail_after(long k);
void *muc_calloc(size_t count, size_t size);
/* Zeroed bytes at a multiple of 64, a line of the caches and the widest vector; for
 * muc_aligned_free. */
muc_status muc_new_aligned(muc_context *ctx, const char *source, size_t bytes, void **out);

/* Checked arithmetic: false on overflow, *out untouched. */
bool muc_add_u64(uint64_t a, uint64_t b, uint64_t *out);
bool muc_mul_u64(uint64_t a, uint64_t b, uint64_t *out);
/* Rounds up to a multiple of a power of two. */
bool muc_align_u64(uint64_t a, uint64_t alignment, uint64_t *out);

/* FNV-1a of 64 bits; `from` is MUC_HASH_BEGIN, or the hash of what comes before. */
#define MUC_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
uint64_t muc_hash(uint64_t from, const void *data, size_t size);
/* Of a text without its end, for tables of a power of two. */
size_t muc_hash_text(const char *text);

#define MUC_NEW_ARRAY(ctx, source, count, out) \
    muc_new_array((ctx), (source), (count), sizeof(**(out)), (void **)(out))

#endif
