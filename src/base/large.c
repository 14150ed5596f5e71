/* large.c - files without names, mapped. */
#include "base/large.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEAST_FILE = 1 << 20 };

/* The room is there from the start: no page is missing later. */
static int open_file(const char *folder, size_t bytes)
{
    int fd = folder ? open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600) : -1;

    if (fd >= 0 && posix_fallocate(fd, 0, (off_t)bytes) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

muc_status muc_large_new(muc_context *ctx, size_t bytes, uint8_t **out)
{
    void *mapping;
    int fd = -1;

    *out = NULL;
    if (bytes == 0 || bytes > SIZE_MAX / 2)
        return muc_fail_nomem(ctx, "results", bytes);
    if (bytes >= LEAST_FILE)
        fd = open_file(getenv("TMPDIR"), bytes);
    if (bytes >= LEAST_FILE && fd < 0)
        fd = open_file("/var/tmp", bytes);
    mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (mapping == MAP_FAILED)
        return muc_fail_nomem(ctx, "results", bytes);
    *out = mapping;
    return MUC_OK;
}

void muc_large_rest(const uint8_t *data, size_t bytes)
{
    /* of a shared mapping: what was written stays */
    if (data)
        madvise((void *)(uintptr_t)data, bytes, MADV_DONTNEED);
}

void muc_large_free(uint8_t *data, size_t bytes)
{
    if (data)
        munmap(data, bytes);
}
