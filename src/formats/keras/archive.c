/* archive.c - libzip over a file in memory; no member may be larger than its archive allows. */
#include "formats/keras/archive.h"

#include <inttypes.h>
#include <string.h>
#include <zip.h>

enum { FREE_BYTES = 64 << 20, BYTES_PER_BYTE = 100 }; /* as in npz.c */
enum { LOCAL_HEADER = 30 };

bool muc_keras_archive_probe(muc_bytes bytes)
{
    static const char *const members[] = { "metadata.json", "config.json", "model.weights.h5" };

    if (bytes.size < LOCAL_HEADER || memcmp(bytes.data, "PK\3\4", 4) != 0)
        return false;
    for (size_t i = 0; i < MUC_COUNT(members); i++) {
        size_t length = strlen(members[i]);

        if (muc_load_u16(bytes.data + 26) == length && bytes.size - LOCAL_HEADER >= length &&
            memcmp(bytes.data + LOCAL_HEADER, members[i], length) == 0)
            return true;
    }
    return false;
}

static muc_status fail_zip(muc_context *ctx, muc_status status, const char *path,
                           zip_error_t *error)
{
    muc_fail(ctx, status, path, MUC_NO_OFFSET, "%s", zip_error_strerror(error));
    zip_error_fini(error);
    return status;
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

static muc_status read_member(muc_context *ctx, muc_arena *arena, muc_bytes archive, zip_t *zip,
                              const char *name, muc_bytes *out)
{
    zip_stat_t member;
    uint8_t *bytes;

    zip_stat_init(&member);
    if (zip_stat(zip, name, 0, &member) != 0 ||
        (~member.valid & (ZIP_STAT_INDEX | ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD)) != 0)
        return muc_fail(ctx, MUC_MALFORMED, archive.name, MUC_NO_OFFSET,
                        "a .keras file without its member '%s'", name);
    if (member.encryption_method != ZIP_EM_NONE ||
        (member.comp_method != ZIP_CM_STORE && member.comp_method != ZIP_CM_DEFLATE))
        return muc_fail(ctx, MUC_UNSUPPORTED, archive.name, MUC_NO_OFFSET,
                        "member '%s' is encrypted, or compressed by method %u", name,
                        member.comp_method);
    if (member.size > FREE_BYTES + (uint64_t)BYTES_PER_BYTE * archive.size)
        return muc_fail(ctx, MUC_MALFORMED, archive.name, MUC_NO_OFFSET,
                        "member '%s' inflates to %" PRIu64
                        " bytes, out of proportion to the archive",
                        name, member.size);
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, (size_t)member.size + 1, &bytes));
    if (!inflate(zip, &member, bytes))
        return muc_fail(ctx, MUC_MALFORMED, archive.name, MUC_NO_OFFSET, "member '%s' is damaged",
                        name);
    out->data = bytes;
    out->size = (size_t)member.size;
    return muc_arena_format(ctx, arena, &out->name, "%s(%s)", archive.name, name);
}

muc_status muc_keras_archive_read(muc_context *ctx, muc_arena *arena, muc_bytes bytes,
                                  muc_keras_archive *out)
{
    zip_error_t error;
    zip_source_t *source;
    zip_t *zip;
    muc_status status;

    zip_error_init(&error);
    source = zip_source_buffer_create(bytes.data, bytes.size, 0, &error);
    if (!source)
        return fail_zip(ctx, MUC_NOMEM, bytes.name, &error);
    zip = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (!zip) {
        zip_source_free(source);
        return fail_zip(ctx, MUC_MALFORMED, bytes.name, &error);
    }
    zip_error_fini(&error);
    status = read_member(ctx, arena, bytes, zip, "config.json", &out->config);
    if (status == MUC_OK)
        status = read_member(ctx, arena, bytes, zip, "model.weights.h5", &out->weights);
    zip_discard(zip);
    return status;
}
