/* bdt.c - the quantized-model file: written front to back, read with every byte accounted for. */
#include "quant/bdt.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "quant/bd_sequence.h"

enum { HEADER_BYTES = 16, ENTRY_BYTES = 40, TRAILER_BYTES = 32, VERSION = 1 };

static const uint8_t magic[8] = "muc-bdt";

static uint64_t aligned(uint64_t offset)
{
    return (offset + MUC_BDT_ALIGNMENT - 1) & ~(uint64_t)(MUC_BDT_ALIGNMENT - 1);
}

static bool name_is_plain(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (name[i] < 0x21 || name[i] > 0x7e)
            return false;
    return length >= 1 && length <= MUC_BDT_MAX_NAME;
}

/* ---- writing ---- */

typedef struct written {
    const char *name;
    uint8_t row[ENTRY_BYTES];
} written;

struct muc_bdt_writer {
    muc_context *ctx;
    const char *path;
    muc_output *output;
    uint64_t at;
    written *entries;
    size_t count, capacity;
    muc_arena arena;
};

static void writer_free(muc_bdt_writer *writer)
{
    muc_arena_free(&writer->arena);
    free(writer);
}

static muc_status write_bytes(muc_bdt_writer *writer, const void *data, size_t size)
{
    MUC_TRY(muc_output_write(writer->output, data, size));
    writer->at += size;
    return MUC_OK;
}

static muc_status write_padding(muc_bdt_writer *writer)
{
    static const uint8_t zeros[MUC_BDT_ALIGNMENT];

    return write_bytes(writer, zeros, (size_t)(aligned(writer->at) - writer->at));
}

muc_status muc_bdt_begin(muc_context *ctx, const char *path, muc_bdt_writer **out)
{
    uint8_t header[HEADER_BYTES] = { 0 };
    muc_bdt_writer *writer = muc_calloc(1, sizeof(*writer));
    muc_status status;

    if (!writer)
        return muc_fail_nomem(ctx, path, sizeof(*writer));
    writer->ctx = ctx;
    status = muc_arena_string(ctx, &writer->arena, path, strlen(path), &writer->path);
    if (status == MUC_OK)
        status = muc_output_begin(ctx, path, &writer->output);
    if (status != MUC_OK) {
        writer_free(writer);
        return status;
    }
    memcpy(header, magic, sizeof(magic));
    muc_store_u32(header + 8, VERSION);
    status = write_bytes(writer, header, sizeof(header));
    if (status == MUC_OK)
        *out = writer;
    else
        muc_bdt_discard(writer);
    return status;
}

static muc_status check_new_name(muc_bdt_writer *writer, const char *name)
{
    if (!name_is_plain(name, strlen(name)))
        return muc_fail(writer->ctx, MUC_USAGE, writer->path, MUC_NO_OFFSET,
                        "'%s' cannot be an entry's name", name);
    for (size_t i = 0; i < writer->count; i++)
        if (strcmp(writer->entries[i].name, name) == 0)
            return muc_fail(writer->ctx, MUC_USAGE, writer->path, MUC_NO_OFFSET,
                            "two entries are named '%s'", name);
    if (writer->count == MUC_BDT_MAX_ENTRIES)
        return muc_fail(writer->ctx, MUC_NOFIT, writer->path, MUC_NO_OFFSET, "more than %d entries",
                        MUC_BDT_MAX_ENTRIES);
    return MUC_OK;
}

