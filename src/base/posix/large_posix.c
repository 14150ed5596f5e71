/* large_posix.c - maps files without names, and pages that take memory once they are written. */
#include "base/large.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEAST_FILE = 1 << 20 };

/* The room is there from the start: no page is missing later. */
bool muc_large_map(int fd, size_t bytes, muc_large_file *out)
{
    void *mapping = MAP_FAILED;

    *out = (muc_large_file){ NULL, -1 };
#ifdef __linux__ /* elsewhere a mapping may not hold what is written to its file */
    if (posix_fallocate(fd, 0, (off_t)bytes) != 0 || ftruncate(fd, (off_t)bytes) != 0)
        return false;
    mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
#endif
    if (mapping == MAP_FAILED)
        return false;
    *out = (muc_large_file){ mapping, dup(fd) };
    return true;
}

static int open_unnamed(const char *folder)
{
    return folder ? open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600) : -1;
}

/* of memory alone */
static int open_memory(void)
{
#ifdef __linux__
    return memfd_create("results", MFD_CLOEXEC);
#else
    return -1;
#endif
}

static bool map_once(int fd, size_t bytes, muc_large_file *out)
{
    bool mapped = fd >= 0 && muc_large_map(fd, bytes, out);

    if (fd >= 0)
        close(fd);
    return mapped;
}

muc_status muc_large_open(muc_context *ctx, size_t bytes, muc_large_file *out)
{
    void *mapping;

    *out = (muc_large_file){ NULL, -1 };
    if (bytes == 0 || bytes > SIZE_MAX / 2)
        return muc_fail_nomem(ctx, "results", bytes);
    if (bytes >= LEAST_FILE ? map_once(open_unnamed(getenv("TMPDIR")), bytes, out) ||
                                  map_once(open_unnamed("/var/tmp"), bytes, out)
                            : map_once(open_memory(), bytes, out))
        return MUC_OK;
    mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        return muc_fail_nomem(ctx, "results", bytes);
    out->data = mapping;
    return MUC_OK;
}

void muc_large_put(const muc_large_file *file, size_t at, const void *data, size_t bytes)
{
    ssize_t done = file->fd < 0 ? 0 : pwrite(file->fd, data, bytes, (off_t)at);
    size_t first = done > 0 ? (size_t)done : 0;

    memcpy(file->data + at + first, (const uint8_t *)data + first, bytes - first);
}

void muc_large_close(muc_large_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

muc_status muc_large_new(muc_context *ctx, size_t bytes, uint8_t **out)
{
    muc_large_file file;
    muc_status status = muc_large_open(ctx, bytes, &file);

    muc_large_close(&file);
    *out = file.data;
    return status;
}

void muc_large_rest(const uint8_t *data, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)data + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)data + bytes) / page * page;

    /* of a shared mapping: what was written stays */
    if (data && first < end)
        madvise((void *)first, end - first, MADV_DONTNEED);
}

void muc_large_free(uint8_t *data, size_t bytes)
{
    if (data)
        munmap(data, bytes);
}

muc_status muc_zeros_new(muc_context *ctx, const char *source, size_t bytes, void **out)
{
    *out = NULL;
    if (bytes == 0)
        return MUC_OK;
    *out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*out != MAP_FAILED)
        return MUC_OK;
    *out = NULL;
    return muc_fail_nomem(ctx, source, bytes);
}

void muc_zeros_clear(void *data, size_t bytes)
{
#ifdef __linux__ /* elsewhere the pages may keep what they hold */
    if (madvise(data, bytes, MADV_DONTNEED) == 0)
        return;
#endif
    memset(data, 0, bytes);
}
