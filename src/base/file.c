/* file.c - maps files for reading, and writes them by way of a temporary file, fsync and a rename.
 */
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_system.h"
#include "base/locale.h"
#include "base/temporary.h"
#include "base/text.h"

struct muc_output {
    muc_context *ctx;
    FILE *stream;
    char *path, *temporary;
    bool special;           /* path is written itself */
    const uint8_t *mapping; /* what it holds already, or NULL */
    size_t written;         /* bytes; a file that was mapped may be longer until it is settled */
};

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *path = muc_calloc(size, 1);

    if (path)
        memcpy(path, text, size);
    return path;
}

static muc_status fail_errno(muc_context *ctx, const char *path, const char *what)
{
    return muc_fail(ctx, MUC_IO, path, MUC_NO_OFFSET, "%s: %s", what, strerror(errno));
}

static muc_status map(muc_context *ctx, int fd, bool is_input, muc_file *file)
{
    muc_file_info info;

    if (!muc_info_of_open(fd, &info))
        return fail_errno(ctx, file->path, "cannot stat");
    if (info.kind != MUC_PATH_FILE)
        return muc_fail(ctx, MUC_IO, file->path, MUC_NO_OFFSET,
                        info.kind == MUC_PATH_FOLDER ? "is a folder, not a regular file"
                                                     : "not a regular file");
    if (is_input)
        MUC_TRY(muc_file_note(ctx, file->path, &info, false));
    file->bytes.name = file->path;
    file->bytes.size = (size_t)info.bytes;
    file->bytes.data = (const uint8_t *)"";
    if (info.bytes == 0)
        return MUC_OK;
    file->mapping = muc_map(fd, file->bytes.size);
    if (!file->mapping)
        return fail_errno(ctx, file->path, "cannot map");
    file->bytes.data = file->mapping;
    return MUC_OK;
}

/* takes ownership of fd (which may be -1, errno telling why) and path */
static muc_status open_fd(muc_context *ctx, int fd, char *path, bool is_input, muc_file *out)
{
    muc_status status;

    memset(out, 0, sizeof(*out));
    out->path = path;
    status = fd < 0 ? fail_errno(ctx, path, "cannot open") : map(ctx, fd, is_input, out);
    if (fd >= 0)
        close(fd);
    if (status != MUC_OK)
        muc_file_close(out);
    return status;
}

static muc_status open_path(muc_context *ctx, const char *path, bool is_input, muc_file *out)
{
    char *name = copy(path);

    memset(out, 0, sizeof(*out));
    if (!name)
        return muc_fail_nomem(ctx, path, strlen(path));
    return open_fd(ctx, muc_open_to_read(path), name, is_input, out);
}

muc_status muc_file_open(muc_context *ctx, const char *path, muc_file *out)
{
    return open_path(ctx, path, true, out);
}

muc_status muc_file_open_own(muc_context *ctx, const char *path, muc_file *out)
{
    return open_path(ctx, path, false, out);
}

static bool has_parent_step(const char *path)
{
    for (const char *p = path; *p; p += strcspn(p, "/"), p += *p == '/')
        if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || p[2] == '\0'))
            return true;
    return false;
}

/* whether real, a path without links, is or lies in the folder (or, file: beside the file) named so
 */
static bool lies_in(const char *real, const char *name, bool file)
{
    char *folder = muc_real_path(name);
    size_t length = folder ? strlen(folder) : 0;
    bool inside;

    while (file && length > 0 && folder[length - 1] != '/')
        length--;
    if (length > 0 && folder[length - 1] == '/')
        length--;
    inside = folder && strncmp(real, folder, length) == 0 &&
             (real[length] == '/' || real[length] == '\0');
    free(folder);
    return inside;
}

static muc_status check_links(muc_context *ctx, const char *dir, const char *owner,
                              const char *path)
{
    char *real = muc_real_path(path);
    muc_status status = MUC_OK;

    if (!real)
        return fail_errno(ctx, path, "cannot open");
    if (!lies_in(real, dir, false) && !lies_in(real, owner, true))
        status = muc_fail(ctx, MUC_MALFORMED, path, MUC_NO_OFFSET,
                          "is a link that leads out of the model's folder, to '%s'; copy the file "
                          "into the folder",
                          real);
    free(real);
    return status;
}