muc_status muc_bdt_add(muc_bdt_writer *writer, const muc_bdt_entry *entry)
{
    written *added;

    MUC_TRY(check_new_name(writer, entry->name));
    MUC_TRY(muc_arena_grow(writer->ctx, &writer->arena, writer->count + 1, sizeof(*added),
                           &writer->capacity, (void **)&writer->entries));
    added = &writer->entries[writer->count];
    MUC_TRY(muc_arena_string(writer->ctx, &writer->arena, entry->name, strlen(entry->name),
                             &added->name));
    MUC_TRY(write_padding(writer));
    muc_store_u32(added->row, (uint32_t)strlen(entry->name));
    muc_store_u32(added->row + 4, (uint32_t)entry->encoding);
    muc_store_u32(added->row + 8, entry->n);
    muc_store_u32(added->row + 12, entry->k);
    muc_store_u64(added->row + 16, writer->at);
    muc_store_u64(added->row + 24, entry->bytes);
    muc_store_u32(added->row + 32, muc_crc32(0, entry->data, (size_t)entry->bytes));
    muc_store_u32(added->row + 36, 0);
    writer->count++;
    return write_bytes(writer, entry->data, (size_t)entry->bytes);
}

static muc_status write_table(muc_bdt_writer *writer)
{
    uint8_t trailer[TRAILER_BYTES] = { 0 };
    uint32_t crc = 0, names = 0;

    MUC_TRY(write_padding(writer));
    muc_store_u64(trailer, writer->at);
    for (size_t i = 0; i < writer->count; i++) {
        crc = muc_crc32(crc, writer->entries[i].row, ENTRY_BYTES);
        MUC_TRY(write_bytes(writer, writer->entries[i].row, ENTRY_BYTES));
    }
    for (size_t i = 0; i < writer->count; i++) {
        const char *name = writer->entries[i].name;
        size_t length = strlen(name);

        crc = muc_crc32(crc, (const uint8_t *)name, length);
        names += (uint32_t)length;
        MUC_TRY(write_bytes(writer, name, length));
    }
    muc_store_u32(trailer + 8, (uint32_t)writer->count);
    muc_store_u32(trailer + 12, names);
    muc_store_u32(trailer + 16, crc);
    muc_store_u32(trailer + 28, muc_crc32(0, trailer, 28));
    return write_bytes(writer, trailer, sizeof(trailer));
}

muc_status muc_bdt_commit(muc_bdt_writer *writer)
{
    muc_status status = write_table(writer);

    if (status != MUC_OK) {
        muc_bdt_discard(writer);
        return status;
    }
    status = muc_output_commit(writer->output);
    writer_free(writer);
    return status;
}

void muc_bdt_discard(muc_bdt_writer *writer)
{
    muc_output_discard(writer->output);
    writer_free(writer);
}

/* ---- reading ---- */

typedef struct reading {
    muc_context *ctx;
    muc_bytes bytes;
    uint64_t table, names; /* offsets */
    uint32_t names_bytes;
    muc_bdt *out;
} reading;

static muc_status fail_at(const reading *r, uint64_t offset, const char *what)
{
    return muc_fail(r->ctx, MUC_MALFORMED, r->bytes.name, offset, "%s", what);
}

bool muc_bdt_probe(muc_bytes bytes)
{
    return bytes.size >= sizeof(magic) && memcmp(bytes.data, magic, sizeof(magic)) == 0;
}

static muc_status read_header(const reading *r)
{
    uint32_t version;

    if (!muc_bdt_probe(r->bytes))
        return fail_at(r, 0, "not a quantized model: it does not begin with 'muc-bdt'");
    if (r->bytes.size < HEADER_BYTES + TRAILER_BYTES)
        return fail_at(r, r->bytes.size, "the file ends before its trailer");
    version = muc_load_u32(r->bytes.data + 8);
    if (version != VERSION)
        return muc_fail(r->ctx, MUC_UNSUPPORTED, r->bytes.name, 8,
                        "version %u of the format; this program reads version %u", version,
                        VERSION);
    if (muc_load_u32(r->bytes.data + 12) != 0)
        return fail_at(r, 12, "a reserved word is not zero");
    return MUC_OK;
}

