/* zip.c - libzip over a file in memory; no member may be larger than its archive allows. */
#include "formats/zip.h"

#include <inttypes.h>
#include <string.h>
#include <zip.h>

enum { FREE_BYTES = 64 << 20, BYTES_PER_BYTE = 100 };
enum { LOCAL_HEADER = 30 };

struct muc_zip {
    muc_context *ctx;
    muc_arena *arena;
    muc_bytes bytes;
    zip_t *zip;
    uint64_t left; /* bytes that members may still take */
};

bool muc_zip_first(muc_bytes bytes, muc_string_view *name)
{
    if (bytes.size < LOCAL_HEADER || memcmp(bytes.data, "PK\3\4", 4) != 0)
        return false;
    name->data = (const char *)bytes.data + LOCAL_HEADER;
    name->size = muc_load_u16(bytes.data + 26);
    return name->size <= bytes.size - LOCAL_HEADER;
}

static muc_status fail_zip(muc_context *ctx, muc_status status, const char *path,
                           zip_error_t *error)
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
    *z = (muc_zip){ ctx, arena, bytes, NULL, FREE_BYTES + (uint64_t)BYTES_PER_BYTE * bytes.size };
    zip_error_init(&error);
    source = zip_source_buffer_create(bytes.data, bytes.size, 0, &error);
    if (!source)
        return fail_zip(ctx, MUC_NOMEM, bytes.name, &error);
    z->zip = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (!z->zip) {
        zip_source_free(source);
        return fail_zip(ctx, MUC_MALFORMED, bytes.name, &error);
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

muc_status muc_zip_read(muc_zip *z, const char *name, muc_bytes *out)
{
    zip_stat_t member;
    uint8_t *bytes;

    zip_stat_init(&member);
    if (zip_stat(z->zip, name, 0, &member) != 0 ||
        (~member.valid & (ZIP_STAT_INDEX | ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD)) != 0)
        return muc_fail(z->ctx, MUC_MALFORMED, z->bytes.name, MUC_NO_OFFSET,
                        "the archive has no member '%.200s'", name);
    if (member.encryption_method != ZIP_EM_NONE ||
        (member.comp_method != ZIP_CM_STORE && member.comp_method != ZIP_CM_DEFLATE))
        return muc_fail(z->ctx, MUC_UNSUPPORTED, z->bytes.name, MUC_NO_OFFSET,
                        "member '%.200s' is encrypted, or compressed by method %u", name,
                        member.comp_method);
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
