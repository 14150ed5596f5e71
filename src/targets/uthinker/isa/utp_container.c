/* utp_container.c - the writer, and the runtime's reader with words for what it refuses. */
#include "targets/uthinker/isa/utp_container.h"

#include <string.h>

/* words of the header and of a row of the section table */
enum {
#define MUR_HEADER(name, meaning) HEADER_##name,
#include "mur_sections.def"
    HEADER_WORDS
};
enum {
#define MUR_PLACE(name, meaning) PLACE_##name,
#include "mur_sections.def"
    PLACE_WORDS
};

static const char *const names[] = {
#define MUR_SECTION(name, need, meaning) #name,
#include "mur_sections.def"
};

const char *muc_section_name(enum mur_section section)
{
    return names[section];
}

static size_t aligned(size_t size)
{
    return (size + MUR_ALIGNMENT - 1) & ~(size_t)(MUR_ALIGNMENT - 1);
}

static void store(uint8_t *words, uint32_t index, uint32_t value)
{
    muc_store_u32(words + 4 * (size_t)index, value);
}

static void write_header(const muc_container_place *machine, size_t count, uint32_t minor,
                         uint8_t *file, size_t size)
{
    uint64_t hash =
        muc_hash(MUC_HASH_BEGIN, machine ? machine->data : NULL, machine ? machine->size : 0);

    store(file, HEADER_magic, MUR_MAGIC);
    store(file, HEADER_version, MUR_VERSION_MAJOR | minor << 16);
    store(file, HEADER_bytes, (uint32_t)size);
    store(file, HEADER_sections, (uint32_t)count);
    store(file, HEADER_fingerprint_low, (uint32_t)hash);
    store(file, HEADER_fingerprint_high, (uint32_t)(hash >> 32));
    store(file, HEADER_table_crc, muc_crc32(0, file + 4 * HEADER_WORDS, 4 * PLACE_WORDS * count));
    store(file, HEADER_crc, muc_crc32(0, file, 4 * HEADER_crc));
}

/* where a section begins if the ones before it end at `end` */
static size_t start_of(const muc_container_place *place, size_t end)
{
    return place->offset ? place->offset : aligned(end);
}

static muc_status measure(muc_context *ctx, const muc_container_place *places, size_t count,
                          size_t *size)
{
    *size = 4 * (HEADER_WORDS + PLACE_WORDS * count);
    for (size_t i = 0; i < count; i++) {
        size_t start = start_of(&places[i], *size);

        if (start < *size || start % MUR_ALIGNMENT)
            return muc_fail(ctx, MUC_MALFORMED, "uthinker", start, "section %s cannot begin here",
                            names[places[i].section]);
        *size = start + places[i].size;
        if (*size > UINT32_MAX)
            return muc_fail(ctx, MUC_NOFIT, "uthinker", MUC_NO_OFFSET, "a program of %zu bytes",
                            *size);
    }
    return MUC_OK;
}

enum { AT_ONCE = 4 << 20 }; /* bytes of a section: no large one is in memory twice */

/* Copies a section, unless it is there, and returns its CRC-32; what is large leaves the memory
 * again. */
static uint32_t copy_section(const muc_container_place *place, uint8_t *out)
{
    uint32_t crc = 0;

    for (size_t at = 0, count; at < place->size; at += count) {
        count = place->size - at < AT_ONCE ? place->size - at : AT_ONCE;
        if (place->data != out)
            memcpy(out + at, place->data + at, count);
        crc = muc_crc32(crc, out + at, count);
        if (count == AT_ONCE)
            muc_large_rest(out + at, count);
    }
    return crc;
}

/* Fills a file that has the size for it. */
static void fill(const muc_container_place *places, size_t count, uint32_t minor, uint8_t *file,
                 size_t size)
{
    const muc_container_place *machine = NULL;
    size_t end = 4 * (HEADER_WORDS + PLACE_WORDS * count);

    for (size_t i = 0; i < count; i++) {
        uint8_t *row = file + 4 * (HEADER_WORDS + PLACE_WORDS * i);
        size_t start = start_of(&places[i], end);

        memset(file + end, 0, start - end);
        memcpy(row, names[places[i].section], 4);
        store(row, PLACE_offset, (uint32_t)start);
        store(row, PLACE_bytes, (uint32_t)places[i].size);
        store(row, PLACE_crc, copy_section(&places[i], file + start));
        end = start + places[i].size;
        if (places[i].section == MUR_SECTION_MACH)
            machine = &places[i];
    }
    write_header(machine, count, minor, file, size);
}

muc_status muc_container_write_places(muc_context *ctx, muc_arena *arena,
                                      const muc_container_place *places, size_t count,
                                      uint32_t minor, muc_bytes *out)
{
    size_t size;
    uint8_t *file;

    MUC_TRY(measure(ctx, places, count, &size));
    MUC_TRY(muc_arena_new_large(ctx, arena, size, &file));
    fill(places, count, minor, file, size);
    *out = (muc_bytes){ file, size, "program" };
    return MUC_OK;
}

/* Those that there are; returns how many. */
static size_t list_places(const muc_container *sections, muc_container_place places[MUR_SECTIONS])
{
    size_t count = 0;

    for (uint32_t i = 0; i < MUR_SECTIONS; i++)
        if (sections->section[i].data)
            places[count++] =
                (muc_container_place){ (enum mur_section)i, 0, sections->section[i].data,
                                       sections->section[i].size };
    return count;
}

