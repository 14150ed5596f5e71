/* base.c - the context, the error sink, checked arithmetic, and allocation that tests can make
 * fail. */
#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_system.h"
#include "base/system.h"
#include "base/visible_name.h"

/* a file that was read, or written */
typedef struct known_file {
    uint64_t device, inode;
    bool own; /* written by this context: no input, whoever reads it */
    char *path;
} known_file;

struct muc_context {
    pthread_mutex_t lock;
    unsigned threads;
    muc_progress_fn *progress;
    void *progress_arg;
    bool force;
    known_file *files;
    size_t file_count, file_capacity;
    bool failed;
    char message[1024];
};

static atomic_long allocations_left = -1;

void muc_alloc_fail_after(long k)
{
    atomic_store(&allocations_left, k);
}

static bool may_allocate(void)
{
    long left = atomic_load(&allocations_left);

    if (left > 0)
        atomic_fetch_sub(&allocations_left, 1);
    return left != 0;
}

void *muc_calloc(size_t count, size_t size)
{
    if (!may_allocate())
        return NULL;
    if (count == 0 || size == 0)
        count = size = 1;
    return calloc(count, size);
}

muc_context *muc_context_new(unsigned threads)
{
    muc_context *ctx = muc_calloc(1, sizeof(*ctx));

    if (!ctx)
        return NULL;
    pthread_mutex_init(&ctx->lock, NULL);
    ctx->threads = threads ? threads : muc_processors();
    return ctx;
}

void muc_context_free(muc_context *ctx)
{
    if (!ctx)
        return;
    for (size_t i = 0; i < ctx->file_count; i++)
        free(ctx->files[i].path);
    free(ctx->files);
    pthread_mutex_destroy(&ctx->lock);
    free(ctx);
}

void muc_context_set_progress(muc_context *ctx, muc_progress_fn *fn, void *arg)
{
    ctx->progress = fn;
    ctx->progress_arg = arg;
}

unsigned muc_context_threads(const muc_context *ctx)
{
    return ctx->threads;
}

/* ---- files ---- */

void muc_context_set_force(muc_context *ctx, bool force)
{
    ctx->force = force;
}

bool muc_context_force(const muc_context *ctx)
{
    return ctx->force;
}

static known_file *find_file(const muc_context *ctx, uint64_t device, uint64_t inode)
{
    for (size_t i = 0; i < ctx->file_count; i++)
        if (ctx->files[i].inode == inode && ctx->files[i].device == device)
            return &ctx->files[i];
    return NULL;
}

static bool reserve_file(muc_context *ctx)
{
    size_t capacity = ctx->file_capacity ? 2 * ctx->file_capacity : 16;
    known_file *grown;

    if (ctx->file_count < ctx->file_capacity)
        return true;
    grown = muc_calloc(capacity, sizeof(*grown));
    if (!grown)
        return false;
    if (ctx->file_count)
        memcpy(grown, ctx->files, ctx->file_count * sizeof(*grown));
    free(ctx->files);
    ctx->files = grown;
    ctx->file_capacity = capacity;
    return true;
}

static bool add_file(muc_context *ctx, const char *path, const known_file *file)
{
    known_file *known = find_file(ctx, file->device, file->inode);
    size_t size = strlen(path) + 1;
    char *name;

    if (known) {
        known->own |= file->own;
        return true;
    }
    name = reserve_file(ctx) ? muc_calloc(size, 1) : NULL;
    if (!name)
        return false;
    memcpy(name, path, size);
    ctx->files[ctx->file_count] = *file;
    ctx->files[ctx->file_count++].path = name;
    return true;
}

muc_status muc_file_note(muc_context *ctx, const char *path, const muc_file_info *info, bool own)
{
    const known_file file = { info->device, info->inode, own, NULL };
    bool added;

    pthread_mutex_lock(&ctx->lock);
    added = add_file(ctx, path, &file);
    pthread_mutex_unlock(&ctx->lock);
    return added ? MUC_OK : muc_fail_nomem(ctx, path, sizeof(file));
}

/* a file that was removed since may have left its number to another */
static bool is_there(const known_file *file)
{
    muc_file_info info;

    return muc_info_of_path(file->path, &info) && info.inode == file->inode &&
           info.device == file->device;
}

const char *muc_input_find(muc_context *ctx, const muc_file_info *info)
{
    const known_file *file;
    const char *path;

    pthread_mutex_lock(&ctx->lock);
    file = find_file(ctx, info->device, info->inode);
    path = file && !file->own && is_there(file) ? file->path : NULL;
    pthread_mutex_unlock(&ctx->lock);
    return path;
}

/* ---- the error sink ---- */

const char *muc_error_message(const muc_context *ctx)
{
    return ctx->message;
}

void muc_error_clear(muc_context *ctx)
{
    ctx->failed = false;
    ctx->message[0] = '\0';
}

/* adds to the message, in the form that muc/visible.h describes: a name may hold what a terminal
 * would obey */
