/* debug_names.c - u32 n; n pairs (code word, offset of the name); names, each ended by a zero byte.
 */
#include "targets/uthinker/isa/debug_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { ROW = 8, HEADER = 4 };

/* Names seen so far, by hash of their text: offset + 1, or 0. */
typedef struct name_table {
    uint32_t *slots;
    size_t capacity; /* a power of two above the number of names */
    muc_text names;
} name_table;

/* where the name lies among the names; appended if it is new */
static uint32_t place_name(name_table *table, const char *name)
{
    size_t length = strlen(name) + 1;
    uint32_t hash = muc_crc32(0, (const uint8_t *)name, length);

    for (size_t i = hash;; i++) {
        uint32_t *slot = &table->slots[i & (table->capacity - 1)];

        if (*slot == 0) {
            *slot = (uint32_t)table->names.size + 1;
            muc_text_add_bytes(&table->names, name, length);
            return *slot - 1;
        }
        if (table->names.failed || strcmp(table->names.data + *slot - 1, name) == 0)
            return *slot - 1;
    }
}

static muc_status write_rows(muc_context *ctx, muc_arena *arena, const muc_debug_name *names,
                             size_t count, name_table *table, muc_bytes *out)
{
    uint32_t *offsets;
    uint8_t *at;

    MUC_TRY(MUC_ARENA_NEW(ctx, arena, count, &offsets));
    for (size_t i = 0; i < count; i++)
        offsets[i] = place_name(table, names[i].name);
    MUC_TRY(muc_text_status(ctx, &table->names));
    out->size = HEADER + ROW * count + table->names.size;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, out->size, &at));
    out->data = at;
    muc_store_u32(at, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        muc_store_u32(at + HEADER + ROW * i, names[i].word);
        muc_store_u32(at + HEADER + ROW * i + 4, offsets[i]);
    }
    if (table->names.size)
        memcpy(at + HEADER + ROW * count, table->names.data, table->names.size);
    return MUC_OK;
}

muc_status muc_debug_write(muc_context *ctx, muc_arena *arena, const muc_debug_name *names,
                           size_t count, muc_bytes *out)
{
    name_table table = { .capacity = 2 };
    muc_status status;

    while (table.capacity < 2 * count)
        table.capacity *= 2;
    MUC_TRY(MUC_NEW_ARRAY(ctx, "uthinker", table.capacity, &table.slots));
    out->name = "DEBG";
    status = write_rows(ctx, arena, names, count, &table, out);
    free(table.slots);
    muc_text_free(&table.names);
    return status;
}

/* false if a row or a name leaves the section */
static bool read_rows(muc_bytes section, muc_debug_name *names, size_t count)
{
    const uint8_t *text = section.data + HEADER + ROW * count;
    size_t bytes = section.size - HEADER - ROW * count;

    if (bytes != 0 && text[bytes - 1] != '\0')
        return false;
    for (size_t i = 0; i < count; i++) {
        uint32_t offset = muc_load_u32(section.data + HEADER + ROW * i + 4);

        if (offset >= bytes)
            return false;
        names[i].word = muc_load_u32(section.data + HEADER + ROW * i);
        names[i].name = (const char *)text + offset;
    }
    return true;
}

muc_status muc_debug_read(muc_context *ctx, muc_arena *arena, muc_bytes section,
                          muc_debug_name **names, size_t *count, bool *whole)
{
    muc_bytes again;
    size_t rows;

    *whole = false;
    *count = 0;
    if (section.size < HEADER)
        return MUC_OK;
    rows = muc_load_u32(section.data);
    if (rows > (section.size - HEADER) / ROW)
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, rows, names));
    if (!read_rows(section, *names, rows))
        return MUC_OK;
    MUC_TRY(muc_debug_write(ctx, arena, *names, rows, &again));
    *whole = again.size == section.size && memcmp(again.data, section.data, again.size) == 0;
    *count = *whole ? rows : 0;
    return MUC_OK;
}
