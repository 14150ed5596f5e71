/* output_folder.c - writes a folder under a temporary name, and puts it in place in one exchange.
 */
#include "base/output_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/file_system.h"
#include "base/temporary.h"
#include "base/text.h"

#define LIST "FILES"
#define LINE "%08x  %s\n" /* CRC-32 and name */

enum { CRC_CHARACTERS = 8, NAME_AT = CRC_CHARACTERS + 2 };

struct muc_folder {
    muc_context *ctx;
    muc_arena arena;
    const char *path;
    char *temporary;
    muc_text list;
};

static muc_status fail_errno(muc_context *ctx, const char *path, const char *what)
{
    return muc_fail(ctx, MUC_IO, path, MUC_NO_OFFSET, "%s: %s", what, strerror(errno));
}

/* ---- the list ---- */

/* the next line's name, or NULL; *at: moves on, from the list's begin */
static const char *next_name(const char **at, size_t *length)
{
    while (**at) {
        const char *line = *at;
        size_t size = strcspn(line, "\n");

        *at += size + (line[size] == '\n');
        if (size > NAME_AT) {
            *length = size - NAME_AT;
            return line + NAME_AT;
        }
    }
    return NULL;
}

static const char *find_line(const char *list, const char *name)
{
    size_t length;

    for (const char *at = list, *line; (line = next_name(&at, &length));)
        if (strlen(name) == length && memcmp(line, name, length) == 0)
            return line - NAME_AT;
    return NULL;
}

static bool has_listed_file(const char *list, const char *folder)
{
    size_t size = strlen(folder), length;

    for (const char *at = list, *name; (name = next_name(&at, &length));)
        if (length > size && memcmp(name, folder, size) == 0 && name[size] == '/')
            return true;
    return false;
}

/* "" where there is none */
static muc_status read_list(muc_context *ctx, muc_arena *arena, const char *folder, bool needed,
                            const char **out)
{
    muc_status status;
    const char *path;
    muc_file file;

    *out = "";
    MUC_TRY(muc_arena_format(ctx, arena, &path, "%s/" LIST, folder));
    if (!needed && !muc_path_exists(path))
        return MUC_OK;
    MUC_TRY(muc_file_open_own(ctx, path, &file));
    status = muc_arena_string(ctx, arena, (const char *)file.bytes.data, file.bytes.size, out);
    muc_file_close(&file);
    return status;
}

muc_status muc_folder_find(muc_context *ctx, const char *path, const char *end, muc_arena *arena,
                           const char **out)
{
    size_t size = strlen(end), length;
    const char *list, *name;

    *out = NULL;
    MUC_TRY(read_list(ctx, arena, path, true, &list));
    while ((name = next_name(&list, &length)))
        if (length > size && memcmp(name + length - size, end, size) == 0)
            return muc_arena_format(ctx, arena, out, "%s/%.*s", path, (int)length, name);
    return MUC_OK;
}

muc_status muc_folder_protect(muc_context *ctx, const char *path)
{
    muc_arena arena = { 0 };
    const char *list, *name, *file;
    size_t length;
    muc_status status = read_list(ctx, &arena, path, false, &list);

    while (status == MUC_OK && (name = next_name(&list, &length))) {
        status = muc_arena_format(ctx, &arena, &file, "%s/%.*s", path, (int)length, name);
        if (status == MUC_OK)
            status = muc_input_protect(ctx, file);
    }
    muc_arena_free(&arena);
    return status;
}

/* ---- what lies in a folder ---- */

typedef struct search {
    muc_context *ctx;
    const char *list; /* of an earlier commit */
    size_t root;      /* characters of the folder's path and the '/' after it */
    muc_status status;
} search;

static muc_status fail_foreign(muc_context *ctx, const char *path)
{
    return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                    "would be replaced, and no earlier run wrote it; move it, or write to another "
                    "folder");
}

static muc_status check_content(muc_context *ctx, const char *path, const char *line)
{
    unsigned expected = (unsigned)strtoul(line, NULL, 16), found;
    muc_file file;

    MUC_TRY(muc_file_open_own(ctx, path, &file));
    found = muc_crc32(0, file.bytes.data, file.bytes.size);
    muc_file_close(&file);
    if (found == expected)
        return MUC_OK;
    return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                    "was edited since muc wrote it; --force replaces the folder, or write to "
                    "another");
}

static muc_status check_file(muc_context *ctx, const char *list, const char *path, const char *name,
                             const muc_file_info *info)
{
    const char *input = muc_input_find(ctx, info);
    const char *line = find_line(list, name);

    if (input)
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "would be replaced and is the input %s; write to another folder", input);
    if (!line)
        return fail_foreign(ctx, path);
    return muc_context_force(ctx) ? MUC_OK : check_content(ctx, path, line);
}

