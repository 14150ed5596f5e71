/* folders.c - visits everything in a folder and in the folders below it. */
#include "base/file_system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FOLDERS = 64 }; /* nested: each keeps a descriptor open */

typedef struct visitor {
    const char *folder;
    muc_visit_path *visit;
    void *arg;
    unsigned depth;
} visitor;

static bool visit_folder(const visitor *v);

static bool visit_name(void *arg, const char *name)
{
    const visitor *v = arg;
    size_t size = strlen(v->folder) + strlen(name) + sizeof("/");
    char *path = malloc(size);
    muc_file_info info;
    bool goes_on;

    if (!path)
        return false;
    snprintf(path, size, "%s/%s", v->folder, name);
    goes_on = muc_info_of_link(path, &info);
    if (goes_on && info.kind == MUC_PATH_FOLDER)
        goes_on = visit_folder(&(visitor){ path, v->visit, v->arg, v->depth + 1 });
    goes_on = goes_on && v->visit(v->arg, path, &info);
    free(path);
    return goes_on;
}

static bool visit_folder(const visitor *v)
{
    if (v->depth < MOST_FOLDERS)
        return muc_visit_names(v->folder, visit_name, (void *)v);
    errno = ENAMETOOLONG;
    return false;
}

bool muc_visit_tree(const char *folder, muc_visit_path *visit, void *arg)
{
    return visit_folder(&(visitor){ folder, visit, arg, 0 });
}
