/* zip.c - reads zip files in memory with libzip; no member may be larger than its archive allows.
 */
#include "formats/zip.h"

#include <inttypes.h>
#include <string.h>
#include <zip.h>

enum { FREE_BYTES = 64 << 20, BYTES_PER_BYTE = 100 };
enum { LOCAL_HEADER = 30, END = 22, END64 = 56, LOCATOR64 = 20, MAX_COMMENT = 65535 };
enum { ENTRY = 46, EXTRA64 = 1 };

struct muc_zip {
    muc_context *ctx;
    muc_arena *arena;
    muc_bytes bytes;
    zip_t *zip;
    uint64_t left;           /* bytes that members may still take */
    bool looked;             /* for what follows */
    const uint64_t *headers; /* [count], where members begin; none: their directory is unclear */
    uint64_t count;
};

bool muc_zip_first(muc_bytes bytes, muc_string_view *name)
{
    if (bytes.size < LOCAL_HEADER || memcmp(bytes.data, "PK\3\4", 4) != 0)
        return false;
    name->data = (const char *)bytes.data + LOCAL_HEADER;
    name->size = muc_load_u16(bytes.data + 26);
    return name->size <= bytes.size - LOCAL_HEADER;
}

muc_status muc_zip_fail(muc_context *ctx, muc_status status, const char *path, zip_error_t *error)
{
    muc_fail(ctx, status, path, MUC_NO_OFFSET, "%s", zip_error_strerror(error));
    zip_error_fini(error);
    return status;
}

muc_status muc_zip_open(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_zip **out)
{
    zip_source_t *source;
    zip_error_t error;
    muc_zip *z;

    *out = NULL;
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, 1, &z));
    *z = (muc_zip){ .ctx = ctx,
                    .arena = arena,
                    .bytes = bytes,
                    .left = FREE_BYTES + (uint64_t)BYTES_PER_BYTE * bytes.size };
    zip_error_init(&error);
    source = zip_source_buffer_create(bytes.data, bytes.size, 0, &error);
    if (!source)
        return muc_zip_fail(ctx, MUC_NOMEM, bytes.name, &error);
    z->zip = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (!z->zip) {
        zip_source_free(source);
        return muc_zip_fail(ctx, MUC_MALFORMED, bytes.name, &error);
    }
    zip_error_fini(&error);
    *out = z;
    return MUC_OK;
}

void muc_zip_close(muc_zip *zip)
{
    if (zip)
        zip_discard(zip->zip);
}

const char *muc_zip_name(const muc_zip *zip, size_t i)
{
    return zip_get_name(zip->zip, i, 0);
}

/* the whole of a member, and not a byte more than it was said to have */
static bool inflate(zip_t *zip, const zip_stat_t *member, uint8_t *out)
{
    zip_file_t *file = zip_fopen_index(zip, member->index, 0);
    zip_int64_t got = file ? zip_fread(file, out, member->size) : -1;
    bool whole = got >= 0 && (uint64_t)got == member->size && zip_fread(file, out, 1) == 0;

    if (file && zip_fclose(file) != 0)
        whole = false; /* the checksum */
    return whole;
}

static muc_status find_member(const muc_zip *z, const char *name, zip_stat_t *member)
{
    zip_stat_init(member);
    if (zip_stat(z->zip, name, 0, member) != 0 ||
        (~member->valid & (ZIP_STAT_INDEX | ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD)) != 0)
        return muc_fail(z->ctx, MUC_MALFORMED, z->bytes.name, MUC_NO_OFFSET,
                        "the archive has no member '%.200s'", name);
    if (member->encryption_method != ZIP_EM_NONE ||
        (member->comp_method != ZIP_CM_STORE && member->comp_method != ZIP_CM_DEFLATE))
        return muc_fail(z->ctx, MUC_UNSUPPORTED, z->bytes.name, MUC_NO_OFFSET,
                        "member '%.200s' is encrypted, or compressed by method %u", name,
                        member->comp_method);
    return MUC_OK;
}

muc_status muc_zip_read(muc_zip *z, const char *name, muc_bytes *out)
{
    zip_stat_t member;
    uint8_t *bytes;

    MUC_TRY(find_member(z, name, &member));
    if (member.size > z->left)
        return muc_fail(z->ctx, MUC_MALFORMED, z->bytes.name, MUC_NO_OFFSET,
                        "member '%.200s' inflates to %" PRIu64
                        " bytes, out of proportion to the archive",
                        name, member.size);
    z->left -= member.size;
    MUC_TRY(MUC_ARENA_NEW(z->ctx, z->arena, (size_t)member.size + 1, &bytes));
    if (!inflate(z->zip, &member, bytes))
        return muc_fail(z->ctx, MUC_MALFORMED, z->bytes.name, MUC_NO_OFFSET,
                        "member '%.200s' is damaged", name);
    out->data = bytes;
    out->size = (size_t)member.size;
    return muc_arena_format(z->ctx, z->arena, &out->name, "%s(%s)", z->bytes.name, name);
}

