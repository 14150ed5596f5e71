/* arena.h - memory by lifetime: many allocations, one release. */
#ifndef MUC_ARENA_H
#define MUC_ARENA_H

#include "base/base.h"

typedef struct muc_arena_chunk muc_arena_chunk;

/* All-zero is a valid empty arena. Not thread-safe. */
typedef struct muc_arena {
    muc_arena_chunk *chunks;
} muc_arena;

/* Zeroed memory aligned to 16 bytes, alive until muc_arena_free. count*size is checked. */
muc_status muc_arena_new(muc_context *ctx, muc_arena *arena, uint64_t count, size_t size,
                         void **out);
#define MUC_ARENA_NEW(ctx, arena, count, out) \
    muc_arena_new((ctx), (arena), (count), sizeof(**(out)), (void **)(out))
/* A NUL-terminated copy of length bytes. */
muc_status muc_arena_string(muc_context *ctx, muc_arena *arena, const char *text, size_t length,
                            const char **out);
muc_status muc_arena_format(muc_context *ctx, muc_arena *arena, const char **out,
                            const char *format, ...) MUC_PRINTF(4, 5);
/* Memory as of muc_large_new. */
muc_status muc_arena_new_large(muc_context *ctx, muc_arena *arena, size_t bytes, uint8_t **out);
/* From now on the arena frees what muc_large_new made; where this fails, it is freed at once. */
muc_status muc_arena_adopt_large(muc_context *ctx, muc_arena *arena, uint8_t *data, size_t bytes);
void muc_arena_free(muc_arena *arena);

/* Grows *items, an arena array of *capacity elements, to hold at least need elements. */
muc_status muc_arena_grow(muc_context *ctx, muc_arena *arena, size_t need, size_t size,
                          size_t *capacity, void **items);
#define MUC_ARENA_GROW(ctx, arena, need, capacity, items) \
    muc_arena_grow((ctx), (arena), (need), sizeof(**(items)), (capacity), (void **)(items))

#endif