muc_status muc_file_open_beneath(muc_context *ctx, const char *dir, const char *path,
                                 const char *owner, muc_file *out)
{
    const char *separator = dir[0] && dir[strlen(dir) - 1] == '/' ? "" : "/";
    muc_text name = { 0 };
    muc_status status;

    memset(out, 0, sizeof(*out));
    if (path[0] == '\0' || path[0] == '/' || has_parent_step(path) || !muc_is_common_name(path))
        return muc_fail(ctx, MUC_MALFORMED, dir, MUC_NO_OFFSET,
                        "refers to '%s', which is not inside the model's folder", path);
    muc_text_add(&name, "%s%s%s", dir, separator, path);
    status = muc_text_status(ctx, &name);
    if (status == MUC_OK && owner)
        status = check_links(ctx, dir, owner, name.data);
    if (status == MUC_OK)
        status = muc_file_open(ctx, name.data, out);
    muc_text_free(&name);
    return status;
}

void muc_file_close(muc_file *file)
{
    if (file->mapping)
        muc_unmap(file->mapping, file->bytes.size);
    free(file->path);
    memset(file, 0, sizeof(*file));
}

void muc_file_rest(const muc_file *file, const uint8_t *data, size_t bytes)
{
    uintptr_t start = (uintptr_t)file->mapping, first = (uintptr_t)data;

    if (file->mapping && first >= start && first + bytes <= start + file->bytes.size)
        muc_large_rest(data, bytes);
}

bool muc_is_plain_name(const char *name)
{
    return !strchr(name, '/') && muc_is_common_name(name);
}

bool muc_path_is_dir(const char *path)
{
    muc_file_info info;

    return muc_info_of_path(path, &info) && info.kind == MUC_PATH_FOLDER;
}

bool muc_path_exists(const char *path)
{
    muc_file_info info;

    return muc_info_of_path(path, &info);
}

/* ---- writing ---- */

muc_status muc_input_protect(muc_context *ctx, const char *path)
{
    MUC_IN_C_LOCALE;
    muc_file_info info;

    if (!muc_info_of_path(path, &info) || info.kind != MUC_PATH_FILE)
        return MUC_OK;
    return muc_file_note(ctx, path, &info, false);
}

static muc_status check_parent(muc_context *ctx, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *parent = copy(slash ? path : ".");
    muc_status status = MUC_OK;

    if (!parent)
        return muc_fail_nomem(ctx, path, strlen(path));
    if (slash)
        parent[slash == path ? 1 : slash - path] = '\0';
    if (!muc_path_exists(parent))
        status = muc_fail(ctx, MUC_IO, path, MUC_NO_OFFSET,
                          "cannot create: there is no folder '%s'; make it first", parent);
    else if (!muc_may_write_in(parent))
        status = fail_errno(ctx, path, "cannot create");
    free(parent);
    return status;
}

muc_status muc_output_precheck(muc_context *ctx, const char *path)
{
    muc_file_info info;
    const char *input;

    if (!muc_info_of_path(path, &info))
        return check_parent(ctx, path);
    if (info.kind == MUC_PATH_FOLDER)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET, "is a folder; name a file to write");
    if (info.kind != MUC_PATH_FILE)
        return MUC_OK;
    input = muc_input_find(ctx, &info);
    if (input)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "would overwrite the input %s; write to another file", input);
    return check_parent(ctx, path);
}

static void output_free(muc_output *output)
{
    if (output->stream)
        fclose(output->stream);
    free(output->path);
    free(output->temporary);
    free(output);
}

/* a device or a pipe, which nothing may replace, is written as it is */
static bool is_special(const char *path)
{
    muc_file_info info;

    return muc_info_of_path(path, &info) && info.kind == MUC_PATH_OTHER;
}

/* a temporary file beside the path; -1: errno says why there is none */
static int create_temporary(muc_output *output)
{
    int fd = muc_temporary_file(output->temporary);

    if (fd >= 0)
        muc_give_usual_rights(output->temporary, false);
    return fd;
}

static void remove_temporary(const muc_output *output)
{
    if (output->special)
        return;
    muc_remove(output->temporary);
    muc_temporary_forget(output->temporary);
}

muc_status muc_output_begin(muc_context *ctx, const char *path, muc_output **out)
{
    muc_output *output = muc_calloc(1, sizeof(*output));
    size_t size = strlen(path) + sizeof(".XXXXXX");
    muc_status status = muc_output_precheck(ctx, path);
    int fd;

    if (!output)
        return muc_fail_nomem(ctx, path, sizeof(*output));
    if (status != MUC_OK) {
        free(output);
        return status;
    }
    output->ctx = ctx;
    output->path = copy(path);
    output->temporary = muc_calloc(size, 1);
    if (!output->path || !output->temporary) {
        output_free(output);
        return muc_fail_nomem(ctx, path, size);
    }
    snprintf(output->temporary, size, "%s.XXXXXX", path);
    output->special = is_special(path);
    fd = output->special ? muc_open_to_write(path) : create_temporary(output);
    if (fd >= 0)
        output->stream = fdopen(fd, "wb");
    if (!output->stream) {
        status = fail_errno(ctx, path, "cannot create");

        if (fd >= 0) {
            close(fd);
            remove_temporary(output);
        }
        output_free(output);
        return status;
    }
    *out = output;
    return MUC_OK;
}