static muc_status read_trailer(reading *r)
{
    uint64_t at = r->bytes.size - TRAILER_BYTES;
    const uint8_t *trailer = r->bytes.data + at;
    uint32_t count = muc_load_u32(trailer + 8);

    if (muc_crc32(0, trailer, 28) != muc_load_u32(trailer + 28))
        return fail_at(r, at, "the trailer's checksum is wrong: the file is damaged or cut short");
    if (muc_load_u64(trailer + 20) != 0)
        return fail_at(r, at + 20, "a reserved word is not zero");
    r->table = muc_load_u64(trailer);
    r->names_bytes = muc_load_u32(trailer + 12);
    r->names = r->table + (uint64_t)count * ENTRY_BYTES;
    if (count > MUC_BDT_MAX_ENTRIES)
        return muc_fail(r->ctx, MUC_MALFORMED, r->bytes.name, at + 8, "%u entries are more than %d",
                        count, MUC_BDT_MAX_ENTRIES);
    if (r->table > at || r->names > at || r->names + r->names_bytes != at)
        return fail_at(r, at, "the table does not reach from its offset to the trailer");
    if (muc_crc32(0, r->bytes.data + r->table, (size_t)(at - r->table)) !=
        muc_load_u32(trailer + 16))
        return fail_at(r, r->table, "the table's checksum is wrong");
    r->out->count = count;
    return MUC_OK;
}

/* Takes the entry's name off the names that are left. */
static muc_status read_name(reading *r, uint64_t at, const uint8_t *row, const char **out)
{
    uint32_t length = muc_load_u32(row);
    const char *name = (const char *)r->bytes.data + r->names;

    if (length > r->names_bytes)
        return fail_at(r, at, "its name reaches beyond the names");
    if (!name_is_plain(name, length))
        return fail_at(r, at, "its name is empty, too long or has unprintable bytes");
    r->names += length;
    r->names_bytes -= length;
    return muc_arena_string(r->ctx, &r->out->arena, name, length, out);
}

/* The payload lies where the one before it ends, rounded up over zeros. */
static muc_status find_payload(const reading *r, uint64_t at, const uint8_t *row, uint64_t end,
                               muc_bdt_entry *entry)
{
    uint64_t offset = muc_load_u64(row + 16);

    if (offset != aligned(end) || offset > r->table)
        return muc_fail(r->ctx, MUC_MALFORMED, r->bytes.name, at + 16,
                        "the payload of '%s' is at %llu, expected %llu", entry->name,
                        (unsigned long long)offset, (unsigned long long)aligned(end));
    entry->bytes = muc_load_u64(row + 24);
    if (entry->bytes > r->table - offset)
        return muc_fail(r->ctx, MUC_MALFORMED, r->bytes.name, at + 24,
                        "the payload of '%s' reaches beyond the table", entry->name);
    entry->data = r->bytes.data + offset;
    if (muc_crc32(0, entry->data, (size_t)entry->bytes) != muc_load_u32(row + 32))
        return muc_fail(r->ctx, MUC_MALFORMED, r->bytes.name, offset,
                        "the checksum of '%s' is wrong", entry->name);
    return muc_load_u32(row + 36) == 0 ? MUC_OK
                                       : fail_at(r, at + 36, "a reserved word is not zero");
}

static muc_status check_floats(const reading *r, uint64_t offset, const muc_bdt_entry *entry)
{
    uint64_t elements = (uint64_t)entry->n * entry->k;

    if (elements == 0 || elements > UINT64_MAX / 4 || entry->bytes != 4 * elements)
        return muc_fail(r->ctx, MUC_MALFORMED, r->bytes.name, offset,
                        "'%s' is %u x %u floats in %llu bytes", entry->name, entry->n, entry->k,
                        (unsigned long long)entry->bytes);
    for (uint64_t i = 0; i < elements; i++)
        if ((muc_load_u32(entry->data + 4 * i) & 0x7f800000) == 0x7f800000)
            return muc_fail(r->ctx, MUC_MALFORMED, r->bytes.name, offset + 4 * i,
                            "an element of '%s' is not finite", entry->name);
    return MUC_OK;
}