static muc_status check_entry(const search *s, const char *path, const muc_file_info *info)
{
    const char *name = path + s->root;

    if (info->kind == MUC_PATH_FOLDER)
        return has_listed_file(s->list, name) ? MUC_OK : fail_foreign(s->ctx, path);
    if (info->kind != MUC_PATH_FILE)
        return fail_foreign(s->ctx, path);
    return strcmp(name, LIST) == 0 ? MUC_OK : check_file(s->ctx, s->list, path, name, info);
}

static bool visit(void *arg, const char *path, const muc_file_info *info)
{
    search *s = arg;

    s->status = check_entry(s, path, info);
    return s->status == MUC_OK;
}

static muc_status check_folder(muc_context *ctx, muc_arena *arena, const char *path)
{
    search s = { .ctx = ctx, .root = strlen(path) + 1 };

    if (!muc_path_is_dir(path))
        return muc_fail(ctx, MUC_USAGE, path, MUC_NO_OFFSET,
                        "is there already, and no folder; name a folder to write");
    MUC_TRY(read_list(ctx, arena, path, false, &s.list));
    if (!muc_visit_tree(path, visit, &s) && s.status == MUC_OK)
        return fail_errno(ctx, path, "cannot be read");
    return s.status;
}

/* where a folder of this path lies: links followed, no '/' at the end */
static muc_status place_of(muc_context *ctx, muc_arena *arena, const char *path, const char **out)
{
    size_t length = strlen(path);
    char *real = muc_real_path(path);
    muc_status status;

    while (length > 1 && path[length - 1] == '/')
        length--;
    status = real ? muc_arena_string(ctx, arena, real, strlen(real), out)
                  : muc_arena_string(ctx, arena, path, length, out);
    free(real);
    return status;
}

static muc_status check_place(muc_context *ctx, muc_arena *arena, const char *path)
{
    return muc_path_exists(path) ? check_folder(ctx, arena, path) : muc_output_precheck(ctx, path);
}

muc_status muc_folder_precheck(muc_context *ctx, const char *path)
{
    muc_arena arena = { 0 };
    const char *place;
    muc_status status = place_of(ctx, &arena, path, &place);

    if (status == MUC_OK)
        status = check_place(ctx, &arena, place);
    muc_arena_free(&arena);
    return status;
}

static muc_status check_names(muc_context *ctx, muc_arena *arena, const char *folder,
                              const char *const *names, size_t count)
{
    const char *list, *path;
    muc_file_info info;

    MUC_TRY(read_list(ctx, arena, folder, false, &list));
    for (size_t i = 0; i < count; i++) {
        MUC_TRY(muc_arena_format(ctx, arena, &path, "%s/%s", folder, names[i]));
        if (muc_info_of_path(path, &info))
            MUC_TRY(check_file(ctx, list, path, names[i], &info));
    }
    return MUC_OK;
}

muc_status muc_folder_precheck_files(muc_context *ctx, const char *path, const char *const *names,
                                     size_t count)
{
    muc_arena arena = { 0 };
    muc_status status = muc_path_is_dir(path) ? check_names(ctx, &arena, path, names, count)
                                              : muc_folder_precheck(ctx, path);

    muc_arena_free(&arena);
    return status;
}

/* ---- writing ---- */

static void folder_free(muc_folder *folder)
{
    muc_text_free(&folder->list);
    muc_arena_free(&folder->arena);
    free(folder);
}

static muc_status begin(muc_folder *folder, const char *path)
{
    const char *temporary;

    MUC_TRY(place_of(folder->ctx, &folder->arena, path, &folder->path));
    MUC_TRY(check_place(folder->ctx, &folder->arena, folder->path));
    MUC_TRY(muc_arena_format(folder->ctx, &folder->arena, &temporary, "%s.XXXXXX", folder->path));
    folder->temporary = (char *)temporary;
    if (!muc_temporary_folder(folder->temporary))
        return fail_errno(folder->ctx, folder->path, "cannot create");
    muc_give_usual_rights(folder->temporary, true);
    return MUC_OK;
}

muc_status muc_folder_begin(muc_context *ctx, const char *path, muc_folder **out)
{
    muc_folder *folder = muc_calloc(1, sizeof(*folder));
    muc_status status;

    if (!folder)
        return muc_fail_nomem(ctx, path, sizeof(*folder));
    folder->ctx = ctx;
    status = begin(folder, path);
    if (status == MUC_OK)
        *out = folder;
    else
        folder_free(folder);
    return status;
}