/* of one of them, in a file of count */
static size_t begin_of(const muc_container_place *places, size_t count, size_t which)
{
    size_t end = 4 * (HEADER_WORDS + PLACE_WORDS * count);

    for (size_t i = 0; i < which; i++)
        end = start_of(&places[i], end) + places[i].size;
    return start_of(&places[which], end);
}

muc_status muc_container_place_weights(muc_context *ctx, muc_arena *arena, muc_container *sections,
                                       size_t bytes, muc_output *output, muc_large_file *file,
                                       size_t *at)
{
    static const uint8_t anywhere;
    muc_container_place places[MUR_SECTIONS];
    size_t count, size, which = 0;

    *file = (muc_large_file){ NULL, -1 };
    sections->section[MUR_SECTION_WGTS].data = &anywhere;
    sections->section[MUR_SECTION_WGTS].size = bytes;
    count = list_places(sections, places);
    MUC_TRY(measure(ctx, places, count, &size));
    if (!output || !muc_output_map(output, size, file))
        MUC_TRY(muc_large_open(ctx, size, file));
    MUC_TRY(muc_arena_adopt_large(ctx, arena, file->data, size));
    sections->file = file->data;
    sections->file_bytes = size;
    while (places[which].section != MUR_SECTION_WGTS)
        which++;
    *at = begin_of(places, count, which);
    sections->section[MUR_SECTION_WGTS].data = file->data + *at;
    return MUC_OK;
}

/* Whether the file is as large, and nothing lies in it but in its place. */
static bool has_place(const muc_container *sections, const muc_container_place *places,
                      size_t count, size_t size)
{
    const uint8_t *file = sections->file;

    for (size_t i = 0; i < count; i++)
        if (file && places[i].data >= file && places[i].data < file + sections->file_bytes &&
            places[i].data != file + begin_of(places, count, i))
            return false;
    return size == sections->file_bytes;
}

muc_status muc_container_write(muc_context *ctx, muc_arena *arena, muc_container *sections,
                               muc_bytes *out)
{
    muc_container_place places[MUR_SECTIONS];
    size_t count = list_places(sections, places), size;

    MUC_TRY(measure(ctx, places, count, &size));
    if (!has_place(sections, places, count, size)) {
        MUC_TRY(muc_arena_new_large(ctx, arena, size, &sections->file));
        sections->file_bytes = size;
    }
    fill(places, count, MUR_VERSION_MINOR, sections->file, size);
    *out = (muc_bytes){ sections->file, size, "program" };
    return MUC_OK;
}

/* where and what, for a file that the runtime's reader refuses as a whole */
static muc_status explain(muc_context *ctx, muc_bytes bytes)
{
    const uint8_t *file = bytes.data;

    if (bytes.size < 4 * HEADER_WORDS)
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, bytes.size,
                        "the file ends in the header of 64 bytes");
    if (muc_load_u32(file) != MUR_MAGIC)
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, 0, "not a program: no UTP1 in front");
    if (muc_load_u32(file + 4 * HEADER_crc) != muc_crc32(0, file, 4 * HEADER_crc))
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, 4 * HEADER_crc,
                        "the header's CRC-32 is wrong");
    if (muc_load_u32(file + 4 * HEADER_bytes) > bytes.size)
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, bytes.size,
                        "the file ends here, its header says %u bytes",
                        muc_load_u32(file + 4 * HEADER_bytes));
    return muc_fail(ctx, MUC_MALFORMED, bytes.name, 4 * HEADER_WORDS,
                    "the section table, MACH, META or ENTR is not that of a program");
}

static uint32_t checksum(uint32_t crc, const void *data, size_t bytes)
{
    return muc_crc32(crc, data, bytes);
}

muc_status muc_container_open(muc_context *ctx, muc_bytes bytes, muc_container *out,
                              mur_program *program)
{
    mur_program opened;
    enum mur_section wrong;
    mur_status status = mur_open(&opened, bytes.data, bytes.size);

    if (status == MUR_E_UNSUPPORTED)
        return muc_fail(ctx, MUC_UNSUPPORTED, bytes.name, 4 * HEADER_version,
                        "a program of version %u.%u, this reads %u.%u",
                        muc_load_u16(bytes.data + 4 * HEADER_version),
                        muc_load_u16(bytes.data + 4 * HEADER_version + 2),
                        (unsigned)MUR_VERSION_MAJOR, (unsigned)MUR_VERSION_MINOR);
    if (status != MUR_OK)
        return explain(ctx, bytes);
    if (opened.header->bytes != bytes.size)
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, opened.header->bytes,
                        "%zu bytes follow the program's end", bytes.size - opened.header->bytes);
    if (mur_check_by(&opened, checksum, &wrong) != MUR_OK)
        return muc_fail(ctx, MUC_MALFORMED, bytes.name,
                        (uint64_t)(opened.section[wrong] - bytes.data),
                        "section %s, or the zero bytes before it, are damaged", names[wrong]);
    for (uint32_t i = 0; i < MUR_SECTIONS; i++) {
        out->section[i].data = opened.section[i];
        out->section[i].size = opened.section_bytes[i];
    }
    if (program)
        *program = opened;
    return MUC_OK;
}
