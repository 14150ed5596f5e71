/* large_windows.c - reserves memory in Windows' paging file, which needs no file of ours. */
#include "base/large.h"

#include <string.h>

#include "base/windows/wide_path.h"

muc_status muc_large_new(muc_context *ctx, size_t bytes, uint8_t **out)
{
    *out = bytes ? VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) : NULL;
    return *out ? MUC_OK : muc_fail_nomem(ctx, "results", bytes);
}

muc_status muc_large_open(muc_context *ctx, size_t bytes, muc_large_file *out)
{
    out->fd = -1;
    return muc_large_new(ctx, bytes, &out->data);
}

bool muc_large_map(int fd, size_t bytes, muc_large_file *out)
{
    (void)fd;
    (void)bytes;
    *out = (muc_large_file){ NULL, -1 };
    return false;
}

void muc_large_put(const muc_large_file *file, size_t at, const void *data, size_t bytes)
{
    memcpy(file->data + at, data, bytes);
}

void muc_large_close(muc_large_file *file)
{
    (void)file;
}

void muc_large_rest(const uint8_t *data, size_t bytes)
{
    (void)data; /* Windows itself trims what a process does not use */
    (void)bytes;
}

void muc_large_free(uint8_t *data, size_t bytes)
{
    (void)bytes;
    if (data)
        VirtualFree(data, 0, MEM_RELEASE);
}

muc_status muc_zeros_new(muc_context *ctx, const char *source, size_t bytes, void **out)
{
    *out = NULL;
    if (bytes == 0)
        return MUC_OK;
    *out = VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    return *out ? MUC_OK : muc_fail_nomem(ctx, source, bytes);
}

void muc_zeros_clear(void *data, size_t bytes)
{
    memset(data, 0, bytes);
}
