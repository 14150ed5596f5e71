/* npz.c - reads and writes .npz files: arrays as members of a zip file, which zip.h reads and
 * libzip writes. */
#include "formats/npy/npz.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "formats/npy/npy.h"
#include "formats/zip.h"

enum { MAX_MEMBERS = 4096 };
enum { FIRST_OF_1980 = 1 << 5 | 1 }; /* the earliest date that a zip can hold */
static const char suffix[] = ".npy";

/* the name of a member without its ".npy" */
static muc_status array_name(muc_context *ctx, muc_arena *arena, const char *path,
                             const char *member, const char **out)
{
    size_t length = strlen(member), end = sizeof(suffix) - 1;

    if (length <= end || length > MUC_MAX_STRING || strcmp(member + length - end, suffix) != 0)
        return muc_fail(ctx, MUC_UNSUPPORTED, path, MUC_NO_OFFSET,
                        "member '%.100s' is not a .npy file", member);
    return muc_arena_string(ctx, arena, member, length - end, out);
}

static muc_status check_names(muc_context *ctx, const char *path, const muc_tensor_view *views,
                              size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(views[i].name, views[j].name) == 0)
                return muc_fail(ctx, MUC_MALFORMED, path, MUC_NO_OFFSET,
                                "two arrays are named '%s'", views[i].name);
    return MUC_OK;
}

static muc_status read_all(muc_context *ctx, muc_arena *arena, const char *path, muc_zip *zip,
                           muc_tensor_view **out, size_t *count)
{
    muc_bytes bytes;
    const char *member;

    *count = 0;
    while (muc_zip_name(zip, *count))
        ++*count;
    if (*count > MAX_MEMBERS)
        return muc_fail(ctx, MUC_UNSUPPORTED, path, MUC_NO_OFFSET, "%zu members, at most %d",
                        *count, MAX_MEMBERS);
    MUC_TRY(MUC_ARENA_NEW(ctx, arena, *count, out));
    for (size_t i = 0; i < *count; i++)
        MUC_TRY(array_name(ctx, arena, path, muc_zip_name(zip, i), &(*out)[i].name));
    MUC_TRY(check_names(ctx, path, *out, *count)); /* members are read by name */
    for (size_t i = 0; i < *count; i++) {
        const char *name = (*out)[i].name;

        member = muc_zip_name(zip, i);
        MUC_TRY(muc_zip_read(zip, member, &bytes));
        MUC_TRY(muc_arena_format(ctx, arena, &bytes.name, "%s(%s)", path, name));
        MUC_TRY(muc_npy_read_copy(ctx, arena, bytes, &(*out)[i]));
        (*out)[i].name = name;
    }
    return MUC_OK;
}

muc_status muc_npz_read(muc_context *ctx, muc_arena *arena, muc_bytes bytes, muc_tensor_view **out,
                        size_t *count)
{
    muc_status status;
    muc_zip *zip;

    if (bytes.size == 0) /* which libzip takes for an empty archive */
        return muc_fail(ctx, MUC_MALFORMED, bytes.name, 0, "the file is empty");
    MUC_TRY(muc_zip_open(ctx, arena, bytes, &zip));
    status = read_all(ctx, arena, bytes.name, zip, out, count);
    muc_zip_close(zip);
    return status;
}

/* ---- writing ---- */

typedef struct archive {
    muc_context *ctx;
    muc_arena *arena;
    zip_t *zip;
    const char *path;
} archive;