muc_status muc_output_write(muc_output *output, const void *data, size_t size)
{
    if (size != 0 && data != output->mapping && fwrite(data, 1, size, output->stream) != size)
        return fail_errno(output->ctx, output->path, "cannot write");
    output->written += size;
    return MUC_OK;
}

bool muc_output_map(muc_output *output, size_t bytes, muc_large_file *out)
{
    bool mapped = !output->special && muc_large_map(fileno(output->stream), bytes, out);

    output->mapping = mapped ? out->data : NULL;
    return mapped;
}

void muc_output_hasten(const muc_output *output)
{
    muc_begin_flush(fileno(output->stream));
}

/* on the disk, and known as this context's own */
static muc_status settle(const muc_output *output)
{
    int fd = fileno(output->stream);
    muc_file_info info;
    bool written = fflush(output->stream) == 0 && !ferror(output->stream) &&
                   (output->special || ftruncate(fd, (off_t)output->written) == 0);

    if (!written || (!output->special && (!muc_flush_to_disk(fd) || !muc_info_of_open(fd, &info))))
        return fail_errno(output->ctx, output->path, "cannot write");
    return output->special ? MUC_OK : muc_file_note(output->ctx, output->path, &info, true);
}

muc_status muc_output_commit(muc_output *output)
{
    muc_status status = settle(output);

    if ((fclose(output->stream) != 0 ||
         (status == MUC_OK && !output->special && !muc_rename(output->temporary, output->path))) &&
        status == MUC_OK)
        status = fail_errno(output->ctx, output->path, "cannot write");
    output->stream = NULL;
    if (status != MUC_OK)
        remove_temporary(output);
    else if (!output->special)
        muc_temporary_forget(output->temporary);
    output_free(output);
    return status;
}

void muc_output_discard(muc_output *output)
{
    remove_temporary(output);
    output_free(output);
}

muc_status muc_file_write(muc_context *ctx, const char *path, const void *data, size_t size)
{
    muc_output *output;
    muc_status status;

    MUC_TRY(muc_output_begin(ctx, path, &output));
    status = muc_output_write(output, data, size);
    if (status == MUC_OK)
        return muc_output_commit(output);
    muc_output_discard(output);
    return status;
}

muc_status muc_make_dir(muc_context *ctx, const char *path)
{
    if (muc_make_folder(path) || (errno == EEXIST && muc_path_is_dir(path)))
        return MUC_OK;
    return fail_errno(ctx, path, "cannot make the folder");
}

/* the part of a path behind its last slash but those at its end, and its length */
static const char *last_part(const char *path, size_t *length)
{
    const char *end = path + strlen(path), *begin;

    while (end > path && end[-1] == '/')
        end--;
    for (begin = end; begin > path && begin[-1] != '/';)
        begin--;
    *length = (size_t)(end - begin);
    return begin;
}

muc_status muc_name_of_path(muc_context *ctx, muc_arena *arena, const char *path, const char **out)
{
    size_t length;
    const char *name = last_part(path, &length), *dot;
    char *real = strspn(name, ".") == length ? muc_real_path(path) : NULL; /* ".", "..", "/" */
    muc_status status;

    if (real)
        name = last_part(real, &length);
    dot = name + length;
    while (dot > name && *dot != '.')
        dot--;
    if (dot > name && !muc_path_is_dir(path))
        length = (size_t)(dot - name);
    status = muc_arena_string(ctx, arena, name, length, out);
    free(real);
    return status;
}

/* ---- folders ---- */

typedef struct name_list {
    muc_context *ctx;
    muc_arena *arena;
    const char **names;
    size_t count, capacity;
    muc_status status;
} name_list;

static bool add_name(void *arg, const char *name)
{
    name_list *list = arg;

    list->status =
        MUC_ARENA_GROW(list->ctx, list->arena, list->count + 1, &list->capacity, &list->names);
    if (list->status == MUC_OK)
        list->status = muc_arena_string(list->ctx, list->arena, name, strlen(name),
                                        &list->names[list->count++]);
    return list->status == MUC_OK;
}

int muc_compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

muc_status muc_folder_names(muc_context *ctx, muc_arena *arena, const char *path,
                            const char *const **out, size_t *count)
{
    name_list list = { .ctx = ctx, .arena = arena };

    if (!muc_visit_names(path, add_name, &list))
        return list.status == MUC_OK ? fail_errno(ctx, path, "cannot list the folder")
                                     : list.status;
    if (list.count)
        qsort(list.names, list.count, sizeof(*list.names), muc_compare_names);
    *out = list.names;
    *count = list.count;
    return MUC_OK;
}