static muc_status check_content(const reading *r, uint64_t at, const uint8_t *row,
                                muc_bdt_entry *entry)
{
    uint64_t offset = muc_load_u64(row + 16);
    uint32_t encoding = muc_load_u32(row + 4);

    entry->n = muc_load_u32(row + 8);
    entry->k = muc_load_u32(row + 12);
    entry->encoding = (muc_bdt_encoding)encoding;
    switch (encoding) {
    case MUC_BDT_BYTES:
        return entry->n == 0 && entry->k == 0 ? MUC_OK
                                              : fail_at(r, at + 8, "plain bytes with a shape");
    case MUC_BDT_F32:
        return check_floats(r, offset, entry);
    case MUC_BDT_BD:
        return muc_bd_check(r->ctx, (muc_bytes){ entry->data, (size_t)entry->bytes, r->bytes.name },
                            offset, entry->n, entry->k);
    default:
        return muc_fail(r->ctx, MUC_UNSUPPORTED, r->bytes.name, at + 4,
                        "'%s' has the unknown encoding %u", entry->name, encoding);
    }
}

static muc_status check_zeros(const reading *r, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        if (r->bytes.data[i] != 0)
            return fail_at(r, i, "a byte between two payloads is not zero");
    return MUC_OK;
}

static muc_status read_entries(reading *r)
{
    uint64_t end = HEADER_BYTES;

    MUC_TRY(MUC_ARENA_NEW(r->ctx, &r->out->arena, r->out->count, &r->out->entries));
    for (uint32_t i = 0; i < r->out->count; i++) {
        uint64_t at = r->table + (uint64_t)i * ENTRY_BYTES;
        const uint8_t *row = r->bytes.data + at;
        muc_bdt_entry *entry = &r->out->entries[i];

        MUC_TRY(read_name(r, at, row, &entry->name));
        MUC_TRY(find_payload(r, at, row, end, entry));
        MUC_TRY(check_zeros(r, end, aligned(end)));
        MUC_TRY(check_content(r, at, row, entry));
        end = aligned(end) + entry->bytes;
    }
    if (r->names_bytes != 0)
        return fail_at(r, r->names, "names are left over");
    if (r->table != aligned(end))
        return fail_at(r, end, "a hole between the last payload and the table");
    return check_zeros(r, end, r->table);
}

static int compare_names(const void *a, const void *b)
{
    const muc_bdt_entry *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static muc_status sort_names(reading *r)
{
    muc_bdt *bdt = r->out;

    MUC_TRY(MUC_ARENA_NEW(r->ctx, &bdt->arena, bdt->count, &bdt->by_name));
    for (uint32_t i = 0; i < bdt->count; i++)
        bdt->by_name[i] = &bdt->entries[i];
    qsort(bdt->by_name, bdt->count, sizeof(*bdt->by_name), compare_names);
    for (uint32_t i = 1; i < bdt->count; i++)
        if (compare_names(&bdt->by_name[i - 1], &bdt->by_name[i]) == 0)
            return muc_fail(r->ctx, MUC_MALFORMED, r->bytes.name, r->table,
                            "two entries are named '%s'", bdt->by_name[i]->name);
    return MUC_OK;
}

muc_status muc_bdt_read(muc_context *ctx, muc_bytes bytes, muc_bdt *out)
{
    reading r = { .ctx = ctx, .bytes = bytes, .out = out };
    muc_status status;

    memset(out, 0, sizeof(*out));
    status = read_header(&r);
    if (status == MUC_OK)
        status = read_trailer(&r);
    if (status == MUC_OK)
        status = read_entries(&r);
    if (status == MUC_OK)
        status = sort_names(&r);
    if (status != MUC_OK)
        muc_bdt_free(out);
    return status;
}

void muc_bdt_free(muc_bdt *bdt)
{
    muc_arena_free(&bdt->arena);
    memset(bdt, 0, sizeof(*bdt));
}

const muc_bdt_entry *muc_bdt_find(const muc_bdt *bdt, const char *name)
{
    uint32_t low = 0, high = bdt->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const muc_bdt_entry *entry = bdt->by_name[middle];
        int order = strcmp(name, entry->name);

        if (order == 0)
            return entry;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