static muc_status add_member(archive *a, const muc_tensor_view *view)
{
    muc_text header = { 0 };
    uint8_t *copy;
    const char *name;
    zip_buffer_fragment_t parts[2];
    zip_source_t *source;
    zip_int64_t index;
    muc_status status = muc_npy_add_header(a->ctx, a->path, view, &header);

    if (status == MUC_OK)
        status = MUC_ARENA_NEW(a->ctx, a->arena, header.size, &copy);
    if (status == MUC_OK)
        memcpy(copy, header.data, header.size);
    parts[0] = (zip_buffer_fragment_t){ status == MUC_OK ? copy : NULL, header.size };
    muc_text_free(&header);
    MUC_TRY(status);
    MUC_TRY(muc_arena_format(a->ctx, a->arena, &name, "%s%s", view->name, suffix));
    /* libzip only reads it */
    parts[1] = (zip_buffer_fragment_t){ (uint8_t *)(uintptr_t)view->data, view->bytes };
    source = zip_source_buffer_fragment(a->zip, parts, view->bytes ? 2 : 1, 0);
    index = source ? zip_file_add(a->zip, name, source, ZIP_FL_ENC_UTF_8) : -1;
    if (index < 0 && source)
        zip_source_free(source);
    if (index < 0 || zip_set_file_compression(a->zip, (zip_uint64_t)index, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(a->zip, (zip_uint64_t)index, 0, FIRST_OF_1980, 0) != 0)
        return muc_fail(a->ctx, MUC_IO, a->path, MUC_NO_OFFSET, "array '%s': %s", view->name,
                        zip_strerror(a->zip));
    return MUC_OK;
}

static muc_status copy_out(archive *a, zip_source_t *source, muc_output *output)
{
    static const size_t chunk = 65536;
    zip_int64_t got;
    uint8_t *buffer;

    MUC_TRY(MUC_ARENA_NEW(a->ctx, a->arena, chunk, &buffer));
    while ((got = zip_source_read(source, buffer, chunk)) > 0)
        MUC_TRY(muc_output_write(output, buffer, (size_t)got));
    return got == 0 ? MUC_OK
                    : muc_fail(a->ctx, MUC_IO, a->path, MUC_NO_OFFSET, "the archive is lost");
}

static muc_status write_out(archive *a, zip_source_t *source)
{
    muc_output *output;
    muc_status status;

    MUC_TRY(muc_output_begin(a->ctx, a->path, &output));
    status = copy_out(a, source, output);
    if (status == MUC_OK)
        return muc_output_commit(output);
    muc_output_discard(output);
    return status;
}

/* takes ownership of the archive in a->zip, whose storage is source */
static muc_status fill(archive *a, zip_source_t *source, const muc_tensor_view *views, size_t count)
{
    muc_status status = check_names(a->ctx, a->path, views, count);

    for (size_t i = 0; i < count && status == MUC_OK; i++)
        status = add_member(a, &views[i]);
    if (status == MUC_OK && zip_close(a->zip) != 0)
        status = muc_fail(a->ctx, MUC_IO, a->path, MUC_NO_OFFSET, "%s", zip_strerror(a->zip));
    else if (status == MUC_OK)
        a->zip = NULL;
    if (a->zip)
        zip_discard(a->zip);
    MUC_TRY(status);
    if (zip_source_open(source) != 0)
        return muc_fail(a->ctx, MUC_IO, a->path, MUC_NO_OFFSET, "the archive is lost");
    status = write_out(a, source);
    zip_source_close(source);
    return status;
}

muc_status muc_npz_write(muc_context *ctx, const char *path, const muc_tensor_view *views,
                         size_t count)
{
    muc_arena arena = { 0 };
    archive a = { ctx, &arena, NULL, path };
    zip_error_t error;
    zip_source_t *source;
    muc_status status;

    zip_error_init(&error);
    source = zip_source_buffer_create(NULL, 0, 0, &error);
    if (!source)
        return muc_zip_fail(ctx, MUC_NOMEM, path, &error);
    zip_source_keep(source); /* the archive's own reference goes with it */
    a.zip = zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, &error);
    if (a.zip) {
        zip_error_fini(&error);
        status = fill(&a, source, views, count);
    } else {
        zip_source_free(source);
        status = muc_zip_fail(ctx, MUC_IO, path, &error);
    }
    zip_source_free(source);
    muc_arena_free(&arena);
    return status;
}
