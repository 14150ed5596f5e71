/* folder.c - a temporary folder, then two renames. */
#include "base/folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/temporary.h"
#include "base/text.h"

#define LIST "FILES"

enum { MOST_OPEN = 16 };

struct muc_folder {
    muc_context *ctx;
    muc_arena arena;
    const char *path;
    char *temporary;
    muc_text list; /* one name a line */
};

static muc_status fail_errno(muc_context *ctx, const char *path, const char *what)
{
    return muc_fail(ctx, MUC_IO, path, MUC_NO_OFFSET, "%s: %s", what, strerror(errno));
}

/* ---- what lies in a folder ---- */

/* nftw has no argument for its callback */
static _Thread_local struct {
    const char *list; /* of an earlier commit */
    size_t root;      /* characters of the folder's path and the '/' after it */
    bool foreign;
} search;

static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; (at = strstr(at, name)); at++)
        if ((at == list || at[-1] == '\n') && at[length] == '\n')
            return true;
    return false;
}

static int visit(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info;
    if (type != FTW_DP && place->level > 0 && strcmp(path + search.root, LIST) != 0 &&
        (type != FTW_F || !is_listed(search.list, path + search.root)))
        search.foreign = true;
    return search.foreign;
}

static muc_status may_replace(muc_folder *folder)
{
    muc_file list = { 0 };
    const char *names = "", *name;
    muc_status status = MUC_OK;

    MUC_TRY(muc_arena_format(folder->ctx, &folder->arena, &name, "%s/" LIST, folder->path));
    if (!muc_path_is_dir(folder->path))
        return muc_fail(folder->ctx, MUC_USAGE, folder->path, MUC_NO_OFFSET,
                        "is there already, and no folder");
    if (muc_path_exists(name)) {
        MUC_TRY(muc_file_open(folder->ctx, name, &list));
        status = muc_arena_string(folder->ctx, &folder->arena, (const char *)list.bytes.data,
                                  list.bytes.size, &names);
        muc_file_close(&list);
        MUC_TRY(status);
    }
    search.list = names;
    search.root = strlen(folder->path) + 1;
    search.foreign = false;
    if (nftw(folder->path, visit, MOST_OPEN, FTW_PHYS | FTW_DEPTH) < 0)
        return fail_errno(folder->ctx, folder->path, "cannot be read");
    if (search.foreign)
        return muc_fail(folder->ctx, MUC_USAGE, folder->path, MUC_NO_OFFSET,
                        "the folder holds files that no earlier run wrote; name another");
    return MUC_OK;
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
    size_t length = strlen(path);
    const char *temporary;
    mode_t mask = umask(0);

    umask(mask);
    while (length > 1 && path[length - 1] == '/')
        length--;
    MUC_TRY(muc_arena_string(folder->ctx, &folder->arena, path, length, &folder->path));
    if (muc_path_exists(folder->path))
        MUC_TRY(may_replace(folder));
    MUC_TRY(muc_arena_format(folder->ctx, &folder->arena, &temporary, "%s.XXXXXX", folder->path));
    folder->temporary = (char *)temporary;
    if (!mkdtemp(folder->temporary))
        return fail_errno(folder->ctx, folder->path, "cannot create");
    muc_temporary_note(folder->temporary);
    chmod(folder->temporary, 0777 & ~mask);
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
    muc_text_add(&folder->list, "%s\n", name);
    MUC_TRY(muc_arena_format(folder->ctx, &folder->arena, &path, "%s/%s", folder->temporary, name));
    return muc_file_write(folder->ctx, path, data, size);
}

static muc_status write_list(muc_folder *folder)
{
    const char *path;

    MUC_TRY(muc_text_status(folder->ctx, &folder->list));
    MUC_TRY(muc_arena_format(folder->ctx, &folder->arena, &path, "%s/" LIST, folder->temporary));
    return muc_file_write(folder->ctx, path, folder->list.data ? folder->list.data : "",
                          folder->list.size);
}

static muc_status put_in_place(muc_folder *folder)
{
    const char *old = NULL;

    muc_temporary_forget(folder->temporary); /* whatever ends the program, one of both stays */
    if (muc_path_exists(folder->path)) {
        MUC_TRY(may_replace(folder)); /* still */
        MUC_TRY(muc_arena_format(folder->ctx, &folder->arena, &old, "%s.old", folder->temporary));
        if (rename(folder->path, old) != 0)
            return fail_errno(folder->ctx, folder->path, "cannot replace");
    }
    if (rename(folder->temporary, folder->path) != 0) {
        muc_status status = fail_errno(folder->ctx, folder->path, "cannot write");

        if (old)
            rename(old, folder->path);
        return status;
    }
    if (old)
        muc_temporary_remove(old);
    return MUC_OK;
}

muc_status muc_folder_commit(muc_folder *folder, muc_folder_check *check, void *arg)
{
    muc_status status = write_list(folder);

    if (status == MUC_OK && check)
        status = check(folder->ctx, folder->temporary, arg);
    if (status == MUC_OK)
        status = put_in_place(folder);
    if (status != MUC_OK)
        muc_temporary_remove(folder->temporary);
    folder_free(folder);
    return status;
}

void muc_folder_discard(muc_folder *folder)
{
    muc_temporary_remove(folder->temporary);
    folder_free(folder);
}
