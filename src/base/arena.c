/* arena.c - allocates from a list of chunks: each allocation moves on in the newest one. */
#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/large.h"

enum { ALIGNMENT = 16, CHUNK_BYTES = 64 * 1024 };

struct muc_arena_chunk {
    muc_arena_chunk *next;
    size_t used, size;
    uint8_t *large; /* or NULL; of large_bytes */
    size_t large_bytes;
};

/* the header is padded so that the first allocation is aligned as calloc's memory is */
static size_t header_bytes(void)
{
    return (sizeof(muc_arena_chunk) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

static muc_status new_chunk(muc_context *ctx, muc_arena *arena, size_t bytes)
{
    size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    muc_arena_chunk *chunk = muc_calloc(1, header_bytes() + size);

    if (!chunk)
        return muc_fail_nomem(ctx, "arena", size);
    chunk->size = size;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return MUC_OK;
}

muc_status muc_arena_new(muc_context *ctx, muc_arena *arena, uint64_t count, size_t size,
                         void **out)
{
    size_t bytes;

    if (size != 0 && count > (SIZE_MAX / 2) / size)
        return muc_fail_nomem(ctx, "arena", SIZE_MAX);
    bytes = ((size_t)count * size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (!arena->chunks || arena->chunks->size - arena->chunks->used < bytes)
        MUC_TRY(new_chunk(ctx, arena, bytes));
    *out = (char *)arena->chunks + header_bytes() + arena->chunks->used;
    arena->chunks->used += bytes;
    return MUC_OK;
}

muc_status muc_arena_adopt_large(muc_context *ctx, muc_arena *arena, uint8_t *data, size_t bytes)
{
    muc_arena_chunk *chunk = muc_calloc(1, sizeof(*chunk)), **at = &arena->chunks;

    if (!chunk) {
        muc_large_free(data, bytes);
        return muc_fail_nomem(ctx, "arena", sizeof(*chunk));
    }
    chunk->large = data;
    chunk->large_bytes = bytes;
    if (*at) /* the newest chunk stays the one that allocations come from */
        at = &(*at)->next;
    chunk->next = *at;
    *at = chunk;
    return MUC_OK;
}

muc_status muc_arena_new_large(muc_context *ctx, muc_arena *arena, size_t bytes, uint8_t **out)
{
    MUC_TRY(muc_large_new(ctx, bytes, out));
    return muc_arena_adopt_large(ctx, arena, *out, bytes);
}

muc_status muc_arena_string(muc_context *ctx, muc_arena *arena, const char *text, size_t length,
                            const char **out)
{
    char *copy;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, length + 1, &copy));
    memcpy(copy, text, length);
    *out = copy;
    return MUC_OK;
}

muc_status muc_arena_format(muc_context *ctx, muc_arena *arena, const char **out,
                            const char *format, ...)
{
    va_list args;
    char *copy;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return muc_fail(ctx, MUC_BUG, "arena", MUC_NO_OFFSET, "bad format");
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)length + 1, &copy));
    va_start(args, format);
    vsnprintf(copy, (size_t)length + 1, format, args);
    va_end(args);
    *out = copy;
    return MUC_OK;
}

muc_status muc_arena_grow(muc_context *ctx, muc_arena *arena, size_t need, size_t size,
                          size_t *capacity, void **items)
{
    size_t wanted = *capacity ? *capacity : 8;
    void *grown;

    if (need <= *capacity)
        return MUC_OK;
    while (wanted < need) {
        if (wanted > SIZE_MAX / 4)
            return muc_fail_nomem(ctx, "arena", SIZE_MAX);
        wanted *= 2;
    }
    MUC_TRY(muc_arena_new(ctx, arena, wanted, size, &grown));
    if (*capacity)
        memcpy(grown, *items, *capacity * size);
    *items = grown;
    *capacity = wanted;
    return MUC_OK;
}

void muc_arena_free(muc_arena *arena)
{
    while (arena->chunks) {
        muc_arena_chunk *next = arena->chunks->next;

        muc_large_free(arena->chunks->large, arena->chunks->large_bytes);
        free(arena->chunks);
        arena->chunks = next;
    }
}