/* ---- where members lie, which libzip does not tell ---- */

/* offset and count of the central directory, from the record behind it */
static bool find_directory(muc_bytes bytes, uint64_t *at, uint64_t *count)
{
    size_t furthest = bytes.size < END + MAX_COMMENT ? bytes.size : END + MAX_COMMENT;

    for (size_t back = END; back <= furthest; back++) {
        const uint8_t *end = bytes.data + (bytes.size - back);

        if (memcmp(end, "PK\5\6", 4) != 0 || muc_load_u16(end + 20) != back - END)
            continue;
        *count = muc_load_u16(end + 10);
        *at = muc_load_u32(end + 16);
        if (bytes.size - back >= LOCATOR64 && memcmp(end - LOCATOR64, "PK\6\7", 4) == 0) {
            uint64_t record = muc_load_u64(end - LOCATOR64 + 8);

            if (record > bytes.size || bytes.size - record < END64)
                return false;
            *count = muc_load_u64(bytes.data + record + 32);
            *at = muc_load_u64(bytes.data + record + 48);
        }
        return *at <= bytes.size && *count <= (bytes.size - *at) / ENTRY;
    }
    return false;
}

/* what the extra fields of an entry say of a header beyond 4 GiB; the sizes before it may be there
 */
static bool long_offset(const uint8_t *entry, const uint8_t *extra, size_t size, uint64_t *out)
{
    while (size >= 4) {
        size_t length = muc_load_u16(extra + 2);
        size_t before = (muc_load_u32(entry + 24) == UINT32_MAX ? 8u : 0u) +
                        (muc_load_u32(entry + 20) == UINT32_MAX ? 8u : 0u);

        if (length > size - 4)
            return false;
        if (muc_load_u16(extra) == EXTRA64 && length >= before + 8) {
            *out = muc_load_u64(extra + 4 + before);
            return true;
        }
        extra += 4 + length;
        size -= 4 + length;
    }
    return false;
}

/* the headers of all members, in libzip's order; without them members are copied */
static muc_status find_headers(muc_zip *z)
{
    uint64_t at, count;
    uint64_t *headers;

    z->looked = true;
    if (!find_directory(z->bytes, &at, &count) || count != (uint64_t)zip_get_num_entries(z->zip, 0))
        return MUC_OK;
    MUC_TRY(MUC_ARENA_NEW(z->ctx, z->arena, (size_t)count, &headers));
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *entry = z->bytes.data + at;
        size_t name, extra, left = z->bytes.size - (size_t)at;

        if (left < ENTRY || memcmp(entry, "PK\1\2", 4) != 0)
            return MUC_OK;
        name = muc_load_u16(entry + 28);
        extra = muc_load_u16(entry + 30);
        if (name + extra + muc_load_u16(entry + 32) > left - ENTRY)
            return MUC_OK;
        headers[i] = muc_load_u32(entry + 42);
        if (headers[i] == UINT32_MAX &&
            !long_offset(entry, entry + ENTRY + name, extra, &headers[i]))
            return MUC_OK;
        at += ENTRY + name + extra + muc_load_u16(entry + 32);
    }
    z->headers = headers;
    z->count = count;
    return MUC_OK;
}

/* the bytes of a stored member behind its own header; NULL: they are not where they should be */
static const uint8_t *bytes_of(const muc_zip *z, const zip_stat_t *member)
{
    uint64_t at = member->index < z->count ? z->headers[member->index] : UINT64_MAX;
    const uint8_t *header;

    if (member->comp_method != ZIP_CM_STORE || at > z->bytes.size ||
        z->bytes.size - at < LOCAL_HEADER)
        return NULL;
    header = z->bytes.data + at;
    if (memcmp(header, "PK\3\4", 4) != 0)
        return NULL;
    at += LOCAL_HEADER + (uint64_t)muc_load_u16(header + 26) + muc_load_u16(header + 28);
    return at <= z->bytes.size && member->size <= z->bytes.size - at ? z->bytes.data + at : NULL;
}

muc_status muc_zip_borrow(muc_zip *z, const char *name, muc_bytes *out)
{
    zip_stat_t member;

    MUC_TRY(find_member(z, name, &member));
    if (!z->looked)
        MUC_TRY(find_headers(z));
    out->data = bytes_of(z, &member);
    if (!out->data)
        return muc_zip_read(z, name, out);
    out->size = (size_t)member.size;
    return muc_arena_format(z->ctx, z->arena, &out->name, "%s(%s)", z->bytes.name, name);
}
