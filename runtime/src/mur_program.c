/* mur_program.c - a program file, opened where it lies.
 *
 * Ranges of words come from mur_sections.def; what relates two words is written out here. Sizes
 * are compared by subtraction from what is known to fit, so nothing overflows.
 */
#include "mur.h"

#include <string.h>

#define FOUR(a, b, c, d) \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

/* a section's type from its name's letters */
static const struct {
    char name[5];
    uint8_t need;
} sections[MUR_SECTIONS] = {
#define MUR_SECTION(name, need, meaning) { #name, need },
#include "mur_sections.def"
};

typedef struct limits {
    uint32_t min, max;
} limits;

static const limits mach_limits[] = {
#define MUR_MACH(name, min, max, meaning) { min, max },
#include "mur_sections.def"
};

static const limits meta_limits[] = {
#define MUR_META(name, min, max, meaning) { min, max },
#include "mur_sections.def"
};

static const limits entr_limits[] = {
#define MUR_ENTR(name, min, max, meaning) { min, max },
#include "mur_sections.def"
};

uint32_t mur_crc32(uint32_t crc, const void *data, size_t bytes)
{
    /* four bits at a time: a table of 64 bytes, where the usual one has 1 KB */
    static const uint32_t table[16] = { 0,          0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                        0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c };
    const uint8_t *p = data;

    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

static int in_limits(const void *words, const limits *limit, size_t bytes)
{
    const uint32_t *word = words;

    for (size_t i = 0; i < bytes / 4; i++)
        if (word[i] < limit[i].min || word[i] > limit[i].max)
            return 0;
    return 1;
}

/* FNV-1a 64 of MACH, in two words */
static int fingerprint_holds(const mur_program *program)
{
    const uint8_t *p = program->section[MUR_SECTION_MACH];
    uint64_t hash = 0xcbf29ce484222325u;

    for (uint32_t i = 0; i < sizeof(mur_mach); i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return program->header->fingerprint_low == (uint32_t)hash &&
           program->header->fingerprint_high == (uint32_t)(hash >> 32);
}

static int zero_padded(const mur_header *header)
{
    uint32_t any = header->zero7 | header->zero8 | header->zero9 | header->zero10 | header->zero11 |
                   header->zero12 | header->zero13 | header->zero14;

    return any == 0;
}

/* Ascending, disjoint, within the file, each known and once. */
static mur_status read_places(mur_program *program, const mur_place *places)
{
    uint32_t count = program->header->sections;
    uint32_t end = (uint32_t)(sizeof(mur_header) + count * sizeof(mur_place)), s;
    const uint8_t *image = (const uint8_t *)program->header;

    for (uint32_t i = 0; i < count; i++) {
        const mur_place *place = &places[i];

        if (place->offset < end || place->offset % MUR_ALIGNMENT != 0 ||
            place->offset > program->header->bytes ||
            place->bytes > program->header->bytes - place->offset)
            return MUR_E_MALFORMED;
        for (s = 0; s < MUR_SECTIONS; s++) {
            const char *name = sections[s].name;

            if (place->type == FOUR(name[0], name[1], name[2], name[3]))
                break;
        }
        if (s == MUR_SECTIONS || program->section[s])
            return MUR_E_MALFORMED;
        program->section[s] = image + place->offset;
        program->section_bytes[s] = place->bytes;
        end = place->offset + place->bytes;
    }
    for (s = 0; s < MUR_SECTIONS; s++)
        if (sections[s].need && !program->section[s])
            return MUR_E_MALFORMED;
    return end == program->header->bytes ? MUR_OK : MUR_E_MALFORMED;
}

/* The version is 1 and the array one that there is (SPEC.md section 1): 32, 96 or 128 rows if not
 * 64; a power of two below 128 but 8; 32 tokens if not 64, which 32 rows do not hold. */
static int isa_holds(uint32_t isa)
{
    uint32_t rows = isa >> 8 & 7, columns = isa & 0x7f0000;

    return (isa & 0xfe88f8ff) == MUR_ISA_VERSION && (0x1b >> rows & 1) != 0 &&
           (columns & (columns - 1)) == 0 && (rows != 1 || isa >> 24 == 1);
}

static int meta_holds(const mur_program *program)
{
    const mur_meta *meta = program->meta;
    uint64_t embedded = (uint64_t)4 * meta->width * meta->rows + meta->embedded;
    uint64_t logits = (uint64_t)4 * meta->vocabulary + meta->logits;

    return isa_holds(program->mach->isa) && meta->rows <= program->mach->rows &&
           meta->rows <= meta->context && meta->embedded % 4 == 0 && meta->logits % 4 == 0 &&
           4 * meta->rows <= meta->io_bytes && embedded <= meta->io_bytes &&
           logits <= meta->io_bytes;
}

static int entries_hold(const mur_program *program)
{
    uint32_t words = program->section_bytes[MUR_SECTION_CODE] / 4, end = 0;

    for (uint32_t i = 0; i < program->entry_count; i++) {
        const mur_entr *entry = &program->entries[i];

        if (!in_limits(entry, entr_limits, sizeof(*entry)) || entry->start < end ||
            entry->start > words || entry->words > words - entry->start ||
            entry->min_m > entry->max_m || entry->max_m > program->meta->rows)
            return 0;
        end = entry->start + entry->words;
    }
    return 1;
}

static int tables_hold(const mur_program *program)
{
    uint32_t words = program->section_bytes[MUR_SECTION_TABL] / 4;
    const uint32_t *t = program->tables;

    if (words < 2 || t[0] > words - 2 || t[1] != t[0] + 2 || t[t[0] + 1] != words)
        return 0;
    for (uint32_t i = 1; i <= t[0]; i++)
        if (t[i + 1] > words || t[i] > t[i + 1] || t[i + 1] - t[i] < 2)
            return 0;
    return 1;
}

mur_status mur_open(mur_program *program, const void *image, size_t bytes)
{
    const mur_header *header = image;
    const mur_place *places = (const mur_place *)(header + 1);
    const uint32_t *size = program->section_bytes;

    memset(program, 0, sizeof(*program));
    program->header = header;
    if (bytes < sizeof(*header) || (uintptr_t)image % MUR_ALIGNMENT != 0 ||
        header->magic != MUR_MAGIC || header->crc != mur_crc32(0, header, sizeof(*header) - 4) ||
        !zero_padded(header))
        return MUR_E_MALFORMED;
    if ((header->version & 0xffff) != MUR_VERSION_MAJOR ||
        header->version >> 16 > MUR_VERSION_MINOR)
        return MUR_E_UNSUPPORTED;
    if (header->bytes > bytes || header->sections > MUR_SECTIONS ||
        header->bytes < sizeof(*header) + header->sections * sizeof(*places) ||
        header->table_crc != mur_crc32(0, places, header->sections * sizeof(*places)))
        return MUR_E_MALFORMED;
    if (read_places(program, places) != MUR_OK)
        return MUR_E_MALFORMED;

    program->mach = (const mur_mach *)program->section[MUR_SECTION_MACH];
    program->meta = (const mur_meta *)program->section[MUR_SECTION_META];
    program->entries = (const mur_entr *)program->section[MUR_SECTION_ENTR];
    program->entry_count = size[MUR_SECTION_ENTR] / sizeof(mur_entr);
    program->code = (const uint32_t *)program->section[MUR_SECTION_CODE];
    program->tables = (const uint32_t *)program->section[MUR_SECTION_TABL];
    if (size[MUR_SECTION_MACH] != sizeof(mur_mach) || size[MUR_SECTION_META] != sizeof(mur_meta) ||
        size[MUR_SECTION_ENTR] % sizeof(mur_entr) != 0 || program->entry_count == 0 ||
        size[MUR_SECTION_CODE] % 4 != 0 || size[MUR_SECTION_TABL] % 4 != 0 ||
        size[MUR_SECTION_GOLD] % sizeof(mur_gold) != 0 ||
        size[MUR_SECTION_LAYR] % sizeof(mur_layr) != 0 ||
        !in_limits(program->mach, mach_limits, sizeof(mur_mach)) ||
        !in_limits(program->meta, meta_limits, sizeof(mur_meta)) || !fingerprint_holds(program) ||
        !meta_holds(program) || !entries_hold(program) || !tables_hold(program))
        return MUR_E_MALFORMED;
    program->region_bytes[MUR_WGTS] = size[MUR_SECTION_WGTS];
    program->region_bytes[MUR_PARM] = size[MUR_SECTION_PARM];
    program->region_bytes[MUR_KV] = program->meta->kv_bytes;
    program->region_bytes[MUR_IO] = program->meta->io_bytes;
    return MUR_OK;
}

mur_status mur_check(const mur_program *program, enum mur_section *section)
{
    return mur_check_by(program, mur_crc32, section);
}

mur_status mur_check_by(const mur_program *program, mur_checksum *crc32, enum mur_section *section)
{
    const uint8_t *gap = (const uint8_t *)program->header + sizeof(mur_header) +
                         program->header->sections * sizeof(mur_place);
    const mur_place *place = (const mur_place *)(program->header + 1);

    for (uint32_t i = 0; i < program->header->sections; i++, place++) {
        const uint8_t *data = (const uint8_t *)program->header + place->offset;
        int good = place->crc == crc32(0, data, place->bytes);

        for (; gap < data; gap++)
            good &= *gap == 0;
        gap = data + place->bytes;
        if (good)
            continue;
        for (uint32_t s = 0; section && s < MUR_SECTIONS; s++)
            if (program->section[s] == data && program->section_bytes[s] == place->bytes)
                *section = (enum mur_section)s;
        return MUR_E_MALFORMED;
    }
    return MUR_OK;
}

mur_status mur_fits(const mur_program *program, const mur_mach *board)
{
    return memcmp(program->mach, board, sizeof(*board)) == 0 ? MUR_OK : MUR_E_MACHINE;
}

uint32_t mur_find_entry(const mur_program *program, enum mur_entry_kind kind, uint32_t m)
{
    uint32_t i = 0;

    while (i < program->entry_count &&
           (program->entries[i].kind != kind || m < program->entries[i].min_m ||
            m > program->entries[i].max_m))
        i++;
    return i;
}