static void add_visible(muc_context *ctx, const char *format, va_list args)
{
    size_t used = strlen(ctx->message);
    char plain[sizeof(ctx->message)];

    vsnprintf(plain, sizeof(plain), format, args);
    muc_visible(plain, ctx->message + used, sizeof(ctx->message) - used);
}

static void add(muc_context *ctx, const char *format, ...) MUC_PRINTF(2, 3);
static void add(muc_context *ctx, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_visible(ctx, format, args);
    va_end(args);
}

muc_status muc_fail(muc_context *ctx, muc_status status, const char *source, uint64_t offset,
                    const char *format, ...)
{
    va_list args;

    pthread_mutex_lock(&ctx->lock);
    if (!ctx->failed) {
        ctx->failed = true;
        add(ctx, "%s: ", source);
        if (offset != MUC_NO_OFFSET)
            add(ctx, "offset %llu: ", (unsigned long long)offset);
        va_start(args, format);
        add_visible(ctx, format, args);
        va_end(args);
    }
    pthread_mutex_unlock(&ctx->lock);
    return status;
}

muc_subject muc_subject_of(muc_context *ctx, const char *source, uint64_t offset,
                           const char *format, ...)
{
    muc_subject subject = { .ctx = ctx, .source = source, .offset = offset };
    va_list args;

    va_start(args, format);
    vsnprintf(subject.part, sizeof(subject.part), format, args);
    va_end(args);
    return subject;
}

muc_status muc_fail_on(muc_subject subject, muc_status status, const char *format, ...)
{
    char message[sizeof(subject.ctx->message)];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return muc_fail(subject.ctx, status, subject.source, subject.offset, "%s: %s", subject.part,
                    message);
}

void muc_hint(muc_context *ctx, const char *format, ...)
{
    va_list args;

    pthread_mutex_lock(&ctx->lock);
    if (ctx->failed) {
        add(ctx, "; ");
        va_start(args, format);
        add_visible(ctx, format, args);
        va_end(args);
    }
    pthread_mutex_unlock(&ctx->lock);
}

muc_status muc_fail_nomem(muc_context *ctx, const char *source, size_t bytes)
{
    return muc_fail(ctx, MUC_NOMEM, source, MUC_NO_OFFSET, "no memory for %zu bytes", bytes);
}

bool muc_tells_progress(const muc_context *ctx)
{
    return ctx->progress != NULL;
}

void muc_progress(muc_context *ctx, const char *step, uint64_t done, uint64_t total)
{
    if (ctx->progress)
        ctx->progress(ctx->progress_arg, step, done, total);
}

muc_status muc_new_array(muc_context *ctx, const char *source, size_t count, size_t size,
                         void **out)
{
    if (size != 0 && count > SIZE_MAX / size)
        return muc_fail_nomem(ctx, source, SIZE_MAX);
    *out = muc_calloc(count, size);
    return *out ? MUC_OK : muc_fail_nomem(ctx, source, count * size);
}

muc_status muc_new_aligned(muc_context *ctx, const char *source, size_t bytes, void **out)
{
    enum { LINE = 64 };
    size_t whole = bytes < SIZE_MAX - LINE ? (bytes / LINE + 1) * LINE : 0;

    *out = whole && may_allocate() ? muc_aligned_alloc(LINE, whole) : NULL;
    if (!*out)
        return muc_fail_nomem(ctx, source, bytes);
    memset(*out, 0, whole);
    return MUC_OK;
}

bool muc_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    if (a > UINT64_MAX - b)
        return false;
    *out = a + b;
    return true;
}

bool muc_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    if (b != 0 && a > UINT64_MAX / b)
        return false;
    *out = a * b;
    return true;
}

uint64_t muc_hash(uint64_t from, const void *data, size_t size)
{
    const uint8_t *bytes = data;

    for (size_t i = 0; i < size; i++)
        from = (from ^ bytes[i]) * UINT64_C(0x100000001b3);
    return from;
}

size_t muc_hash_text(const char *text)
{
    uint64_t hash = muc_hash(MUC_HASH_BEGIN, text, strlen(text));

    return (size_t)(hash ^ hash >> 32);
}

bool muc_align_u64(uint64_t a, uint64_t alignment, uint64_t *out)
{
    if (!muc_add_u64(a, alignment - 1, &a))
        return false;
    *out = a & ~(alignment - 1);
    return true;
}

const char *muc_status_name(muc_status status)
{
    switch (status) {
#define NAME_CASE(name, value, meaning) \
    case MUC_##name: \
        return #name;
        MUC_STATUS_TABLE(NAME_CASE)
#undef NAME_CASE
    }
    return "?";
}

const char *muc_status_meaning(muc_status status)
{
    switch (status) {
#define MEANING_CASE(name, value, meaning) \
    case MUC_##name: \
        return meaning;
        MUC_STATUS_TABLE(MEANING_CASE)
#undef MEANING_CASE
    }
    return "?";
}