muc_status muc_folder_write(muc_folder *folder, const char *name, const void *data, size_t size)
{
    const char *path;

    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        MUC_TRY(muc_arena_format(folder->ctx, &folder->arena, &path, "%s/%.*s", folder->temporary,
                                 (int)(slash - name), name));
        MUC_TRY(muc_make_dir(folder->ctx, path));
    }
    muc_text_add(&folder->list, LINE, muc_crc32(0, data, size), name);
    MUC_TRY(muc_arena_format(folder->ctx, &folder->arena, &path, "%s/%s", folder->temporary, name));
    return muc_file_write(folder->ctx, path, data, size);
}

muc_status muc_folder_write_text(muc_folder *folder, const char *name, muc_status status,
                                 muc_text *text)
{
    if (status == MUC_OK)
        status = muc_text_status(folder->ctx, text);
    if (status == MUC_OK)
        status = muc_folder_write(folder, name, text->data ? text->data : "", text->size);
    muc_text_free(text);
    return status;
}

static muc_status write_pieces(muc_output *output, muc_folder_source *source, void *arg,
                               uint32_t *crc)
{
    const void *data;
    size_t size;

    *crc = 0;
    for (;;) {
        MUC_TRY(source(arg, &data, &size));
        if (size == 0)
            return MUC_OK;
        *crc = muc_crc32(*crc, data, size);
        MUC_TRY(muc_output_write(output, data, size));
    }
}

muc_status muc_folder_write_pieces(muc_folder *folder, const char *name, muc_folder_source *source,
                                   void *arg)
{
    muc_output *output;
    muc_status status;
    const char *path;
    uint32_t crc;

    MUC_TRY(muc_arena_format(folder->ctx, &folder->arena, &path, "%s/%s", folder->temporary, name));
    MUC_TRY(muc_output_begin(folder->ctx, path, &output));
    status = write_pieces(output, source, arg, &crc);
    if (status != MUC_OK) {
        muc_output_discard(output);
        return status;
    }
    muc_text_add(&folder->list, LINE, crc, name);
    return muc_output_commit(output);
}

static muc_status write_list(muc_context *ctx, muc_arena *arena, const char *folder,
                             const muc_text *list)
{
    const char *path;

    MUC_TRY(muc_text_status(ctx, list));
    MUC_TRY(muc_arena_format(ctx, arena, &path, "%s/" LIST, folder));
    return muc_file_write(ctx, path, list->data ? list->data : "", list->size);
}

static muc_status add_file(muc_context *ctx, muc_arena *arena, const char *folder, const char *name,
                           muc_text *list)
{
    const char *path;
    muc_file file;

    MUC_TRY(muc_arena_format(ctx, arena, &path, "%s/%s", folder, name));
    if (!muc_path_exists(path))
        return MUC_OK;
    MUC_TRY(muc_file_open_own(ctx, path, &file));
    muc_text_add(list, LINE, muc_crc32(0, file.bytes.data, file.bytes.size), name);
    muc_file_close(&file);
    return MUC_OK;
}

muc_status muc_folder_list(muc_context *ctx, const char *path, const char *const *names,
                           size_t count)
{
    muc_status status = MUC_OK;
    muc_arena arena = { 0 };
    muc_text list = { 0 };

    for (size_t i = 0; i < count && status == MUC_OK; i++)
        status = add_file(ctx, &arena, path, names[i], &list);
    if (status == MUC_OK)
        status = write_list(ctx, &arena, path, &list);
    muc_text_free(&list);
    muc_arena_free(&arena);
    return status;
}

/* the folder, or what was there before it, is left to be removed */
static muc_status put_in_place(muc_folder *folder)
{
    muc_context *ctx = folder->ctx;

    if (!muc_path_exists(folder->path))
        return muc_rename(folder->temporary, folder->path)
                   ? MUC_OK
                   : fail_errno(ctx, folder->path, "cannot write");
    MUC_TRY(check_folder(ctx, &folder->arena, folder->path)); /* still */
    return muc_temporary_exchange(folder->temporary, folder->path)
               ? MUC_OK
               : fail_errno(ctx, folder->path, "cannot replace");
}

muc_status muc_folder_commit(muc_folder *folder, muc_folder_check *check, void *arg)
{
    muc_context *ctx = folder->ctx;
    muc_status status = write_list(ctx, &folder->arena, folder->temporary, &folder->list);

    if (status == MUC_OK && check)
        status = check(ctx, folder->temporary, arg);
    if (status == MUC_OK)
        status = put_in_place(folder);
    muc_temporary_remove(folder->temporary);
    folder_free(folder);
    return status;
}

void muc_folder_discard(muc_folder *folder)
{
    muc_temporary_remove(folder->temporary);
    folder_free(folder);
}

muc_status muc_folder_end(muc_folder *folder, muc_status status, muc_folder_check *check, void *arg)
{
    if (status == MUC_OK)
        return muc_folder_commit(folder, check, arg);
    muc_folder_discard(folder);
    return status;
}
